// The view of one test: its head, its trials, and the conversation of one of them, alone or beside the baseline's.

/** What is shown: {number, head, base, place of the trial, ...}; null while none is. */
let opened = null;
/** Exchanges of a conversation that are laid out at once. */
const MOST_AT_ONCE = 50;
/** What had the focus on the overview. */
let cameFrom = null;
/** Counts what was asked for, so that what an earlier address asked for and comes late is not shown. */
let asked = 0;

const OVERVIEW = "#";

/** Shows what `place` names: {number, trial, exchange, base}, all but the number maybe null. */
async function openTest(place) {
  const mine = ++asked;
  const root = document.getElementById("test");
  try {
    if (opened?.number !== place.number) {
      opened = null;
      beginTest(root, place.number);
      const facts = await factsOf(place.number);
      if (mine !== asked) return;
      opened = { number: place.number, ...facts };
      root.querySelector(".loading").replaceWith(headNode(opened), el("div", { id: "trial" }));
    }
    await showTrial(root, place, () => mine !== asked);
  } catch (error) {
    if (mine !== asked) return;
    opened = null;
    const place = root.querySelector(".loading") ?? root.querySelector("#trial");
    place?.replaceWith(el("p", { class: "notice", role: "alert" }, unreadable(error)));
  }
}

/** Leaves the view: the focus goes back to where it came from. */
function closeTest() {
  asked++;
  opened = null;
  document.getElementById("test").replaceChildren();
  cameFrom?.focus({ preventScroll: true });
  cameFrom = null;
}

function beginTest(root, number) {
  const { suite, test } = TESTS[number];
  if (!root.contains(document.activeElement)) cameFrom ??= document.activeElement;
  const heading = el("h1", { tabindex: "-1", dir: "auto" }, long(test, MOST_NAMED));
  root.replaceChildren(
    wayNode(number),
    el("p", { class: "of-suite", dir: "auto" }, long(suite, MOST_NAMED), " ›"),
    heading,
    el("p", { class: "loading", role: "status" }, "Loading the conversations…"),
    keysNode(),
    el("p", { id: "told", role: "status" }),
  );
  scrollTo({ top: 0, behavior: "instant" });
  heading.focus({ preventScroll: true });
}

function unreadable(error) {
  if (typeof DecompressionStream === "undefined") {
    return "This browser cannot unpack the conversations. Open the page in a browser of 2023 or later: Chrome, Edge, Firefox 113 or Safari 16.4.";
  }
  return `The data of this test cannot be read (${error.message}). The file may be cut short: write it anew with "ci-evals report". The results are also in _results.json.`;
}

/** The tests in the order in which the table shows them; all of them where it does not show `number`. */
function testsInOrder(number) {
  const numbers = new Map(TESTS.map((_, place) => [addressOf(place), place]));
  const links = document.querySelectorAll("#tests tbody tr:not([hidden]) th a");
  const shown = [...links].map((link) => numbers.get(link.getAttribute("href"))).filter((one) => one !== undefined);
  return shown.includes(number) ? shown : TESTS.map((_, place) => place);
}

/** The links to the overview and to the tests before and after. */
function wayNode(number) {
  const order = testsInOrder(number);
  const at = order.indexOf(number);
  const failing = (place) => ["failed", "error"].includes(TESTS[place].outcome);
  const before = order.slice(0, Math.max(at, 0)).reverse();
  const after = order.slice(at + 1);
  const link = (label, to) => (to === undefined ? null : el("a", { href: addressOf(to), title: cut(TESTS[to].test, MOST_NAMED) }, label));
  return el(
    "nav",
    { class: "way", "aria-label": "Tests" },
    el("a", { href: OVERVIEW, class: "back" }, "← All tests"),
    link("Previous", before[0]),
    link("Next", after[0]),
    link("Previous failing", before.find(failing)),
    link("Next failing", after.find(failing)),
  );
}

function headNode({ number, file, head, base }) {
  const { test } = head;
  const facts = [
    outcomeOf(test.outcome),
    `score ${base ? `${scoreText(base.test.score)} (baseline) → ` : ""}${scoreText(test.score)}`,
    test.critical ? "critical" : null,
    test.flaky ? "flaky" : null,
    test.difficulty ? el("span", {}, "difficulty ", long(test.difficulty, MOST_NAMED)) : null,
    test.tags.length ? el("span", {}, "tags ", test.tags.flatMap((tag, place) => [place ? ", " : "", codeNode(tag)])) : null,
    codeNode(`${file}:${test.line}`),
    test.notRun ? `${countText(test.notRun, "trial")} not run` : null,
  ];
  return el(
    "div",
    { class: "head" },
    el("p", { class: "traits" }, dotted(facts)),
    base && !TESTS[number].same
      ? el("p", { class: "notice" }, "The baseline defined this test differently: the two were not compared, and may differ for that alone.")
      : null,
    el(
      "p",
      { class: "buttons" },
      copyButton("Copy the link to this place", () => location.href.split("#")[0] + here()),
      copyButton("Copy the command to play this test again", () => commandOf(file, test.name)),
    ),
    plannedNode(test),
    trialsNode(number, head),
  );
}

/** The address of what is shown. */
function here() {
  const { number, trial, at, beside } = opened;
  return addressOf(number, trial?.index ?? null, at ?? null, beside ?? null);
}

function plannedNode(test) {
  const turns = test.turns.map((turn) =>
    el(
      "li",
      {},
      el("span", { class: "text", dir: "auto" }, turn.user === "auto" ? el("em", {}, "written by the simulated user") : long(turn.user, 2000)),
      turn.expectation ? el("p", { class: "muted", dir: "auto" }, "expected: ", long(turn.expectation, 2000)) : null,
    ),
  );
  return el(
    "details",
    { class: "planned" },
    el("summary", {}, "The simulated user, and the turns planned"),
    el("p", { class: "text", dir: "auto" }, long(test.guidelines, 5000)),
    el("ol", {}, turns),
    test.optimalTools ? el("p", {}, "The shortest right conversation runs: ", codeNode(test.optimalTools.join(", ") || "nothing")) : null,
    Object.keys(test.userInfo).length
      ? [el("p", { class: "label" }, "The user's data"), el("pre", { tabindex: "0", role: "group", "aria-label": "The user's data" }, long(JSON.stringify(test.userInfo, null, 2), 5000))]
      : null,
  );
}

function trialsNode(number, { test, outcomes }) {
  if (!test.trials.length) return el("p", { class: "notice" }, "No trial was started.");
  const items = test.trials.map((trial, place) =>
    el(
      "li",
      {},
      el("a", { href: addressOf(number, trial.index), "data-trial": trial.index }, outcomeOf(outcomes[place], `Trial ${trial.index}`), ` ${scoreText(trial.score)}`, el("span", { class: "unseen" }, ` ${OUTCOMES[outcomes[place]]}`)),
    ),
  );
  return el("nav", { class: "trials", "aria-label": "Trials" }, el("ul", {}, items));
}

/** The place of the trial to show: the one that is asked for, else the first that fails, else the first. */
function chosen({ test, outcomes }, index) {
  const asked = test.trials.findIndex((trial) => trial.index === index);
  return asked >= 0 ? asked : Math.max(outcomes.indexOf("failed"), 0);
}

/** The baseline's trial to hold a trial against: the one asked for, else one that came out the contrary, else the first. */
function contrary({ head, base }, place, index = null) {
  const passed = head.outcomes[place] === "passed";
  const asked = base.test.trials.findIndex((trial) => trial.index === index);
  return asked >= 0 ? asked : Math.max(base.outcomes.findIndex((outcome) => (outcome === "passed") !== passed), 0);
}

async function showTrial(root, { trial: index, exchange, base: beside }, late) {
  const { number, head, base } = opened;
  if (!head.test.trials.length) return;
  const place = chosen(head, index);
  const other = beside !== null && base?.test.trials.length ? contrary(opened, place, beside) : null;
  const key = `${place} ${other}`;
  const before = opened.key;
  if (key !== before) {
    const [mine, theirs] = await Promise.all([
      exchangesOf("t", number, head.packs, place),
      other === null ? null : exchangesOf("b", number, base.packs, other),
    ]);
    if (late()) return;
    const trial = head.test.trials[place];
    Object.assign(opened, { key, place, trial, at: null, beside: other === null ? null : base.test.trials[other].index });
    drawTrial(root, mine, theirs, other, index);
    for (const link of root.querySelectorAll(".trials a[data-trial]")) {
      const current = link.dataset.trial === String(trial.index);
      current ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
    }
  }
  if (exchange !== null && goTo(exchange)) return;
  if (exchange !== null) tell(`There is no exchange ${exchange} in this trial.`);
  const found = root.querySelector(".exchange.parts");
  if (other !== null && found && key !== before) goTo(opened.parting.exchange);
  else if (before !== undefined && key !== before) showNode(root.querySelector("#trial h2"));
}

function drawTrial(root, mine, theirs, other, index) {
  const { number, head, base, trial, beside } = opened;
  const outcome = head.outcomes[opened.place];
  const baseTrial = other === null ? null : base.test.trials[other];
  const name = `trial ${beside} of the baseline`;
  const href = (exchange) => addressOf(number, trial.index, exchange, beside);
  const longest = Math.max(mine.length, theirs?.length ?? 0);
  const verdicts = verdictsNode(trial.findings, {
    href: (exchange) => (exchange >= 1 && exchange <= mine.length ? href(exchange) : null),
    there: baseTrial?.findings,
    of: name,
  });
  const rests = (exchange) => [...verdicts.nodes].filter(([finding]) => finding.evidence.includes(exchange));
  opened.parting = theirs ? partingOf(mine, theirs) : null;
  const said = theirs
    ? bothNode(
        { exchanges: mine, label: `This run, trial ${trial.index}`, rests },
        { exchanges: theirs, label: `Baseline, trial ${beside}`, rests: () => [] },
        opened.parting,
        href,
      )
    : el("ol", { class: "exchanges" }, mine.map((one, place) => exchangeNode(one, { before: mine[place - 1], rests: rests(one.index), href: href(one.index) })));
  opened.nodes = [...said.children];
  if (longest > MOST_AT_ONCE) said.classList.add("many");
  const wrong = index !== null && index !== trial.index ? el("p", { class: "notice" }, `There is no trial ${index}: this is trial ${trial.index}.`) : null;
  const title = `${TESTS[number].suite} › ${TESTS[number].test}, trial ${trial.index}`;
  root.querySelector("#trial").replaceChildren(
    ...[
      el("h2", { tabindex: "-1" }, `Trial ${trial.index}: `, outcomeOf(outcome), `, score ${scoreText(trial.score)}`),
      wrong,
      endedNode(trial, mine),
      verdicts.node,
      el("h3", {}, "Conversation"),
      el("p", { class: "buttons" }, copyButton("Copy the conversation", () => conversationText(title, mine, trial.closingRemark))),
      base?.test.trials.length ? besideNode() : null,
      opened.parting ? partingNode(opened.parting, name, href) : null,
      longest ? said : el("p", {}, "Nothing was said."),
      trial.closingRemark ? closingNode(trial.closingRemark, theirs ? "User, on leaving, in this run" : "User, on leaving") : null,
      baseTrial?.closingRemark ? closingNode(baseTrial.closingRemark, "User, on leaving, in the baseline") : null,
      measuresNode(trial),
    ].filter(Boolean),
  );
}

/** The switch between this run alone and each trial of the baseline beside it. */
function besideNode() {
  const { number, base, trial, beside } = opened;
  const link = (label, to) => el("li", {}, el("a", { href: addressOf(number, trial.index, null, to), "aria-current": beside === to ? "true" : null }, label));
  const items = base.test.trials.map((one, place) => link([outcomeOf(base.outcomes[place], `Trial ${one.index}`), el("span", { class: "unseen" }, ` of the baseline, ${OUTCOMES[base.outcomes[place]]}`)], one.index));
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
    parting.exchange === null ? null : [" ", el("a", { href: href(parting.exchange) }, `Go to exchange ${parting.exchange}`)],
  );
}

function closingNode(remark, who) {
  return el("div", { class: "message user closing" }, el("p", { class: "who" }, el("strong", {}, who), " ", el("span", { class: "muted" }, "not sent")), el("div", { class: "text", dir: "auto" }, long(remark, MOST_SAID)));
}

function endedNode(trial, exchanges) {
  const details = exchanges.map((one) => one.errorDetail).filter(Boolean);
  const spoilt = ["agent_error", "failed", "interrupted"].includes(trial.status);
  const error = trial.error ?? (spoilt ? details.at(-1) : null);
  const tried = trial.attempts.map((one) => one.status.replace("_", " ") + (one.error ? ` (${one.error})` : ""));
  return el(
    "div",
    { class: "ended" },
    el("p", {}, ENDINGS[trial.status], ` ${countText(exchanges.length, "exchange")}, ${durationText(trial.durationSeconds)}.`),
    error ? el("p", { class: "notice", dir: "auto" }, el("strong", {}, "Error: "), long(error, 2000)) : null,
    tried.length > 1 ? el("p", { dir: "auto" }, `${tried.length} attempts: `, long(tried.join(", then "), 2000), ".") : null,
  );
}

/** Goes to an exchange, counted from 1: marks it, shows it, and gives it the focus. Whether there is such a one. */
function goTo(index) {
  const node = opened?.nodes?.[index - 1];
  if (!node) return false;
  for (const one of opened.nodes) one.removeAttribute("aria-current");
  node.setAttribute("aria-current", "true");
  opened.at = index;
  showNode(node);
  return true;
}

/** Gives an element the focus and brings it into sight, at once: a page that glides could not be sent elsewhere. */
function showNode(node, block = "start") {
  node.focus({ preventScroll: true });
  node.scrollIntoView({ block, behavior: "instant" });
}
