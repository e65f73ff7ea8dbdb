"""The badge: in two words whether the gate held, and readable in any font and by anybody."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import builders as build
from each_row import each_row

from ci_evals.reports import badge
from ci_evals.reports.names import BADGE, BADGE_DATA
from ci_evals.reports.story.story import story_of

SVG = "{http://www.w3.org/2000/svg}"
NO = build.decision(build.check(name="min-score", required=80, seen=78.19, passed=False))
RUNS = {
    "92.4 passed": build.results(score=92.49),
    "100.0 passed": build.results(),
    "failed 78.1": build.results(score=78.19, gate=NO),
    "failed 79.9": build.results(score=79.96, gate=replace(NO, exit_code=0)),  # --no-gate
    "no verdict": build.results(gate=build.decision(exit_code=3)),
    "no score": build.results(score=None, gate=build.decision(passed=False, exit_code=3)),
    "passed, mostly undecided": build.results(decided_share=0.5),
    "failed, mostly undecided": build.results(score=78.19, gate=NO, decided_share=0.5),
    "skipped": build.results(score=None, run=build.run_info(status="skipped")),
}


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_docs_list_all_badge_texts():
    page = Path(__file__).parents[2].joinpath("docs/report.md").read_text()
    paragraph = page.partition("shows the result in two words:")[2].partition("`badge.svg`")[0]
    named = set(re.findall(r"`([^`]+)`", " ".join(paragraph.split())))
    assert {re.sub(r"[\d.]+", "N", text) for text in named} == {re.sub(r"[\d.]+", "N", text) for text in RUNS}


def test_badge_color_follows_run_outcome():
    fields = {message: badge.badge_of(story_of(run)) for message, run in RUNS.items()}
    assert fields["100.0 passed"].shade == "brightgreen"
    assert {fields["failed 78.1"].shade, fields["failed 79.9"].shade} == {"red"}
    assert len({one.ground for one in fields.values()}) == len({one.shade for one in fields.values()}) == 4


@each_row("message", RUNS)
def test_badge_svg_and_json_show_outcome_and_score_in_accessible_text_with_contrast(message):
    files = badge.files(story_of(RUNS[message]))
    picture = ET.fromstring("".join(files[BADGE]))
    label, text = picture.iter(f"{SVG}text")
    assert (label.text, text.text) == ("evals", message)
    assert picture.find(f"{SVG}title").text == f"evals: {message}"
    assert (picture.get("role"), picture.get("aria-label")) == ("img", f"evals: {message}")
    data = json.loads("".join(files[BADGE_DATA]))
    assert data == {"schemaVersion": 1, "label": "evals", "message": message, "color": data["color"]}
    for ground in (*picture.iter(f"{SVG}rect"), *picture.iter(f"{SVG}path")):
        assert 1.05 / (luminance(ground.get("fill")) + 0.05) >= 4.5
    ends = [int(one.get("x")) + int(one.get("textLength")) for one in (label, text)]
    assert ends[0] < int(text.get("x"))
    assert ends[1] < int(picture.get("width"))
