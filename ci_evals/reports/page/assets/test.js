// The view of one test: its head, its trials, and the conversation of one of them, alone or beside the baseline's.

/** What is shown: {number, head, base, place of the trial, ...}; null while none is. */
let opened = null;
/** What had the focus on the overview. */
let cameFrom = null;
/** Counts what was asked for, so that what an earlier address asked for and comes late is not shown. */
let asked = 0;

const OVERVIEW = "#";

/** Shows what `place` names: {number, trial, turn, base}, all but the number maybe null. */
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
    const spoilt = root.querySelector(".loading") ?? root.querySelector("#trial");
    spoilt?.replaceWith(el("p", { class: "notice", role: "alert" }, unreadable(error)));
  }
}

/** Leaves the view: the focus goes back to where it came from, or where that was nowhere to the start. */
function closeTest() {
  asked++;
  opened = null;
  document.getElementById("test").replaceChildren();
  const to = cameFrom && cameFrom !== document.body ? cameFrom : document.getElementById("_content");
  to.focus({ preventScroll: true });
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
    return (
      "This browser cannot unpack the conversations. " +
      "Open the page in a browser of 2023 or later: Chrome, Edge, Firefox 113 or Safari 16.4."
    );
  }
  return (
    `The data of this test cannot be read (${error.message}). The file may be cut short: write it anew with ` +
    `"ci-evals report". What it shows also stands in _results.json.`
  );
}

/** The place of the trial to show: the one that is asked for, else the first of the worst. */
function chosen({ test, outcomes }, index) {
  const asked = test.trials.findIndex((trial) => trial.index === index);
  const worst = ["failed", "error", "undecided"].find((outcome) => outcomes.includes(outcome));
  return asked >= 0 ? asked : Math.max(outcomes.indexOf(worst), 0);
}

/**
 * The baseline's trial to hold one against: the one asked for, else the first that came out the contrary, else the
 * first; of those that did not break off, where there are any.
 */
function contrary({ head, base }, place, index = null) {
  const passed = head.outcomes[place] === "passed";
  const whole = (trial) => !["failed", "interrupted"].includes(trial.status);
  const { trials } = base.test;
  const asked = trials.findIndex((trial) => trial.index === index);
  const other = trials.findIndex((trial, at) => whole(trial) && (base.outcomes[at] === "passed") !== passed);
  return [asked, other, trials.findIndex(whole), 0].find((found) => found >= 0);
}

async function showTrial(root, { trial: index, turn, base: beside }, late) {
  const { number, head, base } = opened;
  if (!head.test.trials.length) return;
  const place = chosen(head, index);
  const other = beside !== null && base?.test.trials.length ? contrary(opened, place, beside) : null;
  const key = `${place} ${other}`;
  const before = opened.key;
  if (key !== before) {
    const [mine, theirs] = await Promise.all([
      turnsOf("t", number, head.packs, place),
      other === null ? null : turnsOf("b", number, base.packs, other),
    ]);
    if (late()) return;
    const trial = head.test.trials[place];
    Object.assign(opened, {
      key,
      place,
      trial,
      at: null,
      beside: other === null ? null : base.test.trials[other].index,
    });
    drawTrial(root, mine, theirs, other, index);
    for (const link of root.querySelectorAll(".trials a[data-trial]")) {
      if (link.dataset.trial === String(trial.index)) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    for (const link of root.querySelectorAll(".trials [aria-current]")) {
      const list = link.closest("ul");
      list.scrollTop = link.offsetTop - list.offsetTop - list.clientHeight / 2;
    }
  }
  if (turn !== null && goTo(turn)) return;
  if (turn !== null) tell(`There is no turn ${turn} in this trial.`);
  if (key === before) mark(null);
  else if (opened.parting?.turn) goTo(opened.parting.turn);
  else if (before !== undefined) showNode(root.querySelector("#trial h2"));
}

/** The address of what is shown. */
function here() {
  const { number, trial, at, beside } = opened;
  return addressOf(number, trial?.index ?? null, at ?? null, beside ?? null);
}

/** Goes to a turn, counted from 1: marks it, shows it, and gives it the focus. Whether there is such a one. */
function goTo(index) {
  const node = opened?.nodes?.[index - 1];
  if (!node) return false;
  mark(index);
  showNode(node);
  return true;
}

/** Marks a turn, and no other one; none where it is null. */
function mark(index) {
  opened.nodes.forEach((node, place) => {
    if (place + 1 === index) node.setAttribute("aria-current", "true");
    else node.removeAttribute("aria-current");
  });
  opened.at = index;
}

/** Gives an element the focus and brings it into sight, at once: a page that glides could not be sent elsewhere. */
function showNode(node, block = "start") {
  node.focus({ preventScroll: true });
  node.scrollIntoView({ block, behavior: "instant" });
}

// A link to the place that the address names already changes no address: whoever follows it wants to be there again.
document.getElementById("test").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (opened && link?.getAttribute("href") === location.hash) openTest(read(location.hash));
});
