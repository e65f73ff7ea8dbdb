// One trial of a test: how it ended, its verdicts, and its conversation.

/** Turns of a conversation that are laid out at once. */
const MOST_AT_ONCE = 50;

/**
 * Draws what is opened: its trial's `turns`, and beside them `baseTurns` of the baseline's trial `baseTrial`, if
 * these are not null. `index` is the trial that was asked for, if any.
 */
function drawTrial(root, turns, baseTurns, baseTrial, index) {
  const { number, base, trial, beside } = opened;
  const href = (turn) => addressOf(number, trial.index, turn, beside);
  const hrefWithin = (turn) => (turn >= 1 && turn <= turns.length ? href(turn) : null);
  const verdicts = verdictsNode(
    trial.findings ?? [],
    hrefWithin,
    baseTrial?.findings ?? [],
    `trial ${beside} of the baseline`,
  );
  const rests = (turn) => [...verdicts.nodes].filter(([finding]) => finding.evidence?.includes(turn));
  const violations = (turn) => violationsOf(trial, turn);
  const conversation = baseTurns
    ? bothNode(
        { turns, label: `This run, trial ${trial.index}`, rests, violations },
        {
          turns: baseTurns,
          label: `Baseline, trial ${beside}`,
          rests: () => [],
          violations: (turn) => violationsOf(baseTrial, turn),
        },
        opened.divergence,
        href,
      )
    : el(
        "ol",
        { class: "turns" },
        turns.map((turn) =>
          turnNode(turn, { rests: rests(turn.index), violations: violations(turn.index), href: href(turn.index) }),
        ),
      );
  opened.nodes = [...conversation.children];
  if (opened.nodes.length > MOST_AT_ONCE) conversation.classList.add("many");
  const title = `${TESTS[number].suite} › ${TESTS[number].test}, trial ${trial.index}`;
  root.querySelector("#trial").replaceChildren(
    ...[
      el("h2", { tabindex: "-1" }, `Trial ${trial.index}: `, headlineOf(trial)),
      index !== null && index !== trial.index
        ? el("p", { class: "notice" }, `There is no trial ${index}: this is trial ${trial.index}.`)
        : null,
      endedNode(trial),
      auditNode(trial, hrefWithin, turns.length),
      verdicts.node,
      el("h3", {}, "Conversation"),
      el(
        "p",
        { class: "buttons" },
        copyButton("Copy the conversation", () => conversationText(title, turns, trial.closing)),
      ),
      base?.trials.length ? baselineNav(opened) : null,
      baseTurns ? divergenceNode(opened.divergence, href) : null,
      opened.nodes.length ? conversation : el("p", {}, "No messages."),
      closingNode(trial, baseTurns ? "User's closing remark in this run" : "User's closing remark"),
      violationsNode(violations(turns.length + 1)),
      baseTrial ? closingNode(baseTrial, "User's closing remark in the baseline") : null,
      stateNode(trial),
      measuresNode(trial),
    ].filter(Boolean),
  );
}

function headlineOf({ outcome, score }) {
  return score === undefined ? outcomeOf(outcome, "excluded") : [outcomeOf(outcome), `, score ${score}`];
}

function endedNode({ ended, error, attempts }) {
  return el(
    "div",
    { class: "ended" },
    el("p", {}, ended),
    error ? el("p", { class: "notice", dir: "auto" }, el("strong", {}, "Error: "), long(error, 2000)) : null,
    attempts ? el("p", { dir: "auto" }, long(attempts, 2000)) : null,
  );
}

/** What the probes found after the conversation; null if there are none. */
function stateNode({ state }) {
  if (!state) return null;
  const shown = ({ error, value }) =>
    error
      ? el("p", { class: "bad", dir: "auto" }, "unknown: ", long(error, 2000))
      : el("pre", { tabindex: "0", dir: "auto" }, long(value, MOST_SAID));
  const rows = state.map((probe) =>
    el("div", { class: "row" }, el("dt", {}, codeNode(probe.name)), el("dd", {}, shown(probe))),
  );
  return el("section", { class: "state" }, el("h3", {}, "State after the conversation"), el("dl", {}, rows));
}

function closingNode({ closing }, who) {
  if (!closing) return null;
  const node = messageNode("user", who, "not sent", closing);
  node.classList.add("closing");
  return node;
}
