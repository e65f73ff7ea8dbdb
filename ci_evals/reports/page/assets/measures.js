// What a trial took: time, steps, calls and tokens.

/** The measures of a trial, folded; null if there are none. */
function measuresNode({ times, steps, usage }) {
  if (!times && !steps && !usage) return null;
  return el(
    "details",
    { class: "measures" },
    el("summary", {}, "Time, steps and tokens of this trial"),
    [times, steps].filter(Boolean).map(listNode),
    usage ? usageNode(usage) : null,
  );
}

function listNode(rows) {
  const items = rows.map(([label, value, isCode]) =>
    el("div", { class: "row" }, el("dt", {}, label), el("dd", {}, isCode ? codeNode(value) : value)),
  );
  return el("dl", {}, items);
}

function usageNode(usage) {
  const headers = ["role", "model", "calls", "input tokens", "output tokens", "cost"];
  return tableNode("Tokens", headers, usage.map(([role, model, ...numbers]) => [role, long(model, MOST_NAMED), ...numbers]));
}
