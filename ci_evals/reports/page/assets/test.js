// The view of one test: its head, its trials, and the conversation of one of them, alone or beside the baseline's.

/** The test that is shown: its data and number, the place of the trial, ...; null while there is none. */
let opened = null;
/** The element that had the focus on the overview. */
let cameFrom = null;
/** Counts requests, so that the late answer to an earlier one is not shown. */
let requests = 0;

const OVERVIEW = "#";

/** Shows what `place` names: {number, trial, turn, base}, all but the number maybe null. */
async function openTest(place) {
  const request = ++requests;
  const root = document.getElementById("test");
  try {
    if (opened?.number !== place.number) {
      opened = null;
      beginTest(root, place.number);
      const data = await unpack(`t${place.number}`);
      if (request !== requests) return;
      opened = { number: place.number, ...data };
      root.querySelector(".loading").replaceWith(headNode(opened), el("div", { id: "trial" }));
    }
    await showTrial(root, place, () => request !== requests);
  } catch (error) {
    if (request !== requests) return;
    opened = null;
    const placeholder = root.querySelector(".loading") ?? root.querySelector("#trial");
    placeholder?.replaceWith(el("p", { class: "notice", role: "alert" }, unreadable(error)));
  }
}

/** Leaves the view: the focus goes back to where it came from, or else to the start. */
function closeTest() {
  requests++;
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
    el("p", { id: "announcement", role: "status" }),
  );
  scrollTo({ top: 0, behavior: "instant" });
  heading.focus({ preventScroll: true });
}

function unreadable(error) {
  if (typeof DecompressionStream === "undefined") {
    return (
      "This browser cannot decompress the conversations. " +
      "Open the page in Chrome, Edge, Firefox 113, Safari 16.4, or later."
    );
  }
  return (
    `The data of this test cannot be read (${error.message}). The file may be incomplete: write it again with ` +
    `"ci-evals report". _results.json has the same data.`
  );
}

/** The place of the trial of this index, or else of the other one. */
function placeOf({ trials }, index, otherwise) {
  const place = trials.findIndex((trial) => trial.index === index);
  return place >= 0 ? place : trials.findIndex((trial) => trial.index === otherwise);
}

async function showTrial(root, { trial: index, turn, base: beside }, late) {
  const { number, head, base, worst } = opened;
  if (!head.trials.length) return;
  const place = placeOf(head, index, worst);
  const trial = head.trials[place];
  const other = beside !== null && base?.trials.length ? placeOf(base, beside, trial.counterpart) : null;
  const key = `${place} ${other}`;
  const before = opened.key;
  if (key !== before) {
    const [turns, baseTurns] = await Promise.all([
      turnsOf("t", number, head.packs, place),
      other === null ? null : turnsOf("b", number, base.packs, other),
    ]);
    if (late()) return;
    const baseTrial = other === null ? null : base.trials[other];
    const divergence = other === null ? null : opened.divergences[opened.pairs[place][other]];
    Object.assign(opened, { key, place, trial, divergence, at: null, beside: baseTrial?.index ?? null });
    drawTrial(root, turns, baseTurns, baseTrial, index);
    showCurrent(root, trial);
  }
  if (turn !== null && goTo(turn)) return;
  if (turn !== null) announce(`There is no turn ${turn} in this trial.`);
  if (key === before) mark(null);
  else if (opened.divergence?.turn) goTo(opened.divergence.turn);
  else if (before !== undefined) showNode(root.querySelector("#trial h2"));
}

/** Marks the trial in the list of all, and brings what is marked in a list into sight. */
function showCurrent(root, trial) {
  for (const link of root.querySelectorAll(".trials a[data-trial]")) {
    if (link.dataset.trial === String(trial.index)) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  for (const link of root.querySelectorAll(".trials [aria-current]")) {
    const list = link.closest("ul");
    list.scrollTop = link.offsetTop - list.offsetTop - list.clientHeight / 2;
  }
}

/** The address of what is shown. */
function here() {
  const { number, trial, at, beside } = opened;
  return addressOf(number, trial?.index ?? null, at ?? null, beside ?? null);
}

/** Goes to a turn, counted from 1: marks it, shows it, and gives it the focus. False if there is no such turn. */
function goTo(index) {
  const node = opened?.nodes?.[index - 1];
  if (!node) return false;
  mark(index);
  showNode(node);
  return true;
}

/** Marks a turn, and no other one; none if it is null. */
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
  if (opened && link?.getAttribute("href") === location.hash) openTest(parseAddress(location.hash));
});
