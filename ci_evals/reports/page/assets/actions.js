// What the agent did for a reply.

/** The actions of a turn as a list, with `mark` beside those whose indexes are in `only`. */
function actionsNode(turn, only = [], mark = null) {
  const row = (label, ...shown) => el("div", { class: "row" }, el("dt", {}, label), el("dd", {}, ...shown));
  let index = 0;
  const node = (action) => actionNode(action, only.includes(index++) ? mark : null);
  const rows = (turn.actions ?? []).map(([label, actions]) =>
    row(label, el("ul", { class: "action-list" }, actions.map(node))),
  );
  if (turn.error) rows.push(row("error response", el("span", { class: "bad", dir: "auto" }, long(turn.error, 2000))));
  if (turn.nothing) rows.push(row("did", el("span", { class: "muted" }, turn.nothing)));
  for (const [label, text] of turn.notes ?? []) rows.push(row(label, text));
  return el("dl", { class: "actions" }, rows);
}

function actionNode({ text, name, status, failed, error, change, arguments: given, result }, mark) {
  return el(
    "li",
    { class: mark ? "action differs" : "action" },
    codeNode(name ?? text),
    status ? [" ", el("span", { class: failed ? "bad" : "muted", dir: "auto" }, long(status, 300))] : null,
    error ? [" ", el("span", { class: "bad", dir: "auto" }, "error: ", long(error, 500))] : null,
    change ? [" ", el("span", { class: "change", dir: "auto" }, long(change, 200))] : null,
    mark ? [" ", el("strong", { class: "only" }, mark)] : null,
    given ? foldedJson("Arguments", given) : null,
    result ? foldedJson("Result", result) : null,
  );
}

/** The actions of a turn on one line. */
function actionsText({ actions = [], error, nothing }) {
  const lists = actions.map(([label, some]) => `${label}: ${some.map(({ text }) => text).join(", ")}`);
  return [...lists, error && `error response: ${error}`, nothing].filter(Boolean).join(" · ");
}
