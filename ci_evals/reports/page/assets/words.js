// How numbers and outcomes are told: the rules and the words of the other reports.

/** The outcomes of a test, a trial or a verdict. */
const OUTCOMES = { passed: "passed", failed: "failed", error: "error", undecided: "undecided", not_run: "not run" };

/** Why a verdict is undecided. */
const CAUSES = {
  no_evidence: "no trace to decide it on",
  judge_error: "a model gave no usable answer",
  void_answer: "the judge's answer does not count",
  no_judge: "no judge",
  no_model: "no embedding model",
  cannot_tell: "the judge cannot tell",
};

/** How a conversation ended. */
const ENDINGS = {
  completed: "All planned turns were played.",
  stopped: "The simulated user said that it was done.",
  escalated: "The agent handed over to a person.",
  agent_error: "The agent answered with an error.",
  failed: "The conversation failed.",
  invalid_user: "Left out of every score, since the simulated user broke its role.",
  interrupted: "The run was stopped while this trial was under way.",
};

/** Who used tokens. */
const ROLES = {
  user: "simulated user",
  judge: "judge",
  auditor: "auditor of the user",
  embedder: "embedding model",
  agent: "agent",
};

/** An outcome with its sign, which is not read out, since the word is. */
function outcomeOf(outcome, words = OUTCOMES[outcome]) {
  return el("span", { class: "outcome" }, el("span", { class: `mark ${outcome}`, "aria-hidden": "true" }), words);
}

/** A score in points with one decimal, never rounded up. */
function scoreText(points) {
  if (points === null) return "n/a";
  const text = String(points);
  const [units, decimals = "0"] = text.includes("e") ? ["0"] : text.split(".");
  return `${units}.${decimals[0]}`;
}

/** How long the agent took to answer. */
function latencyText(seconds) {
  if (seconds > 0 && seconds < 0.0005) return "below 0.001 s";
  return `${seconds.toFixed(seconds < 0.1 ? 3 : 2)} s`;
}

/** How long something took. */
function durationText(seconds) {
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const rounded = Math.round(seconds);
  const minutes = Math.floor(rounded / 60);
  if (rounded < 60) return `${rounded} s`;
  return minutes < 60 ? `${minutes} m ${rounded % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
}

/** What is beyond a whole, as a part of it. */
function excessText(part) {
  const percent = Math.round(100 * part);
  return `${percent > 0 ? "+" : ""}${percent} %`;
}

/** US dollars. */
function moneyText(dollars) {
  if (dollars > 0 && dollars < 0.0001) return "below $0.0001";
  return `$${dollars.toFixed(dollars > 0 && dollars < 0.1 ? 4 : 2)}`;
}

/** A number of things: `1 test`, `2,000 tests`. */
function countText(number, noun, plural = `${noun}s`) {
  return `${number.toLocaleString("en-US")} ${number === 1 ? noun : plural}`;
}

/** JSON on many lines. */
function jsonLines(value) {
  return JSON.stringify(value, (_, one) => (typeof one === "bigint" ? JSON.rawJSON(String(one)) : one), 2);
}

/** JSON on one line, with blanks as the other reports have it. */
function jsonText(value) {
  return onOneLine(value, Object.keys, JSON.stringify);
}

/** The same text for equal values, and for no others. */
function canonical(value) {
  const whole = (one) => (Number.isInteger(one) ? String(BigInt(one)) : JSON.stringify(one));
  return onOneLine(value, (object) => Object.keys(object).sort(), whole);
}

function onOneLine(value, keysOf, written) {
  if (Array.isArray(value)) return `[${value.map((item) => onOneLine(item, keysOf, written)).join(", ")}]`;
  if (typeof value === "bigint") return String(value);
  if (value === null || typeof value !== "object") return written(value);
  const parts = keysOf(value).map((key) => `${JSON.stringify(key)}: ${onOneLine(value[key], keysOf, written)}`);
  return `{${parts.join(", ")}}`;
}

/** `parts` with a dot between each two; what is null is passed over. */
function dotted(parts) {
  return parts
    .flat()
    .filter((part) => part !== null && part !== undefined && part !== "")
    .flatMap((part, place) => (place ? [" · ", part] : [part]));
}
