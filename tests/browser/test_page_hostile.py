"""Texts that want to be more than text, in a browser: nothing runs, loads, links or looks otherwise."""

import json
from pathlib import Path

import hostile_run
import page_watch
import pytest
import reliability_cases

from ci_evals.domain.results.run import Results
from ci_evals.reports.page import page
from ci_evals.reports.story.comparison_runs import ALONE, ComparisonRun, ComparisonRuns
from ci_evals.reports.story.story import story_of
from ci_evals.support.text import visible

pytestmark = pytest.mark.browser
LOOK = """() => {
  window.madeOf = (root) => {
    const parts = [...root.querySelectorAll("*")];
    const attributes = parts.flatMap((part) => [...part.attributes]);
    const names = new Set(attributes.map(({ name }) => name));
    const leads = /href|src|action|data$|ping|cite|background|poster/;
    return {
      pwned: window.pwned !== undefined,
      parts: [...new Set(parts.map((part) => part.localName)), ...names],
      styles: names.has("style") + document.querySelectorAll("style").length + document.styleSheets.length,
      scripts: [...document.scripts].filter((script) => !script.type).length,
      leads: attributes.filter(({ name, value }) => leads.test(name) && !value.startsWith("#"))
        .map(({ name, value }) => `${name}=${value}`),
    };
  };
}"""
"""Parts, styles, scripts and links of something on the page."""
WALK = """async (numbers) => {
  const test = document.getElementById("test");
  const drawn = () => test.querySelector(".turn");
  const seen = [];
  for (const number of numbers) {
    const there = new Promise((done) => addEventListener("hashchange", done, { once: true }));
    location.hash = addressOf(number);
    await there;
    while (!drawn()) await new Promise((done) => setTimeout(done));
    for (const folded of test.querySelectorAll("details")) folded.open = true;
    await new Promise((done) => setTimeout(done));
    const title = test.querySelector("h1").textContent;
    seen.push({ ...madeOf(test), title, said: test.querySelector(".message.agent .text").textContent });
  }
  return JSON.stringify(seen);
}"""
"""Opens tests one after another, unfolds all of each, and tells what it is made of and shows."""


def write(file: Path, results: Results, comparison_runs: ComparisonRuns) -> Path:
    with file.open("w", encoding="utf-8") as out:
        out.writelines(page.render(story_of(results, comparison_runs)))
    return file


def test_hostile_text_adds_no_elements_attributes_or_links_to_the_page(look, compared, tmp_path):
    """Overview, each test and its comparison consist of what those of an honest run consist of."""
    head, base = compared.head, compared.base
    others = (ComparisonRun.of(base, "then"), ComparisonRun.of(head, "now"))
    shown = look(write(tmp_path / "honest.html", head, ComparisonRuns(baseline=base, others=others)))
    shown.evaluate(LOOK)
    honest = shown.evaluate("madeOf(document)")["parts"]
    for test in json.loads(shown.evaluate(WALK, [0, 3, 8])):
        honest += test["parts"]
    known = look(write(tmp_path / "known.html", reliability_cases.results_with_all_studies(), ALONE))
    known.evaluate(LOOK)
    honest += known.evaluate("madeOf(document)")["parts"]
    for test in json.loads(known.evaluate(WALK, [0, 1])):
        honest += test["parts"]
    shown = look(write(tmp_path / "hostile.html", *hostile_run.poisoned_runs(head, base)))
    shown.evaluate(LOOK)
    overview = shown.evaluate("madeOf(document)")
    tests = json.loads(shown.evaluate(WALK, list(range(len(hostile_run.TEXTS)))))
    for seen in (overview, *tests):
        assert not seen["pwned"]
        assert set(seen["parts"]) <= set(honest)
        assert seen["styles"] == 2
        assert seen["scripts"] == 1
        assert seen["leads"] == []
    for text, seen in zip(hostile_run.TEXTS, tests, strict=True):
        start = visible(text)[:100]
        assert seen["title"].startswith(start)
        assert seen["said"].startswith(start if start.strip() else "(no text)")


def test_script_removes_the_same_characters_as_the_reports(look, compared):
    shown = look(compared.page)
    texts = [*hostile_run.TEXTS, *(chr(code) for code in range(0x3000)), *"\ufe0f\ufffe\uffff\U000e0100"]
    message = json.dumps([(text, visible(text)) for text in texts])
    differ = """(told) => JSON.parse(told).filter(([text, shown]) => clean(text) !== shown)"""
    assert shown.evaluate(differ, message) == []


TRY = """async () => {
  const add = (tag, props) => document.body.append(Object.assign(document.createElement(tag), props));
  const attempts = {
    script: () => {
      const script = document.createElement("script");
      script.append(document.createTextNode("window.pwned = 1"));
      document.body.append(script);
    },
    address: () => add("script", { src: "http://127.0.0.1:9/" }),
    eval: () => eval("window.pwned = 1"),
    listener: () => document.body.setAttribute("onclick", "window.pwned = 1"),
    markup: () => { document.body.innerHTML += "<b>x</b>"; },
    trust: () => trustedTypes.createPolicy("mine", {}),
    link: () => { add("a", { href: "javascript:window.pwned=1" }); document.body.lastChild.click(); },
    style: () => add("style", { textContent: "body { display: none }" }),
    sheet: () => add("link", { rel: "stylesheet", href: "http://127.0.0.1:9/" }),
    dress: () => document.body.setAttribute("style", "display: none"),
    image: () => add("img", { src: "data:image/gif;base64,R0lGODlhAQABAAAAACw=" }),
    sound: () => add("audio", { src: "data:audio/wav,x" }),
    frame: () => add("iframe", { src: "data:text/html,x" }),
    object: () => add("object", { data: "data:text/html,x" }),
    worker: () => new Worker("data:text/javascript,1"),
    request: () => fetch("http://127.0.0.1:9/").catch(() => {}),
    beacon: () => navigator.sendBeacon("http://127.0.0.1:9/"),
    base: () => add("base", { href: "http://127.0.0.1:9/" }),
    form: () => { add("form", { action: "http://127.0.0.1:9/" }); document.body.lastChild.submit(); },
  };
  let refused = 0;
  addEventListener("securitypolicyviolation", () => { refused++; });
  const left = [];
  for (const [name, attempt] of Object.entries(attempts)) {
    const before = refused;
    setTimeout(() => { try { attempt(); } catch { } });  // in the page's own name, and not in the debugger's
    for (let wait = 0; wait < 100 && refused === before; wait++) {
      await new Promise((done) => setTimeout(done, 10));
    }
    if (refused === before) left.push(name);
  }
  const hidden = getComputedStyle(document.body).display === "none";
  return { left, pwned: window.pwned !== undefined, hidden };
}"""
"""Does all that the policy forbids, and tells what was not refused."""


@pytest.fixture
def blank_page(profile):
    page = profile.new_page()
    yield page
    page.close()


def test_content_security_policy_blocks_scripts_styles_requests_and_markup(blank_page, compared):
    blank_page.goto(compared.page.as_uri())
    assert blank_page.evaluate(TRY) == {"left": [], "pwned": False, "hidden": False}


def test_changed_script_or_style_is_blocked_by_its_hash(blank_page, compared, tmp_path):
    whole, file = compared.page.read_text(), tmp_path / "changed.html"
    for mark, other, works in (
        ('"use strict";', '"use strict";', True),
        ('"use strict";', '"use strict"; window.pwned = 1;', False),
        ("<style>", "<style>body { top: 0 } ", False),
    ):
        assert whole.count(mark) == 1
        file.write_text(whole.replace(mark, other))
        blank_page.goto(file.as_uri())
        styles = "document.styleSheets[0]?.cssRules.length > 0"
        ran, worn = blank_page.evaluate(f"[typeof TESTS !== 'undefined', {styles}]")
        assert ((ran and worn), blank_page.evaluate("window.pwned")) == (works, None)


WICKED = """<!doctype html><meta charset="utf-8"><title>x</title><link rel="stylesheet" href="style.css">
<img src="http://127.0.0.1:9/pixel.png"><a id="away" href="about:blank">x</a><script>
console.error("complaint"); console.log("only said"); alert("boo"); window.open("about:blank");
try { new WebSocket("ws://127.0.0.1:9/"); } catch { }
navigator.sendBeacon("http://127.0.0.1:9/beacon");
setTimeout(() => { throw new Error("thrown"); }); setTimeout(() => { document.title = "done"; }, 50);
</script>"""


def test_watch_records_requests_errors_dialogs_tabs_and_exits_but_no_logs_or_anchors(profile, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(WICKED)
    watch = page_watch.Watch(profile, file)
    watch.page.wait_for_function("document.title === 'done'")
    watch.page.click("#away")
    watch.page.wait_for_url("about:blank")
    watch.close()
    for event in (
        f"request: GET {tmp_path.as_uri()}/style.css",
        "request: GET http://127.0.0.1:9/pixel.png",
        "request: POST http://127.0.0.1:9/beacon",
        "socket: ws://127.0.0.1:9/",
        "console: error: complaint",
        "error: thrown",
        "dialog: alert: boo",
        "tab: about:blank",
        "went to: about:blank",
    ):
        assert event in watch.events
    assert not any("only said" in event for event in watch.events)
    file.write_text('<!doctype html><title>x</title><a id="here" href="#here">x</a>')
    watch = page_watch.Watch(profile, file)
    watch.page.click("#here")
    watch.page.wait_for_url("**#here")
    watch.close()
    assert watch.events == []
