"use strict";

// What all parts of the page share: elements, data, addresses. Foreign text becomes a text node or an
// attribute that is only shown, and nothing else; the content-security policy forbids to parse it as markup.

/** The tests in the order of the page, each {suite, test, outcome, trials}, and the words for outcomes. */
const { tests: TESTS, outcomes: OUTCOMES } = JSON.parse(document.getElementById("index").textContent);

/** Signs that cannot be shown, and their replacements: the steps of the reports' own sanitizer, in its order. */
const UNSEEN = document
  .getElementById("hidden")
  .textContent.split("\n")
  .map((pattern, step) => [new RegExp(pattern, "gu"), ["\n", "\ufffd"][step] ?? ""]);

/** `text` with U+FFFD for each half of a surrogate pair, which no address can hold. */
function whole(text) {
  return text.replace(UNSEEN[1][0], "\ufffd");
}

const PLAIN = /^[\t\n\x20-\x7e]*$/;

/** `text` as it may be shown. */
function clean(text) {
  const raw = String(text);
  return PLAIN.test(raw) ? raw : UNSEEN.reduce((left, [what, by]) => left.replace(what, by), raw);
}

/**
 * An element. `props` are attributes, but for `on` ({event: listener}); what is null or false is left out.
 * Children are elements, or texts, which are cleaned; null is passed over.
 */
function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? "" : clean(value));
    }
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined) continue;
    node.append(child instanceof Node ? child : document.createTextNode(clean(child)));
  }
  return node;
}

/** `parts` with a dot between each two; empty ones are left out. */
function dotted(parts) {
  return separated(
    parts.flat().filter((part) => part !== null && part !== undefined && part !== ""),
    " · ",
  );
}

function separated(parts, separator = ", ") {
  return parts.flatMap((part, place) => (place ? [separator, part] : [part]));
}

/** An outcome with its sign, which is not read out, since the word is. */
function outcomeOf(outcome, words = OUTCOMES[outcome]) {
  return el("span", { class: "outcome" }, el("span", { class: `mark ${outcome}`, "aria-hidden": "true" }), words);
}

/** A table that is scrolled where it is too wide. Each row begins with its name; cells are texts or elements. */
function tableNode(label, headers, rows) {
  const cells = ([name, ...others]) => [
    el("th", { scope: "row", dir: "auto" }, name),
    others.map((cell) => el("td", { dir: "auto" }, cell)),
  ];
  const head = headers.map((name) => el("th", { scope: "col" }, name));
  const body = rows.map((row) => el("tr", {}, cells(row)));
  return el(
    "div",
    { class: "table", tabindex: "0", role: "group", "aria-label": label },
    el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)),
  );
}

/** The JSON that stands packed in the element `id`, of tests as `reports/page/test_data.py` makes it; a promise. */
async function unpack(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/**
 * The turns of the trial at a place, from 0, among those of a test. `side` is "t", or "b" for the baseline, and
 * `packs` are that side's.
 */
async function turnsOf(side, number, packs, place) {
  let pack = 0;
  let first = 0;
  while (place >= first + packs[pack]) first += packs[pack++];
  return (await unpack(`${side}${number}.${pack + 1}`))[place - first];
}

/**
 * The address of a test, of one of its trials, or of a turn in it: `#suite/test/2/3`. `base` is the trial of
 * the baseline that stands beside it: `#suite/test/2/3/vs1`.
 */
function addressOf(number, trial = null, turn = null, base = null) {
  const { suite, test } = TESTS[number];
  const parts = [encodeURIComponent(whole(suite)), encodeURIComponent(whole(test))];
  if (trial !== null) parts.push(trial);
  if (turn !== null) parts.push(turn);
  if (base !== null) parts.push(`vs${base}`);
  return `#${parts.join("/")}`;
}

/** Parse an address into {number, trial, turn, base}, the others maybe null; null if it names no test. */
function parseAddress(address) {
  const [suite, test, ...places] = address.replace(/^#/, "").split("/").map(decoded);
  const number = TESTS.findIndex((one) => whole(one.suite) === suite && whole(one.test) === test);
  if (number < 0) return null;
  const count = (text) => (/^[1-9]\d{0,5}$/.test(text ?? "") ? Number(text) : null);
  const base = places.at(-1)?.startsWith("vs") ? count(places.pop().slice(2)) : null;
  return { number, trial: count(places[0]), turn: count(places[1]), base };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
