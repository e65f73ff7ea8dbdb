// One trial of a test: how it ended, its verdicts, and its conversation.

/** Turns of a conversation that are laid out at once. */
const MOST_AT_ONCE = 50;

function drawTrial(root, mine, theirs, other, index) {
  const { number, head, base, trial, beside, doubts } = opened;
  const outcome = head.outcomes[opened.place];
  const baseTrial = other === null ? null : base.test.trials[other];
  const name = `trial ${beside} of the baseline`;
  const href = (turn) => addressOf(number, trial.index, turn, beside);
  const longest = Math.max(mine.length, theirs?.length ?? 0);
  const verdicts = verdictsNode(trial.findings, {
    href: (turn) => (turn >= 1 && turn <= mine.length ? href(turn) : null),
    there: baseTrial?.findings,
    of: name,
    doubts,
  });
  const rests = (turn) => [...verdicts.nodes].filter(([finding]) => finding.evidence.includes(turn));
  const violations = (turn) => violationsOf(trial, turn);
  opened.parting = theirs ? partingOf(mine, theirs) : null;
  const said = theirs
    ? bothNode(
        { turns: mine, label: `This run, trial ${trial.index}`, rests, violations },
        {
          turns: theirs,
          label: `Baseline, trial ${beside}`,
          rests: () => [],
          violations: (turn) => violationsOf(baseTrial, turn),
        },
        opened.parting,
        partingText(opened.parting, name),
        href,
      )
    : el(
        "ol",
        { class: "turns" },
        mine.map((one, place) =>
          turnNode(one, {
            before: mine[place - 1],
            rests: rests(one.index),
            violations: violations(one.index),
            href: href(one.index),
          }),
        ),
      );
  opened.nodes = [...said.children];
  if (longest > MOST_AT_ONCE) said.classList.add("many");
  const wrong =
    index !== null && index !== trial.index
      ? el("p", { class: "notice" }, `There is no trial ${index}: this is trial ${trial.index}.`)
      : null;
  const title = `${TESTS[number].suite} › ${TESTS[number].test}, trial ${trial.index}`;
  root.querySelector("#trial").replaceChildren(
    ...[
      el(
        "h2",
        { tabindex: "-1" },
        `Trial ${trial.index}: `,
        trial.status === "invalid_user"
          ? outcomeOf(outcome, "left out")
          : [outcomeOf(outcome), `, score ${scoreText(trial.score)}`],
      ),
      wrong,
      endedNode(trial, mine),
      auditNode(trial, href, mine.length),
      verdicts.node,
      el("h3", {}, "Conversation"),
      el(
        "p",
        { class: "buttons" },
        copyButton("Copy the conversation", () => conversationText(title, mine, trial.closingRemark)),
      ),
      base?.test.trials.length ? besideNode() : null,
      opened.parting ? partingNode(opened.parting, name, href) : null,
      longest ? said : el("p", {}, "Nothing was said."),
      trial.closingRemark
        ? closingNode(trial.closingRemark, theirs ? "User, on leaving, in this run" : "User, on leaving")
        : null,
      violationsNode(violations(mine.length + 1)),
      baseTrial?.closingRemark ? closingNode(baseTrial.closingRemark, "User, on leaving, in the baseline") : null,
      measuresNode(trial),
    ].filter(Boolean),
  );
}

/** The switch between this run alone and each trial of the baseline beside it. */
function besideNode() {
  const { number, base, trial, beside } = opened;
  const link = (label, to) =>
    el(
      "li",
      {},
      el("a", { href: addressOf(number, trial.index, null, to), "aria-current": beside === to ? "true" : null }, label),
    );
  const items = base.test.trials.map((one, place) =>
    link(
      [
        outcomeOf(base.outcomes[place], `Trial ${one.index}`),
        el("span", { class: "unseen" }, ` of the baseline, ${OUTCOMES[base.outcomes[place]]}`),
      ],
      one.index,
    ),
  );
  return el(
    "nav",
    { class: "trials beside-nav", "aria-label": "Baseline beside" },
    el("span", { class: "label" }, "Baseline beside:"),
    el("ul", {}, link("None", null), items),
  );
}

function partingNode(parting, name, href) {
  return el(
    "p",
    { class: "notice told-parting", dir: "auto" },
    partingText(parting, name),
    parting.turn === null
      ? null
      : [" ", el("a", { href: href(parting.turn) }, `Go to turn ${parting.turn}`)],
  );
}

function closingNode(remark, who) {
  return el(
    "div",
    { class: "message user closing" },
    el("p", { class: "who" }, el("strong", {}, who), " ", el("span", { class: "muted" }, "not sent")),
    el("div", { class: "text", dir: "auto" }, long(remark, MOST_SAID)),
  );
}

function endedNode(trial, turns) {
  const details = turns.map((one) => one.errorDetail).filter(Boolean);
  const spoilt = ["agent_error", "failed", "interrupted"].includes(trial.status);
  // Where the simulated user broke its role is told with the places.
  const told = trial.userAudit?.violations.length ? null : trial.error;
  const error = told ?? (spoilt ? details.at(-1) : null);
  const tried = trial.attempts.map((one) => one.status.replace("_", " ") + (one.error ? ` (${one.error})` : ""));
  return el(
    "div",
    { class: "ended" },
    el(
      "p",
      {},
      ENDINGS[trial.status],
      ` ${countText(turns.length, "turn")}, ${durationText(trial.durationSeconds)}.`,
    ),
    error ? el("p", { class: "notice", dir: "auto" }, el("strong", {}, "Error: "), long(error, 2000)) : null,
    tried.length > 1
      ? el("p", { dir: "auto" }, `${tried.length} attempts: `, long(tried.join(", then "), 2000), ".")
      : null,
  );
}
