// The switch between overview and test, by the address. The address of a section begins with `#_`, that of a test
// has a slash.

const TITLE = document.title;
const overview = document.getElementById("overview");
const notFound = document.getElementById("not-found");
let scrolled = 0;

/** Shows what the address names. `moved`: the reader followed a link, and did not just open the page. */
function show(moved) {
  const address = location.hash;
  const place = address.includes("/") ? parseAddress(address) : null;
  if (place) {
    if (!overview.hidden) scrolled = scrollY;
    openPlace(place);
  } else {
    openOverview(address, moved);
  }
}

function openPlace(place) {
  const fresh = !overview.hidden;
  const { suite, test } = TESTS[place.number];
  overview.hidden = true;
  document.getElementById("test").hidden = false;
  document.title = clean(`${test} · ${suite}`);
  if (fresh) scrollTo({ top: 0, behavior: "instant" });
  openTest(place);
}

function openOverview(address, moved) {
  const back = overview.hidden;
  overview.hidden = false;
  document.getElementById("test").hidden = true;
  document.title = TITLE;
  if (back) closeTest();
  const named = address.startsWith("#_") ? document.getElementById(address.slice(1)) : null;
  notFound.textContent = named || address.length < 2 ? "" : "This run has no test with the name in this link.";
  if (named) {
    named.scrollIntoView({ behavior: back || !moved ? "instant" : "auto" });
    if (moved) named.focus({ preventScroll: true });
  } else if (notFound.textContent) {
    scrollTo({ top: 0, behavior: "instant" });
  } else if (back) {
    scrollTo({ top: scrolled, behavior: "instant" });
  }
}

/** Automatic, light, dark: the button goes round, and the choice is kept where the browser allows it. */
function theme() {
  const button = document.getElementById("theme");
  const known = ["auto", "light", "dark"];
  const wear = (name) => {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    button.textContent = `Theme: ${name}`;
  };
  let worn = kept("ci-evals-theme");
  wear(known.includes(worn) ? worn : (worn = "auto"));
  button.addEventListener("click", () => {
    worn = known[(known.indexOf(worn) + 1) % known.length];
    wear(worn);
    keep("ci-evals-theme", worn);
  });
}

function kept(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // A browser may forbid a file to keep anything: then the next visit starts from the defaults.
  }
}

/** On paper nothing can be unfolded: all of the overview is but the numbers below charts, and of a test its verdicts. */
function unfoldForPrint() {
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("#overview details:not(.numbers, [open]), #test .passed:not([open])")];
    for (const one of folded) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of folded) one.open = false;
  });
}

/** The link that skips the head: by its address alone it would lead away from a test. */
function skip(event) {
  event.preventDefault();
  document.getElementById("_content").focus();
}

history.scrollRestoration = "manual";
document.querySelector(".tools").hidden = false;
document.querySelector(".skip").addEventListener("click", skip);
document.getElementById("print").addEventListener("click", () => print());
theme();
unfoldForPrint();
addEventListener("hashchange", () => show(true));
show(false);
