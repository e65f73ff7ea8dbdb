// What stands behind a judged verdict: the words it rests on, its grade, its votes. And where the user broke character.

/** A turn by its number, as a link if there is one. */
function turnLink(index, href) {
  return href(index) ? el("a", { href: href(index) }, `turn ${index}`) : `turn ${index}`;
}

/** The words that a verdict rests on; null if there are none. */
function quotesNode(quotes, href) {
  if (!quotes) return null;
  const items = quotes.map(({ turn, text }) =>
    el("li", {}, el("q", { dir: "auto" }, long(text, MOST_QUOTED)), " ", turnLink(turn, href)),
  );
  return el("ul", { class: "words", "aria-label": "Quoted evidence" }, items);
}

/** The dimensions of a rubric's grade as a table; null if there is no grade. */
function gradeNode(grade) {
  if (!grade) return null;
  const rows = grade.rows.map((row) => row.map((cell) => long(cell, MOST_QUOTED)));
  return [
    el("p", { class: "traits" }, grade.text),
    tableNode("Grade by dimension", ["dimension", "level", "score", "weight", "reason"], rows),
  ];
}

/** The tally of the votes, and each of them folded; null if one judge had one vote. */
function votesNode({ votes, tally }, href) {
  if (!votes) return null;
  const items = votes.map((vote) =>
    el(
      "li",
      {},
      el("p", { class: "traits" }, outcomeOf(vote.outcome), causeText(vote), " ", codeNode(vote.model ?? "")),
      el("p", { class: "because", dir: "auto" }, long(vote.reason, MOST_SAID)),
      quotesNode(vote.quotes, href),
      gradeNode(vote.grade),
      unusableNodes(vote),
    ),
  );
  return el("details", { class: "votes" }, el("summary", {}, tally), el("ol", {}, items));
}

/** What a judge wrote in answers that could not be used, folded. */
function unusableNodes({ unusable }) {
  return (unusable ?? []).map((text) => foldedJson("Unusable answer", text));
}

/** The quotes of a turn, of the verdicts that rest on it, each [finding, element]. */
function quotedIn(rests, turn) {
  return rests.flatMap(([finding]) => (finding.quotes ?? []).filter((quote) => quote.turn === turn));
}

/** `text` for an element, with the words of quotes marked in it. */
function marked(text, quotes) {
  const all = clean(text);
  if (!quotes.length || all.length > MOST_SAID) return long(all, MOST_SAID);
  const spans = quotes.flatMap((quote) => spansOf(all, clean(quote.text))).sort((one, other) => one[0] - other[0]);
  const found = [];
  let end = 0;
  for (const [from, to] of spans) {
    if (from < end) continue;
    found.push(all.slice(end, from), el("mark", {}, all.slice(from, to)));
    end = to;
  }
  return [...found, all.slice(end)];
}

const LEFT_OUT = /\s*(?:\.{3,}|…)\s*/;
const EMPHASIS = "[*_`~]";
const ALIKE = ["'‘’‚‛´", '"“”„‟«»', "-‐‑‒–—−"];

/** The spans [from, to] of a quote's parts in `text`; none if it is not there. */
function spansOf(text, quote) {
  const spans = [];
  let from = 0;
  for (const part of quote.slice(0, MOST_QUOTED).split(LEFT_OUT)) {
    const pattern = patternOf(part);
    if (pattern === null) continue;
    pattern.lastIndex = from;
    const found = pattern.exec(text);
    if (!found) return [];
    from = found.index + found[0].length;
    spans.push([found.index, from]);
  }
  return spans;
}

/** The pattern for words with any white space, case, quotation marks, dashes and emphasis; null for none. */
function patternOf(words) {
  const alike = (sign) => {
    const signs = ALIKE.find((some) => some.includes(sign));
    return signs ? `[${signs.replace("-", "\\-")}]` : sign.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&");
  };
  const found = words
    .replace(/[*_`~]/g, "")
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => [...word].map(alike).join(`${EMPHASIS}*`));
  return found.length ? new RegExp(found.join("[\\s*_`~]+"), "giu") : null;
}

/** The violations of a trial's simulated user, of one turn or, with the number after the last one, of its closing remark. */
function violationsOf({ violations = [] }, turn) {
  return violations.filter((violation) => violation.turn === turn);
}

/** The violations in one turn; null if there are none. */
function violationsNode(violations) {
  if (!violations.length) return null;
  const items = violations.map(({ rule, reason, text }) =>
    el(
      "li",
      { dir: "auto" },
      el("strong", {}, cut(rule, MOST_NAMED)),
      ": ",
      long(reason, MOST_QUOTED),
      clean(text).trim() ? [" ", el("q", { dir: "auto" }, long(text, MOST_QUOTED))] : null,
    ),
  );
  return el(
    "div",
    { class: "violation" },
    el("p", { class: "label" }, "The simulated user broke character"),
    el("ul", {}, items),
  );
}

/** A line on the simulated user of a trial; null if there is nothing to say. */
function auditNode({ violations, audit }, href, turns) {
  if (!violations) return audit ? el("p", { class: "muted" }, audit) : null;
  const links = [...new Set(violations.map(({ turn }) => turn))].map((turn) =>
    turn > turns ? "in its closing remark" : ["in ", turnLink(turn, href)],
  );
  return el("p", { class: "notice" }, "The simulated user broke character ", separated(links), ".");
}
