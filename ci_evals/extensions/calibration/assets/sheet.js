"use strict";

// Shows one item at a time and keeps what its labeller says. Foreign text becomes a text node and nothing else; the
// content-security policy forbids to parse it as markup.

const SHEET = JSON.parse(document.getElementById("sheet").textContent);
const KEPT = `ci-evals-labels-${SHEET.sheet}`;
const KEYS = { p: "pass", f: "fail", c: "cannot tell" };

const at = (id) => document.getElementById(id);
const state = kept() ?? { place: 0, labeller: "", said: {} };

/** What this browser holds of an earlier look at the sheet; null where it holds nothing, or may not. */
function kept() {
  try {
    const found = JSON.parse(localStorage.getItem(KEPT));
    return found?.said instanceof Object && SHEET.items[found.place] ? found : null;
  } catch {
    return null;
  }
}

function keep() {
  try {
    localStorage.setItem(KEPT, JSON.stringify(state));
  } catch {
    // Private windows and some settings keep nothing; what was chosen stays while the page is open.
  }
}

const said = (place) => state.said[SHEET.items[place].item] ?? { label: "", note: "" };
const isOpen = (place) => !said(place).label;

function say(change) {
  state.said[SHEET.items[state.place].item] = { ...said(state.place), ...change };
  keep();
}

function node(tag, name, ...children) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.append(...children);
  return made;
}

function show() {
  const item = SHEET.items[state.place];
  const mine = said(state.place);
  at("place").textContent = `Item ${state.place + 1} of ${SHEET.items.length}`;
  at("criterion").textContent = item.criterion;
  at("parts").replaceChildren(
    ...item.parts.map(([kind, head, text]) =>
      node("div", `part ${kind}`, node("h3", "", head), node("p", "text", text || "(nothing)")),
    ),
  );
  at("note").value = mine.note;
  at("back").disabled = state.place === 0;
  at("next").disabled = state.place === SHEET.items.length - 1;
  tell();
}

function tell() {
  const mine = said(state.place);
  for (const button of document.querySelectorAll("[data-label]")) {
    button.setAttribute("aria-pressed", String(button.dataset.label === mine.label));
  }
  const done = SHEET.items.filter((_, place) => !isOpen(place)).length;
  at("progress").textContent = `${done} of ${SHEET.items.length} labeled`;
  at("open").disabled = done === SHEET.items.length;
}

function go(place) {
  if (!SHEET.items[place]) return;
  state.place = place;
  keep();
  // Whoever comes for the first time should read how to label.
document.querySelector("details").open = !Object.keys(state.said).length;
show();
  scrollTo(0, 0);
  at("item").focus({ preventScroll: true });
}

/** To the next item without a label, from the beginning again after the last one. */
function goOn() {
  const { length } = SHEET.items;
  for (let step = 1; step <= length; step++) {
    const place = (state.place + step) % length;
    if (isOpen(place)) {
      go(place);
      return;
    }
  }
}

/** Takes a label, or takes it back where it is there already; goes on where it was the first one of its item. */
function choose(label) {
  const before = said(state.place).label;
  say({ label: before === label ? "" : label });
  tell();
  if (!before) goOn();
}

const FORMULA = new RegExp(SHEET.formula, "g");

/** `text` as sheet.csv has it: short enough for a spreadsheet, never a formula, and quoted. */
function cell(text) {
  const letters = [...text];
  const told =
    letters.length <= SHEET.mostInCell ? text : letters.slice(0, SHEET.mostInCell).join("").trimEnd() + SHEET.cut;
  return `"${told.replace(FORMULA, "$1$2'").replaceAll('"', '""')}"`;
}

function readable(parts) {
  return parts.flatMap(([, head, text]) => [`${head}:`, ...text.split("\n").map((line) => `> ${line}`)]).join("\n");
}

function table() {
  const rows = SHEET.items.map((item, place) => {
    const { label, note } = said(place);
    return [item.item, item.criterion, readable(item.parts), label, note, state.labeller];
  });
  return `\ufeff${[SHEET.columns, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("")}`;
}

function save() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([table()], { type: "text/csv" }));
  const name = state.labeller.normalize("NFC").replace(/[^\p{L}\p{N}]+/gu, "-");
  link.download = `${name.replace(/^-|-$/g, "") || "labels"}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

for (const button of document.querySelectorAll("[data-label]")) {
  button.addEventListener("click", () => choose(button.dataset.label));
}
at("note").addEventListener("input", (event) => say({ note: event.target.value }));
at("labeller").value = state.labeller;
at("labeller").addEventListener("input", (event) => {
  state.labeller = event.target.value.trim();
  keep();
});
at("back").addEventListener("click", () => go(state.place - 1));
at("next").addEventListener("click", () => go(state.place + 1));
at("open").addEventListener("click", goOn);
at("save").addEventListener("click", save);

// Programs that type for people press single letters: they can be turned off.
addEventListener("keydown", (event) => {
  const typing = event.target instanceof Element && event.target.closest("input:not([type=checkbox])");
  if (typing || event.ctrlKey || event.altKey || event.metaKey || !at("keys").checked) return;
  const key = event.key.toLowerCase();
  if (key in KEYS) choose(KEYS[key]);
  else if (key === "n") go(state.place + 1);
  else if (key === "b") go(state.place - 1);
  else return;
  event.preventDefault();
});

// Whoever comes for the first time should read how to label.
document.querySelector("details").open = !Object.keys(state.said).length;
show();
