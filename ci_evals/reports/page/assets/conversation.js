// The conversation of a trial: what was said, what the agent did, and the verdicts that rest on it.

/**
 * One turn, alone. `rests` are the items of the verdicts that rest on it, each [finding, element]; `violations` are
 * the simulated user's in it.
 */
function turnNode(turn, { rests, violations, href }) {
  return el(
    "li",
    { class: "turn", tabindex: "-1" },
    headingOf(turn.index, href),
    el(
      "div",
      { class: "row-of-two" },
      messagesNode(turn, quotedIn(rests, turn.index)),
      el("div", { class: "beside" }, violationsNode(violations), actionsNode(turn), restsNode(rests), rawNodes(turn)),
    ),
  );
}

/** The heading of a turn, which is its address. */
function headingOf(index, href, ...more) {
  return el("h4", {}, el("a", { href }, `Turn ${index}`), ...more);
}

/** The messages of both, with the words marked that verdicts rest on. */
function messagesNode(turn, quotes) {
  return el(
    "div",
    { class: "talk" },
    messageNode("user", "User", turn.by, turn.user ?? "", quotes),
    messageNode("agent", "Agent", `after ${turn.latency}`, turn.agent ?? "", quotes),
  );
}

function messageNode(kind, who, how, text, quotes = []) {
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
    const name = el("span", { dir: "auto" }, cut(finding.criterion, MOST_NAMED));
    const button = el("button", { type: "button", class: "link", on: { click: lead } }, name);
    return el("li", {}, outcomeOf(finding.outcome), " ", button);
  });
  return el(
    "div",
    { class: "rests" },
    el("p", { class: "label" }, "Verdicts that cite this turn"),
    el("ul", {}, items),
  );
}

/** Trace and raw reply, folded. */
function rawNodes({ trace, raw }) {
  return [trace ? foldedJson("Trace", trace) : null, raw ? foldedJson("Raw reply", raw) : null];
}

/** JSON that is shown when somebody opens it. */
function foldedJson(label, text) {
  const node = el("details", { class: "raw" }, el("summary", {}, label));
  const fill = () => {
    if (!node.open || node.children.length > 1) return;
    node.append(
      copyButton(`Copy the ${label.toLowerCase()}`, () => text),
      el("pre", { tabindex: "0", role: "group", "aria-label": label }, long(text, MOST_SAID)),
    );
  };
  node.addEventListener("toggle", fill);
  return node;
}

/**
 * The verdicts of a trial: the failed ones first, the passed ones folded where others are not. `others` are those of
 * the baseline's trial that is called `name`, each [criterion, outcome].
 */
function verdictsNode(findings, href, others, name) {
  const nodes = new Map(
    findings.map((finding, place) => {
      const [criterion, outcome] = others[place] ?? [];
      const beside = criterion === finding.criterion ? [`in ${name}: `, outcomeOf(outcome)] : null;
      return [finding, verdictNode(finding, href, beside)];
    }),
  );
  const group = (outcome) => findings.filter((finding) => finding.outcome === outcome);
  const list = (some) => el("ul", { class: "verdicts" }, some.map((finding) => nodes.get(finding)));
  const [failed, undecided, passed] = ["failed", "undecided", "passed"].map(group);
  const node = el(
    "section",
    { class: "chapter" },
    el("h3", {}, "Verdicts"),
    failed.length + undecided.length ? list([...failed, ...undecided]) : null,
    passed.length
      ? el(
          "details",
          { class: "passed", open: !failed.length },
          el("summary", {}, `${passed.length} passed`),
          list(passed),
        )
      : null,
    findings.length ? null : el("p", {}, "No criterion was judged."),
  );
  return { node, nodes };
}

function verdictNode(finding, href, beside) {
  const evidence = finding.evidence ?? [];
  const links = separated(evidence.map((index) => (href(index) ? el("a", { href: href(index) }, index) : index)));
  const names = (some) => (some.length ? [" ", separated(some.map(codeNode))] : null);
  const traits = [
    ...finding.traits.map(([label, some]) => [label, names(some)]),
    evidence.length ? [`${finding.restsOn} `, links] : null,
    beside,
  ];
  return el(
    "li",
    { class: `verdict ${finding.outcome}`, tabindex: "-1" },
    el(
      "p",
      { class: "asked" },
      outcomeOf(finding.outcome),
      causeText(finding),
      " ",
      el("strong", { dir: "auto" }, long(finding.criterion, MOST_NAMED)),
    ),
    el("p", { class: "because", dir: "auto" }, long(finding.reason, MOST_SAID)),
    el("p", { class: "traits" }, dotted(traits.filter(Boolean).map((trait) => el("span", {}, trait)))),
    finding.doubt
      ? el("p", { class: "doubt", dir: "auto" }, outcomeOf("error", long(finding.doubt, MOST_NAMED)))
      : null,
    quotesNode(finding.quotes, href),
    gradeNode(finding.grade),
    votesNode(finding, href),
    finding.votes ? null : unusableNodes(finding),
  );
}

function causeText({ cause }) {
  return cause ? ` (${cause})` : "";
}
