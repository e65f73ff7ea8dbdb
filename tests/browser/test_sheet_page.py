"""The page that people label on: by keyboard, from a file, into a table that `calibrate` reads."""

from pathlib import Path

import builders as build
import labeled_runs
import pytest
from hostile_text import CORPUS
from test_accessibility import ALL, COLORS, violations

from ci_evals.extensions.calibration import items, sheet, sheet_reading

pytestmark = pytest.mark.browser
SCRIPT = "</script><script>document.title = 'owned'</script>"
HOSTILE = [*CORPUS, *labeled_runs.FORMULAS, SCRIPT, "a\nb;=1\n- c"]


def write_page(folder: Path, texts: list[str]) -> Path:
    trials = []
    for number, text in enumerate(texts, start=1):
        turns = (build.turn(1, user=text, agent=f"{number} {text}"),)
        findings = (build.finding(kind="judged", criterion=f"{text} {number}"),)
        trials.append(build.trial_result(number, turns=turns, findings=findings))
    result = items.items(build.results(build.suite_result("S", build.test_result(trials=tuple(trials)))))
    for name, text in sheet.files_of(items.sample(result, 100, 0)).items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    return folder / sheet.PAGE


def test_items_are_labeled_by_keyboard_kept_over_reload_and_saved(browser, tmp_path):
    page_file = write_page(tmp_path, HOSTILE)
    with browser.new_context(accept_downloads=True) as context:
        page = context.new_page()
        events = []
        page.on("console", lambda result: events.append(result.text))
        page.on("pageerror", lambda error: events.append(str(error)))
        page.on("request", lambda asked: events.append(asked.url))
        page.goto(page_file.as_uri())
        events.remove(page_file.as_uri())
        page.set_default_timeout(10_000)
        count = len(HOSTILE)
        assert page.locator("#progress").text_content() == f"0 of {count} labeled"
        page.keyboard.press("p")
        assert page.locator("#place").text_content() == f"Item 2 of {count}"
        page.locator("#note").press_sequentially("=pf")
        page.locator("[data-label='cannot tell']").focus()
        page.keyboard.press("Enter")
        page.locator("#labeller").fill("Ada Ü; =1")
        for _ in range(50):  # a browser writes down what a page keeps when it has the time
            page.reload()
            events.remove(page_file.as_uri())
            if "0 of" not in page.locator("#progress").text_content():
                break
            page.wait_for_timeout(50)
        assert page.locator("#progress").text_content() == f"2 of {count} labeled"
        assert page.locator("#place").text_content() == f"Item 3 of {count}"
        page.keyboard.press("b")
        assert page.locator("[aria-pressed=true]").text_content() == "Cannot tell"
        with page.expect_download() as saved:
            page.locator("#save").press("Enter")
        assert saved.value.suggested_filename == "Ada-Ü-1.csv"
        file = tmp_path / "saved.csv"
        saved.value.save_as(file)
        assert page.title() == f"Sheet of {count} to label"
        assert [event for event in events if not event.startswith("blob:")] == []
    empty = labeled_runs.read_sheet((tmp_path / sheet.SHEET).read_bytes().decode())
    rows = labeled_runs.read_sheet(file.read_bytes().decode())
    labels = [(row["label"], row["note"]) for row in rows[:3]]
    assert labels == [("pass", ""), ("cannot tell", "'=pf"), ("", "")]
    blank = {"label": "", "note": "", "labeller": ""}
    assert [row | blank for row in rows] == empty
    assert [label.passed for label in sheet_reading.read([file])] == [True, None]


def test_labeling_page_is_accessible(look, tmp_path):
    page = look(write_page(tmp_path, HOSTILE[-8:]), width=400)
    assert page.locator("details[open] li").count() > 5
    page.locator("[data-label=fail]").click()
    page.locator("#back").click()
    assert violations(page, ALL) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, COLORS) == []
