// What a trial took: time, steps, calls and tokens.

/** The measures of a trial, folded; null where there are none. */
function measuresNode(trial) {
  const lists = [timesOf(trial), stepsOf(trial)].filter(Boolean);
  if (!lists.length && !trial.usage.length) return null;
  return el(
    "details",
    { class: "measures" },
    el("summary", {}, "Time, steps and tokens of this trial"),
    lists,
    usageNode(trial.usage),
  );
}

function listNode(rows) {
  const shown = rows.filter(([, value]) => value !== null && value !== undefined);
  return el(
    "dl",
    {},
    shown.map(([label, value]) => el("div", { class: "row" }, el("dt", {}, label), el("dd", {}, value))),
  );
}

function timesOf({ times, durationSeconds }) {
  if (!times) return null;
  return listNode([
    ["time", durationText(durationSeconds)],
    ["waiting for the agent", durationText(times.agent)],
    ["waiting for the simulated user", durationText(times.user)],
    ["reaching the verdicts", durationText(times.judge)],
    ["the rest", durationText(times.other)],
  ]);
}

function stepsOf({ process }) {
  if (!process) return null;
  const { begun, overhead } = process;
  return listNode([
    ["steps", process.steps],
    ["workflows begun", begun?.length ? codeNode(begun.join(" → ")) : null],
    ["different tools", process.tools],
    ["repeated steps", process.repeated],
    ["calls of integrations", process.calls],
    ["failed calls", process.failedCalls],
    ["steps back", process.backtracks],
    ["overhead against optimalTools", overhead === null ? null : excessText(overhead)],
    ["missed of optimalTools", process.missed],
  ]);
}

function usageNode(usage) {
  if (!usage.length) return null;
  const cell = (value) => el("td", {}, value);
  const rows = usage.map((one) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, ROLES[one.role]),
      cell(long(one.model ?? "", MOST_NAMED)),
      cell(one.calls.toLocaleString("en-US")),
      cell(one.inputTokens.toLocaleString("en-US")),
      cell(one.outputTokens.toLocaleString("en-US")),
      cell(one.costUsd === null ? "" : moneyText(one.costUsd)),
    ),
  );
  const heads = ["who", "model", "calls", "tokens read", "tokens written", "cost"].map((name) =>
    el("th", { scope: "col" }, name),
  );
  return el(
    "div",
    { class: "table", tabindex: "0", role: "group", "aria-label": "Tokens" },
    el("table", {}, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, rows)),
  );
}
