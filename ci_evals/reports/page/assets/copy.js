// Buttons that copy, and the line in which the page says what it did.

/** Milliseconds for which it stands. */
const SHOWN_FOR = 8000;

/** Shows `text` for a while, and has screen readers read it. */
function announce(text) {
  const line = document.getElementById("announcement");
  if (!line) return;
  line.textContent = text;
  setTimeout(() => {
    if (line.textContent === text) line.textContent = "";
  }, SHOWN_FOR);
}

/** A button that copies what `text` gives when it is pressed, without signs that cannot be shown. */
function copyButton(label, text) {
  const press = async () => {
    const done = await copied(clean(await text()));
    announce(
      done
        ? `Copied: ${label.replace(/^Copy (the )?/, "")}.`
        : "The browser blocked copying. Select the text and copy it yourself.",
    );
  };
  return el("button", { type: "button", class: "copy", on: { click: press } }, label);
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedFromField(text);
  }
}

/** For browsers that give files no clipboard. */
function copiedFromField(text) {
  const before = document.activeElement;
  const field = el("textarea", { class: "unseen", readonly: true, "aria-hidden": "true" });
  field.value = text;
  document.body.append(field);
  field.select();
  let done = false;
  try {
    done = document.execCommand("copy");
  } catch {
    // The browser forbids it: the caller says so.
  }
  field.remove();
  before?.focus({ preventScroll: true });
  return done;
}

/** A conversation as text that reads well as it is, and as Markdown. */
function conversationText(title, turns, closing) {
  const quoted = (text) => (clean(text).trim() ? clean(text) : "(no text)").replace(/^/gm, "> ");
  const said = turns.flatMap((turn) => [
    `**${turn.index} · User** (${turn.source})`,
    quoted(turn.user ?? ""),
    `**${turn.index} · Agent** after ${turn.latency} · ${actionsText(turn)}`,
    quoted(turn.agent ?? ""),
  ]);
  const left = closing ? ["**User's closing remark** (not sent)", quoted(closing)] : [];
  return [`# ${title}`, ...(said.length ? said : ["No messages."]), ...left].join("\n\n") + "\n";
}
