// One of this run's conversations beside one of the baseline's, and where the two part.

/**
 * Where two conversations part: {turn, head, base, only, userDiffers, agentDiffers, untold}. `turn` is null
 * where the agent did the same throughout, and `agentDiffers` then the first in which it said something else, `head`
 * and `base` are the deeds that the other side lacks, `unknown` the turns of which a side reports less than the
 * other, `untold` says that a side has no trace.
 */
function partingOf(here, there) {
  if (!here.some(traced) || !there.some(traced)) return { turn: null, untold: true };
  let userDiffers = null;
  for (let place = 0; place < Math.max(here.length, there.length); place++) {
    const [mine, theirs] = [here[place], there[place]];
    if (userDiffers === null && mine && theirs && mine.user !== theirs.user) userDiffers = place + 1;
    const [head, base] = lacking(mine, theirs);
    if (mine && theirs && !head.length && !base.length) continue;
    return { turn: place + 1, head, base, only: mine ? (theirs ? null : "head") : "base", userDiffers };
  }
  const first = here.findIndex((one, place) => one.agent !== there[place].agent);
  const unknown = here.flatMap((one, place) => (reportsLess(one, there[place]) ? [place + 1] : []));
  return { turn: null, userDiffers, agentDiffers: first < 0 ? null : first + 1, unknown };
}

/** Whether one of two replies reports a kind that the other does not, or neither reports any. */
function reportsLess(mine, theirs) {
  const kinds = (one) =>
    ["workflows", "params", "rules", "integrations"].filter((kind) => (one[kind] ?? null) !== null).join(" ");
  return kinds(mine) !== kinds(theirs) || kinds(mine) === "";
}

/** The deeds of each side that the other one lacks. */
function lacking(mine, theirs) {
  const did = mine ? comparable(mine, theirs) : new Map();
  const had = theirs ? comparable(theirs, mine) : new Map();
  const without = (deeds, others) => [...deeds.values()].filter((deed) => !others.has(deed.key));
  return [without(did, had), without(had, did)];
}

/** The same in words. `baseline` names its trial. */
function partingText(parting, baseline) {
  const { turn, head, base, only, userDiffers, agentDiffers, unknown = [] } = parting;
  if (parting.untold) {
    return `A side carries no trace, so it cannot be told where this conversation parts from ${baseline}.`;
  }
  if (turn === null && unknown.length) {
    const where = `turn${unknown.length > 1 ? "s" : ""} ${unknown.join(", ")}`;
    const same = `The agent did the same as in ${baseline} as far as is known`;
    return `${same}: not both report what it did in ${where}.`;
  }
  if (turn === null && agentDiffers === null && userDiffers === null) {
    return `This conversation and ${baseline} are the same, word for word.`;
  }
  const did = listed(head);
  const had = listed(base);
  let told;
  if (turn === null) {
    told =
      agentDiffers === null
        ? `The agent did and said the same as in ${baseline}.`
        : `The agent did the same as in ${baseline}: only words differ.`;
  } else if (only === "base") {
    const lost = had ? `: there the agent ${had}` : "";
    told = `This conversation ends before turn ${turn} of ${baseline}${lost}.`;
  } else if (only === "head") {
    const more = did || "only spoke";
    told = `This conversation goes on where ${baseline} ended: in turn ${turn} the agent ${more}.`;
  } else {
    const how = had ? `There the agent ${had}; now it ${did || "did not"}` : `Now the agent ${did}; there it did not`;
    told = `This conversation parts from ${baseline} in turn ${turn}. ${how}.`;
  }
  return told + userText(turn, userDiffers);
}

function userText(turn, userDiffers) {
  if (userDiffers === null) return "";
  const where = userDiffers === turn ? "there" : `from turn ${userDiffers} on`;
  return ` The user said something else ${where}, so the simulated user may be the cause.`;
}

const VERBS = { workflow: "ran", parameter: "understood", rule: "applied", integration: "called" };
const MOST_TOLD = 3;

function listed(deeds) {
  const told = KINDS.map((kind) => [VERBS[kind], deeds.filter((deed) => deed.kind === kind)])
    .filter(([, found]) => found.length)
    .map(([verb, found]) => {
      const names = found.slice(0, MOST_TOLD).map(shortText);
      if (found.length > MOST_TOLD) names.push(`${found.length - MOST_TOLD} more`);
      return `${verb} ${joined(names)}`;
    });
  return joined(told);
}

function joined(parts) {
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

function shortText({ kind, name, value }) {
  const short = (text) => cut(text, 60);
  if (value === null) return short(name);
  const told = short(typeof value === "string" ? value : jsonText(value));
  return kind === "integration" ? `${short(name)} (status ${told})` : `${short(name)} as ${told}`;
}

/**
 * Both conversations, turn by turn. `head` and `base` are {turns, label, rests, violations}, the last two
 * functions from a turn's number to the verdicts on it, and to the violations of the simulated user in it; `told` is the parting in words.
 */
function bothNode(head, base, parting, told, href) {
  const count = Math.max(head.turns.length, base.turns.length);
  const items = Array.from({ length: count }, (_, place) => {
    const [mine, theirs] = [head.turns[place], base.turns[place]];
    const lacks = lacking(mine, theirs).map((deeds) => new Set(deeds.map((deed) => deed.key)));
    const here = parting.turn === place + 1;
    return el(
      "li",
      { class: here ? "turn parts" : "turn", tabindex: "-1" },
      headingOf(place + 1, href(place + 1), here ? [" ", el("strong", { class: "only" }, "They part here")] : null),
      here ? el("p", { class: "told-here", dir: "auto" }, told) : null,
      el(
        "div",
        { class: "sides" },
        sideNode("head", head, place, (deed) => (theirs && lacks[0].has(deed.key) ? "only here" : null)),
        sideNode("base", base, place, (deed) => (mine && lacks[1].has(deed.key) ? "only in the baseline" : null)),
      ),
    );
  });
  return el("ol", { class: "turns both" }, items);
}

function sideNode(side, { turns, label, rests, violations }, place, marks) {
  const one = turns[place];
  return el(
    "div",
    { class: `side ${side}`, role: "group", "aria-label": label },
    el("p", { class: "label" }, label),
    one
      ? [
          saidNode(one, quotedIn(rests(one.index), one.index)),
          violationsNode(violations(one.index)),
          deedsNode(one, turns[place - 1], marks),
          restsNode(rests(one.index)),
          rawNodes(one),
        ]
      : el("p", { class: "muted" }, turns.length ? "The conversation had ended before." : "Nothing was said."),
  );
}
