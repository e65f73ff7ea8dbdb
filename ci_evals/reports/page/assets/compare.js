// One of this run's conversations beside one of the baseline's.

/**
 * Both conversations, turn by turn. `head` and `base` are {turns, label, rests, violations}, the last two
 * functions from a turn's number to the verdicts on it, and to the violations of the simulated user in it;
 * `divergence` is theirs.
 */
function bothNode(head, base, divergence, href) {
  const count = Math.max(head.turns.length, base.turns.length);
  const items = Array.from({ length: count }, (_, place) => {
    const here = divergence.turn === place + 1;
    const [mine, theirs] = divergence.only?.[place + 1] ?? [[], []];
    return el(
      "li",
      { class: here ? "turn diverges" : "turn", tabindex: "-1" },
      headingOf(place + 1, href(place + 1), here ? [" ", el("strong", { class: "only" }, "First difference")] : null),
      here ? el("p", { class: "divergence-here", dir: "auto" }, divergence.text) : null,
      el(
        "div",
        { class: "sides" },
        sideNode("head", head, place, mine, "only here"),
        sideNode("base", base, place, theirs, "only in the baseline"),
      ),
    );
  });
  return el("ol", { class: "turns both" }, items);
}

function sideNode(side, { turns, label, rests, violations }, place, only, mark) {
  const turn = turns[place];
  return el(
    "div",
    { class: `side ${side}`, role: "group", "aria-label": label },
    el("p", { class: "label" }, label),
    turn
      ? [
          messagesNode(turn, quotedIn(rests(turn.index), turn.index)),
          violationsNode(violations(turn.index)),
          actionsNode(turn, only, mark),
          restsNode(rests(turn.index)),
          rawNodes(turn),
        ]
      : el("p", { class: "muted" }, turns.length ? "This conversation had already ended." : "No messages."),
  );
}

/** The first divergence in words, with the way there. */
function divergenceNode({ text, turn }, href) {
  return el(
    "p",
    { class: "notice divergence-notice", dir: "auto" },
    text,
    turn ? [" ", el("a", { href: href(turn) }, `Go to turn ${turn}`)] : null,
  );
}

/** The switch between this run alone and each trial of the baseline beside it. */
function baselineNav({ number, base, trial, beside }) {
  const link = (label, to) => {
    const props = { href: addressOf(number, trial.index, null, to), "aria-current": beside === to ? "true" : null };
    return el("li", {}, el("a", props, label));
  };
  const items = base.trials.map(({ index, outcome }) => {
    const words = el("span", { class: "unseen" }, ` of the baseline, ${OUTCOMES[outcome]}`);
    return link([outcomeOf(outcome, `Trial ${index}`), words], index);
  });
  return el(
    "nav",
    { class: "trials beside-nav", "aria-label": "Compare with the baseline" },
    el("span", { class: "label" }, "Compare with the baseline:"),
    el("ul", {}, link("None", null), items),
    base.note ? el("p", { class: "muted" }, base.note) : null,
  );
}
