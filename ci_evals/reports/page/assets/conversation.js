// The conversation of a trial: what was said, what the agent did, and the verdicts that rest on it.

/** Characters of a message or a trace that are shown at once: a browser lays out no megabyte without a pause. */
const MOST_SAID = 20_000;
/** Of a name. */
const MOST_NAMED = 300;

/**
 * One turn, alone. `rests` are the items of the verdicts that rest on it, each [finding, element]; `violations` are
 * the simulated user's in it.
 */
function turnNode(one, { before, rests, violations, href }) {
  return el(
    "li",
    { class: "turn", tabindex: "-1" },
    headingOf(one.index, href),
    el(
      "div",
      { class: "row-of-two" },
      saidNode(one, quotedIn(rests, one.index)),
      el(
        "div",
        { class: "beside" },
        violationsNode(violations),
        deedsNode(one, before),
        restsNode(rests),
        rawNodes(one),
      ),
    ),
  );
}

/** The heading of a turn, which is its address. */
function headingOf(index, href, ...more) {
  return el("h4", {}, el("a", { href }, `Turn ${index}`), ...more);
}

/** What both said, with the words marked that verdicts rest on. */
function saidNode(one, quotes) {
  const source = one.userSource === "fixed" ? "fixed line" : "written by the simulated user";
  return el(
    "div",
    { class: "talk" },
    messageNode("user", "User", source, one.user, quotes),
    messageNode("agent", "Agent", `after ${latencyText(one.latencySeconds)}`, one.agent, quotes),
  );
}

function messageNode(kind, who, how, text, quotes) {
  return el(
    "div",
    { class: `message ${kind}` },
    el("p", { class: "who" }, el("strong", {}, who), " ", el("span", { class: "muted" }, how)),
    clean(text).trim()
      ? el("div", { class: "text", dir: "auto" }, marked(text, quotes))
      : el("div", { class: "text muted" }, "(no text)"),
  );
}

/** The verdicts that rest on a turn, as buttons that lead to them. */
function restsNode(rests) {
  if (!rests.length) return null;
  const items = rests.map(([finding, verdict]) => {
    const lead = () => {
      verdict.closest("details")?.setAttribute("open", "");
      showNode(verdict, "center");
    };
    return el(
      "li",
      {},
      outcomeOf(finding.outcome),
      " ",
      el(
        "button",
        { type: "button", class: "link", on: { click: lead } },
        el("span", { dir: "auto" }, cut(finding.criterion, MOST_NAMED)),
      ),
    );
  });
  return el(
    "div",
    { class: "rests" },
    el("p", { class: "label" }, "Verdicts that rest on this turn"),
    el("ul", {}, items),
  );
}

/** Trace and raw reply, folded. */
function rawNodes(one) {
  return [
    one.trace === null ? null : foldedJson("Trace", one.trace),
    one.raw === null ? null : foldedJson("Raw reply", one.raw),
  ];
}

/** JSON that is written out when somebody opens it. */
function foldedJson(label, value) {
  const node = el("details", { class: "raw" }, el("summary", {}, label));
  const fill = () => {
    if (!node.open || node.children.length > 1) return;
    const text = jsonLines(value);
    node.append(
      copyButton(`Copy ${label === "Trace" ? "the trace" : "the raw reply"}`, () => text),
      el("pre", { tabindex: "0", role: "group", "aria-label": label }, long(text, MOST_SAID)),
    );
  };
  node.addEventListener("toggle", fill);
  return node;
}

/** The verdicts of a trial: the failed ones first, the passed ones folded where others are not. */
function verdictsNode(findings, { href, there, of, doubts }) {
  const made = (finding, place) => verdictNode(finding, href, there?.[place], of, doubts[finding.criterion]);
  const nodes = new Map(findings.map((finding, place) => [finding, made(finding, place)]));
  const group = (outcome) => findings.filter((finding) => finding.outcome === outcome);
  const list = (found) =>
    el(
      "ul",
      { class: "verdicts" },
      found.map((finding) => nodes.get(finding)),
    );
  const first = [...group("failed"), ...group("undecided")];
  const passed = group("passed");
  const node = el(
    "section",
    { class: "chapter" },
    el("h3", {}, "Verdicts"),
    first.length ? list(first) : null,
    passed.length
      ? el(
          "details",
          { class: "passed", open: first.every((finding) => finding.outcome !== "failed") },
          el("summary", {}, `${passed.length.toLocaleString("en-US")} passed`),
          list(passed),
        )
      : null,
    findings.length ? null : el("p", {}, "None: no criterion was decided."),
  );
  return { node, nodes };
}

function verdictNode(finding, href, there, of, doubt) {
  const cause = finding.cause ? ` (${CAUSES[finding.cause]})` : "";
  const noun = finding.evidence.length === 1 ? "turn" : "turns";
  const links = finding.evidence.flatMap((index, place) => [
    place ? ", " : "",
    href(index) ? el("a", { href: href(index) }, index) : index,
  ]);
  const facts = [
    finding.kind === "strict" ? ["strict ", codeNode(finding.strict ?? "")] : "judged",
    `weight ${finding.weight}`,
    finding.category ? ["category ", codeNode(finding.category)] : null,
    finding.auiLogic.length
      ? ["AUI logic ", finding.auiLogic.flatMap((id, place) => [place ? ", " : "", codeNode(id)])]
      : null,
    finding.evidence.length ? [`rests on ${finding.restsOn === "absence" ? "what is absent from " : ""}${noun} `, links] : null,
    there?.criterion === finding.criterion ? [`in ${of}: `, outcomeOf(there.outcome)] : null,
  ];
  return el(
    "li",
    { class: `verdict ${finding.outcome}`, tabindex: "-1" },
    el(
      "p",
      { class: "asked" },
      outcomeOf(finding.outcome),
      cause,
      " ",
      el("strong", { dir: "auto" }, long(finding.criterion, MOST_NAMED)),
    ),
    el("p", { class: "because", dir: "auto" }, long(finding.reason || "no reason was given", MOST_SAID)),
    el("p", { class: "traits" }, dotted(facts.filter(Boolean).map((fact) => el("span", {}, fact)))),
    doubt ? el("p", { class: "doubt", dir: "auto" }, outcomeOf("error", long(doubt, MOST_NAMED))) : null,
    quotesNode(finding.quotes, href),
    gradeNode(finding.grade),
    votesNode(finding.votes, href),
  );
}
