// The keys of the view of one test. They can be turned off, since programs that type for people press single letters.

const KEYS = [
  ["j, k", "next, previous turn"],
  ["], [", "next, previous trial"],
  ["b", "show or hide the baseline"],
  ["Esc", "back to all tests"],
];

function keysNode() {
  const rows = KEYS.map(([keys, does]) =>
    el(
      "div",
      { class: "row" },
      el(
        "dt",
        {},
        keys.split(", ").map((key, place) => [place ? ", " : "", el("kbd", {}, key)]),
      ),
      el("dd", {}, does),
    ),
  );
  return el(
    "details",
    { class: "keys" },
    el("summary", {}, "Keys"),
    el("dl", {}, rows),
    el("label", {}, el("input", { type: "checkbox", id: "keys-on", checked: true }), " Use letter and bracket keys"),
  );
}

addEventListener("keydown", (event) => {
  const typing = event.target instanceof Element && event.target.closest("input, select, textarea, [contenteditable]");
  if (document.getElementById("test").hidden || event.defaultPrevented || isForBrowser(event)) return;
  if (event.key === "Escape") {
    location.hash = OVERVIEW;
  } else if (opened?.nodes && !typing && document.getElementById("keys-on").checked) {
    if (handleKey(event.key)) event.preventDefault();
  }
});

/** True for a key that is pressed with another one, which is for the browser. On many keyboards a bracket takes AltGr, or Option. */
function isForBrowser({ key, ctrlKey, altKey, metaKey }) {
  return metaKey || (/^[[\]]$/.test(key) ? ctrlKey && !altKey : ctrlKey || altKey);
}

/** Act on a key; false if it has no meaning here. */
function handleKey(key) {
  switch (key) {
    case "j":
    case "k":
      step(key === "j" ? 1 : -1);
      return true;
    case "[":
    case "]":
      stepTrial(key === "]" ? 1 : -1);
      return true;
    case "b":
      turnBaseline();
      return true;
    default:
      return false;
  }
}

function step(by) {
  const count = opened.nodes.length;
  if (!count) return;
  goTo(Math.min(Math.max((opened.at ?? 0) + by, 1), count));
  history.replaceState(history.state, "", here());
}

function stepTrial(by) {
  const to = opened.head.trials[opened.place + by];
  if (to) location.hash = addressOf(opened.number, to.index, null, opened.beside);
}

function turnBaseline() {
  const { number, base, trial, at, beside } = opened;
  if (!base?.trials.length) return;
  location.hash = addressOf(number, trial.index, at, beside === null ? trial.counterpart : null);
}
