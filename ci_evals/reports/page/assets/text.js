// Foreign text for elements: long text is cut, with a button for the rest.

/** Characters of a message or a trace that are shown at once: a browser lays out no megabyte without a pause. */
const MOST_SAID = 20_000;
/** Of a name. */
const MOST_NAMED = 300;
/** Of a quote. */
const MOST_QUOTED = 2000;

/** A name in the agent's or the suite's own writing. */
function codeNode(text) {
  return el("code", { dir: "auto" }, long(text, 500));
}

/** The first half of a pair whose second one was cut off. */
const HALF = /[\ud800-\udbff]$/;

/** The beginning of `text`, where nothing can be pressed to see all. */
function cut(text, most) {
  const all = clean(text);
  return all.length > most ? begun(all, most) : all;
}

function begun(text, most) {
  return `${text.slice(0, most).replace(HALF, "")}…`;
}

/** `text` for an element; of one that is longer than `most` characters the beginning, and a button for the rest. */
function long(text, most) {
  const all = clean(text);
  if (all.length <= most) return [all];
  const shown = el("span", {}, begun(all, most));
  const show = () => {
    shown.replaceChildren(...pieces(all));
    shown.tabIndex = -1;
    shown.focus({ preventScroll: true });
    more.remove();
  };
  const more = el(
    "button",
    { type: "button", class: "more", on: { click: show } },
    `Show all ${all.length.toLocaleString("en-US")} characters`,
  );
  return [shown, " ", more];
}

const PIECE = 20_000;

/** `text` in parts, which end with a line where they can: parts out of sight are not laid out, which takes long. */
function pieces(text) {
  const found = [];
  for (let start = 0, end; start < text.length; start = end) {
    const line = text.lastIndexOf("\n", start + PIECE) + 1;
    end = line > start ? line : start + PIECE;
    if (HALF.test(text.slice(start, end))) end++;
    found.push(el("span", { class: "piece" }, text.slice(start, end)));
  }
  return found;
}
