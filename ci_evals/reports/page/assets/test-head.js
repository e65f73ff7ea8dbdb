// The head of the view of one test: what it is, what came of it, and the ways to its trials and to other tests.

/** The tests in the order in which the table shows them; all of them where it does not show `number`. */
function testsInOrder(number) {
  const numbers = new Map(TESTS.map((_, place) => [addressOf(place), place]));
  const links = document.querySelectorAll("#tests tbody tr:not([hidden]) th a");
  const shown = [...links].map((link) => numbers.get(link.getAttribute("href"))).filter((one) => one !== undefined);
  return shown.includes(number) ? shown : TESTS.map((_, place) => place);
}

/** The links to the overview and to the tests before and after. */
function wayNode(number) {
  const order = testsInOrder(number);
  const at = order.indexOf(number);
  const failing = (place) => ["failed", "error"].includes(TESTS[place].outcome);
  const before = order.slice(0, Math.max(at, 0)).reverse();
  const after = order.slice(at + 1);
  const link = (label, to) =>
    to === undefined ? null : el("a", { href: addressOf(to), title: cut(TESTS[to].test, MOST_NAMED) }, label);
  return el(
    "nav",
    { class: "way", "aria-label": "Tests" },
    el("a", { href: OVERVIEW, class: "back" }, "← All tests"),
    link("Previous", before[0]),
    link("Next", after[0]),
    link("Previous failing", before.find(failing)),
    link("Next failing", after.find(failing)),
  );
}

function headNode({ number, file, head, base }) {
  const { test } = head;
  const facts = [
    outcomeOf(test.outcome),
    `score ${base ? `${scoreText(base.test.score)} (baseline) → ` : ""}${scoreText(test.score)}`,
    test.critical ? "critical" : null,
    test.flaky ? "flaky" : null,
    test.difficulty ? el("span", {}, "difficulty ", long(test.difficulty, MOST_NAMED)) : null,
    test.tags.length
      ? el(
          "span",
          {},
          "tags ",
          test.tags.flatMap((tag, place) => [place ? ", " : "", codeNode(tag)]),
        )
      : null,
    codeNode(`${file}:${test.line}`),
    test.notRun ? `${countText(test.notRun, "trial")} not run` : null,
  ];
  return el(
    "div",
    { class: "head" },
    el("p", { class: "traits" }, dotted(facts)),
    base && !TESTS[number].same
      ? el(
          "p",
          { class: "notice" },
          "The baseline defined this test differently: the two were not compared, and may differ for that alone.",
        )
      : null,
    el(
      "p",
      { class: "buttons" },
      copyButton("Copy the link to this place", () => location.href.split("#")[0] + here()),
      copyButton("Copy the command to play this test again", () => commandOf(file, test.name)),
    ),
    plannedNode(test),
    trialsNode(number, head),
  );
}

function plannedNode(test) {
  const turns = test.turns.map((turn) =>
    el(
      "li",
      {},
      el(
        "span",
        { class: "text", dir: "auto" },
        turn.user === "auto" ? el("em", {}, "written by the simulated user") : long(turn.user, 2000),
      ),
      turn.expectation ? el("p", { class: "muted", dir: "auto" }, "expected: ", long(turn.expectation, 2000)) : null,
    ),
  );
  return el(
    "details",
    { class: "planned" },
    el("summary", {}, "The simulated user, and the turns planned"),
    el("p", { class: "text", dir: "auto" }, long(test.guidelines, 5000)),
    el("ol", {}, turns),
    test.optimalTools
      ? el("p", {}, "The shortest right conversation runs: ", codeNode(test.optimalTools.join(", ") || "nothing"))
      : null,
    Object.keys(test.userInfo).length
      ? [
          el("p", { class: "label" }, "The user's data"),
          el(
            "pre",
            { tabindex: "0", role: "group", "aria-label": "The user's data" },
            long(jsonLines(test.userInfo), 5000),
          ),
        ]
      : null,
  );
}

function trialsNode(number, { test, outcomes }) {
  if (!test.trials.length) return el("p", { class: "notice" }, "No trial was started.");
  const items = test.trials.map((trial, place) =>
    el(
      "li",
      {},
      el(
        "a",
        { href: addressOf(number, trial.index), "data-trial": trial.index },
        outcomeOf(outcomes[place], `Trial ${trial.index}`),
        trial.status === "invalid_user" ? " left out" : ` ${scoreText(trial.score)}`,
        el("span", { class: "unseen" }, ` ${OUTCOMES[outcomes[place]]}`),
      ),
    ),
  );
  return el("nav", { class: "trials", "aria-label": "Trials" }, el("ul", {}, items));
}
