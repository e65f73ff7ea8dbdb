// What the agent did for a reply, as its trace tells. A trace that never came is not the same as nothing done.

const NO_TRACE = "no trace came with this reply";
const NOTHING = "nothing: no workflow, parameter, rule or integration";
const KINDS = ["workflow", "parameter", "rule", "integration"];

/** Whether a reply tells what was done for it. */
function traced(one) {
  return (
    [one.workflows, one.params, one.rules, one.integrations].some((part) => part !== null) || one.namedParams.length > 0
  );
}

/**
 * The deeds of a reply, each {kind, name, value, key, ...}; equal ones have equal keys. A call's value is its status.
 */
function deedsOf(one) {
  const deed = (kind, name, value = null, more = {}) => ({
    kind,
    name,
    value,
    key: `${kind} ${JSON.stringify(name)} ${canonical(value)}`,
    ...more,
  });
  return [
    ...(one.workflows ?? []).map((name) => deed("workflow", name)),
    ...Object.entries(one.params ?? {}).map(([name, value]) => deed("parameter", name, value)),
    ...one.namedParams.map((name) => deed("parameter", name, null, { untold: true })),
    ...(one.rules ?? []).map((name) => deed("rule", name)),
    ...(one.integrations ?? []).map((call) => deed("integration", call.code, call.status, { call })),
  ];
}

/** The deeds of a reply that can be held against those of `other`: what is not told there was not left out. */
function comparable(one, other) {
  const told = {
    workflow: !other || other.workflows !== null,
    parameter: !other || other.params !== null || other.namedParams.length > 0,
    rule: !other || other.rules !== null,
    integration: !other || other.integrations !== null,
  };
  const counts = (deed) => told[deed.kind] && !(deed.kind === "parameter" && !deed.untold && isEmpty(deed.value));
  return new Map(
    deedsOf(one)
      .filter(counts)
      .map((deed) => [deed.key, deed]),
  );
}

/** White space as the verdicts know it: the script's own has U+FEFF, and lacks some separators. */
const BLANK = "(?:(?!\\ufeff)[\\s\\x1c-\\x1f\\x85])*";
const NOTHING_SAID = new RegExp(`^${BLANK}(?:undefined${BLANK})?$`, "i");

/** Whether a parameter's value counts as nothing. */
function isEmpty(value) {
  if (typeof value === "string") return NOTHING_SAID.test(value);
  return value === null || (typeof value === "object" && Object.keys(value).length === 0);
}

/** A deed by its name and value, as text. */
function deedText({ kind, name, value, untold, call }) {
  if (untold) return `${name} (value not told)`;
  if (kind === "parameter") return `${name} = ${jsonText(value)}`;
  if (kind === "integration") return `${name} (${value ?? call?.type ?? "no HTTP status"})`;
  return name;
}

/** What the agent did, on one line. */
function didText(one) {
  if (!traced(one) && !one.errorResponse) return NO_TRACE;
  const deeds = deedsOf(one);
  const lists = KINDS.map((kind) => [kind, deeds.filter((deed) => deed.kind === kind)])
    .filter(([, found]) => found.length)
    .map(([kind, found]) => `${labelOf(kind, one)}: ${found.map(deedText).join(", ")}`);
  if (one.errorResponse) lists.push(`error response: ${one.errorDetail ?? "no detail"}`);
  return lists.join(" · ") || NOTHING;
}

function labelOf(kind, one) {
  return kind === "workflow" && one.workflowsDerived ? "workflows (from the trace)" : `${kind}s`;
}

/**
 * What the agent did, as a list. `before` is the turn before; `marks` says of a deed what is to be said beside
 * it, or null.
 */
function deedsNode(one, before, marks = () => null) {
  const rows = [];
  const row = (label, ...shown) => rows.push(el("div", { class: "row" }, el("dt", {}, label), el("dd", {}, ...shown)));
  const deeds = deedsOf(one);
  for (const kind of KINDS) {
    const found = deeds.filter((deed) => deed.kind === kind);
    if (found.length)
      row(
        labelOf(kind, one),
        el(
          "ul",
          { class: "deeds" },
          found.map((deed) => deedNode(deed, before, marks(deed))),
        ),
      );
  }
  if (one.errorResponse)
    row("error response", el("span", { class: "bad", dir: "auto" }, long(one.errorDetail ?? "no detail", 2000)));
  if (!rows.length) row("did", el("span", { class: "muted" }, traced(one) ? NOTHING : NO_TRACE));
  if (one.handedOver || one.workflows?.some((name) => name.startsWith("CONVERSATION_FORWARDING"))) {
    row("escalation", "handed over to a person");
  }
  if (one.inputTokens !== null || one.outputTokens !== null) {
    const told = (number) => (number === null ? "untold" : number.toLocaleString("en-US"));
    row("tokens", `${told(one.inputTokens)} read, ${told(one.outputTokens)} written`);
  }
  return el("dl", { class: "did" }, rows);
}

function deedNode(deed, before, mark) {
  const failed = deed.call && (deed.call.error !== null || deed.value >= 400);
  const name = deed.kind === "integration" ? deed.name : deedText(deed);
  const status = deed.call && dotted([deed.call.type, deed.value === null ? "no HTTP status" : `status ${deed.value}`]);
  return el(
    "li",
    { class: mark ? "deed differs" : "deed" },
    codeNode(name),
    status ? [" ", el("span", { class: failed ? "bad" : "muted" }, status)] : null,
    deed.call?.error ? [" ", el("span", { class: "bad", dir: "auto" }, "error: ", long(deed.call.error, 500))] : null,
    changeOf(deed, before),
    mark ? [" ", el("strong", { class: "only" }, mark)] : null,
  );
}

/** That a parameter has its first value since the turn before, or what it was then. */
function changeOf(deed, before) {
  if (deed.kind !== "parameter" || deed.untold || !before?.params) return null;
  const was = Object.hasOwn(before.params, deed.name) ? before.params[deed.name] : null;
  if (canonical(was) === canonical(deed.value) || (isEmpty(was) && isEmpty(deed.value))) return null;
  if (isEmpty(was)) return [" ", el("span", { class: "change" }, "new")];
  return [" ", el("span", { class: "change", dir: "auto" }, "was ", long(jsonText(was), 200))];
}

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
    `Show all ${countText(all.length, "character")}`,
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
