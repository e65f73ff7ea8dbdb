"use strict";

// What all parts of the page share: elements, data, addresses. Foreign text becomes a text node or an
// attribute that is only shown, and nothing else; the content-security policy forbids to parse it as markup.

/** The tests in the order of the page: {suite, test, outcome, trials, base, same}. */
const TESTS = JSON.parse(document.getElementById("index").textContent);

/** Characters that no place can show, as the reports' own sanitiser takes them out. */
const HIDDEN = new RegExp(document.getElementById("hidden").textContent, "gu");

/** `text` as it may be shown. */
function clean(text) {
  return String(text).replace(/\r\n?|[\u2028\u2029\u0085\v\f]/g, "\n").replace(HIDDEN, "");
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
  for (const child of children.flat()) {
    if (child === null || child === undefined) continue;
    node.append(child instanceof Node ? child : document.createTextNode(clean(child)));
  }
  return node;
}

/** The JSON that stands packed in the element `id`; a promise. */
async function unpack(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

/** The test's facts and trials (`side` is "t", or "b" for the baseline), without conversations. */
function factsOf(side, number) {
  return unpack(`${side}${number}`);
}

/** The exchanges of a trial, counted from 1. */
function exchangesOf(side, number, trial) {
  return unpack(`${side}${number}.${trial}`);
}

/** The address of a test, of one of its trials, or of an exchange in it: `#suite/test/2/3`. */
function addressOf(number, trial = null, exchange = null) {
  const { suite, test } = TESTS[number];
  const parts = [encodeURIComponent(suite), encodeURIComponent(test)];
  if (trial !== null) parts.push(trial);
  if (exchange !== null) parts.push(exchange);
  return `#${parts.join("/")}`;
}

/** What an address names: {number, trial, exchange}, the last two maybe null; null where it names no test. */
function read(address) {
  const [suite, test, trial, exchange] = address.replace(/^#/, "").split("/").map(decoded);
  const number = TESTS.findIndex((one) => one.suite === suite && one.test === test);
  if (number < 0) return null;
  const count = (text) => (/^[1-9]\d{0,5}$/.test(text ?? "") ? Number(text) : null);
  return { number, trial: count(trial), exchange: count(exchange) };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
