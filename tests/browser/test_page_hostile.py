"""Texts that want to be more than text, in a browser: nothing runs, loads, links or looks otherwise."""

import json
from pathlib import Path

import hostile_run
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
"""What something on the page is made of."""
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
