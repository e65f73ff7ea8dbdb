// The head of the view of one test: its traits, its outcome, and the ways to its trials and to other tests.

/** The tests in the order in which the table shows them; all of them if it does not show `number`. */
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

function headNode({ number, head, ...data }) {
  const traits = [
    outcomeOf(data.outcome),
    `score ${data.score}`,
    data.marks,
    data.difficulty ? el("span", {}, "difficulty ", long(data.difficulty, MOST_NAMED)) : null,
    data.tags ? el("span", {}, "tags ", separated(data.tags.map(codeNode))) : null,
    codeNode(data.location),
    data.notRun,
  ];
  return el(
    "div",
    { class: "head" },
    el("p", { class: "traits" }, dotted(traits)),
    data.notice ? el("p", { class: "notice" }, data.notice) : null,
    el(
      "p",
      { class: "buttons" },
      copyButton("Copy the link to this view", () => location.href.split("#")[0] + here()),
      copyButton("Copy the command to rerun this test", () => data.command),
    ),
    plannedNode(data),
    trialsNode(number, head.trials),
  );
}

function plannedNode({ guidelines = "", planned = [], optimalTools, userInfo }) {
  const turns = planned.map(({ user, expectation }) =>
    el(
      "li",
      {},
      el("span", { class: "text", dir: "auto" }, user ? long(user, 2000) : el("em", {}, "written by the simulated user")),
      expectation ? el("p", { class: "muted", dir: "auto" }, "expected: ", long(expectation, 2000)) : null,
    ),
  );
  return el(
    "details",
    { class: "planned" },
    el("summary", {}, "Test definition"),
    el("p", { class: "text", dir: "auto" }, long(guidelines, 5000)),
    el("ol", {}, turns),
    optimalTools ? el("p", {}, "Optimal tools: ", codeNode(optimalTools)) : null,
    userInfo
      ? [
          el("p", { class: "label" }, "User info"),
          el("pre", { tabindex: "0", role: "group", "aria-label": "User info" }, long(userInfo, 5000)),
        ]
      : null,
  );
}

function trialsNode(number, trials) {
  if (!trials.length) return el("p", { class: "notice" }, "No trial ran.");
  const items = trials.map(({ index, outcome, score }) =>
    el(
      "li",
      {},
      el(
        "a",
        { href: addressOf(number, index), "data-trial": index },
        outcomeOf(outcome, `Trial ${index}`),
        ` ${score ?? "excluded"}`,
        el("span", { class: "unseen" }, ` ${OUTCOMES[outcome]}`),
      ),
    ),
  );
  return el("nav", { class: "trials", "aria-label": "Trials" }, el("ul", {}, items));
}
