"""The sheet that people label on: what it shows, what it must not tell, and how it is read when filled."""

import json
import random
import re
from collections import Counter
from contextlib import suppress
from html.parser import HTMLParser

import builders as build
import labeled_runs
import pytest
from each_row import each_row
from hostile_text import CORPUS
from hypothesis import given
from hypothesis import strategies as st
from labeled_runs import CRITERIA, JUDGE, REASON, judged_run

from ci_evals.domain.checks.rubric import Level, Rubric, RubricDimension
from ci_evals.domain.errors import UsageError
from ci_evals.domain.transcript import EndState
from ci_evals.extensions.calibration import items, sheet
from ci_evals.extensions.calibration.sheet_reading import count_labels, read


def sheet_files(results, most=60, seed=0) -> dict[str, str]:
    return sheet.files_of(items.sample(items.items(results), most, seed))


def run_of(*trials, **fields):
    """A run of one test with these trials."""
    return build.results(build.suite_result("S", build.test_result(trials=trials, **fields)))


def test_sample_has_as_many_fails_as_passes_over_all_criteria_and_tests():
    result = items.items(judged_run())
    fails = sum(not item.passed for item in result)
    drawn = items.sample(result, 60, 0)
    assert Counter(item.passed for item in drawn) == {True: 30, False: 30}
    drawn = items.sample(result, 160, 0)
    assert fails < 80
    assert Counter(item.passed for item in drawn) == {True: 160 - fails, False: fails}
    drawn = items.sample(result, 1000, 0)
    assert sorted(item.id for item in drawn) == sorted({item.id for item in result})
    drawn = items.sample(items.items(judged_run()), 60, 3)
    by_criterion = Counter(item.criterion for item in drawn)
    assert set(by_criterion) == set(CRITERIA)
    assert min(by_criterion.values()) >= 10
    assert len({item.test.name for item in drawn}) >= 15


def test_verdicts_are_drawn_equally_often_in_an_order_that_depends_on_the_seed():
    """Else the sample could not be weighted back, or the order would tell of outcomes."""
    outcome = items.items(judged_run(tests=6))
    times = Counter(item.id for seed in range(400) for item in items.sample(outcome, 12, seed))
    for result in (True, False):
        side = [times[item.id] for item in outcome if item.passed is result]
        assert max(side) < 1.5 * sum(side) / len(side)
        assert min(side) > 0.5 * sum(side) / len(side)
    result = items.items(judged_run())
    orders = [[item.passed for item in items.sample(result, 60, seed)] for seed in range(30)]
    first_half = [sum(order[:30]) for order in orders]
    assert 12 < sum(first_half) / len(first_half) < 18
    assert sheet_files(judged_run()) == sheet_files(judged_run())
    assert sheet_files(judged_run())[sheet.SHEET] != sheet_files(judged_run(), seed=1)[sheet.SHEET]


def test_sheet_files_do_not_reveal_verdicts_of_the_judge():
    files = sheet_files(judged_run())
    for text in files.values():
        for secret in (JUDGE, REASON, "77.25", "gpt", "outcome", "passRate", "score"):
            assert secret not in text
    everything = sheet_files(judged_run(), most=10_000)
    contrary = sheet_files(judged_run(sensitivity=0.5, specificity=0.5), most=10_000)
    rows = [labeled_runs.read_sheet(files[sheet.SHEET]) for files in (everything, contrary)]
    by_id = [{row["item"]: row for row in one} for one in rows]
    assert by_id[0] == by_id[1]


def test_sheet_page_has_a_strict_content_security_policy():
    page = sheet_files(judged_run(tests=1))[sheet.PAGE]
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    assert "default-src &#39;none&#39;" in policy
    assert "require-trusted-types-for &#39;script&#39;" in policy
    assert "unsafe" not in policy
    assert not re.search(r"https?:", page)
    assert "innerHTML" not in page


def test_sheet_has_only_judged_verdicts_once_per_conversation():
    judged = build.finding(kind="judged", criterion="It greets")
    undecided = build.finding("undecided", kind="judged", cause="cannot_tell", criterion="It bows")
    steps = build.finding(kind="judged", criterion="It reasons")
    levels = (Level(score=1, name="all"), Level(score=0, name="none"))
    rubric = Rubric(pass_at=0.5, dimensions=(RubricDimension(name="reasoning", levels=levels, steps=True),))
    sound = build.trial_result(findings=(judged, build.finding(), undecided, steps))
    broken = build.trial_result(2, status=EndState.FAILED, findings=(judged,), turns=())
    result = run_of(sound, broken, rubrics={4: rubric})
    assert [item.criterion for item in items.items(result)] == ["It greets"]
    both = [(build.finding(verdict, kind="judged"),) for verdict in ("failed", "passed")]
    trials = tuple(build.trial_result(n, findings=findings) for n, findings in enumerate(both, 1))
    (item,) = items.items(run_of(*trials))
    assert item.passed is False


class Parts(HTMLParser):
    """The elements of a page, and what its script is given."""

    def __init__(self, text: str):
        super().__init__()
        self.tags, self.data, self._in = Counter(), "", None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self._in = dict(attrs).get("id") if tag == "script" else None
        assert not [name for name, _ in attrs if name.startswith("on") or name == "style"]

    def handle_data(self, text):
        if self._in == "sheet":
            self.data += text

    def handle_endtag(self, tag):
        self._in = None


@each_row("text", [*CORPUS, "</script><script>alert(1)</script>", "</script >", "<!--<script>"])
def test_hostile_text_adds_no_tags_to_page_and_survives_on_sheet(text):
    findings = (build.finding(kind="judged", criterion=text or "It greets"),)
    turns = (build.turn(1, user=text, agent=text),)
    trial = build.trial_result(turns=turns, findings=findings, closing_remark=text or None)
    files = sheet_files(run_of(trial, guidelines=text or "none", user_info={"note": text}))
    plain = Parts(sheet_files(judged_run(tests=1, trials=1))[sheet.PAGE])
    page = Parts(files[sheet.PAGE])
    assert page.tags == plain.tags
    (shown,) = json.loads(page.data)["items"]
    (row,) = labeled_runs.read_sheet(files[sheet.SHEET])
    assert (list(row), row["item"]) == (list(sheet.COLUMNS), shown["item"])
    for control in ("\x1b", "\u202e", "\u200b", "\x00", "\r"):
        assert control not in row["criterion"] + row["conversation"] + page.data


@each_row("text", labeled_runs.FORMULAS)
def test_sheet_cells_are_never_read_as_formulas(text):
    """Not even if a spreadsheet cuts the table by semicolons or tabs, and knows no quotation marks."""
    rng = random.Random(text)
    turns = (build.turn(1, user=text, agent=f"{rng.random()} {text}"),)
    trial = build.trial_result(turns=turns, findings=(build.finding(kind="judged", criterion=text),))
    table = sheet_files(run_of(trial))[sheet.SHEET]
    for cell in re.split(r"[;\t\r\n]|\",\"", table):
        assert not re.match(r"[\s\"]*[=+\-@＝＋－＠]", cell), cell


def test_sheet_shows_levels_weights_and_limit_of_a_rubric():
    levels = (Level(score=1, name="whole", description="Nothing lacks"), Level(score=0.25, name="part"))
    rubric = Rubric(pass_at=0.5, dimensions=(RubricDimension(name="clarity", levels=levels, weight=2),))
    trial = build.trial_result(findings=(build.finding(kind="judged", criterion="It explains"),))
    (item,) = items.items(run_of(trial, rubrics={1: rubric}))
    shown = sheet.readable(item.parts)
    assert "Levels of clarity, weight 2:\n> whole (1): Nothing lacks\n> part (0.25)" in shown
    assert "if that is at least 0.5" in shown


def test_long_conversation_is_cut_on_the_sheet_and_whole_on_the_page():
    turns = (build.turn(1, agent="word " * 10_000 + "end"),)
    files = sheet_files(run_of(build.trial_result(turns=turns, findings=(build.finding(kind="judged"),))))
    (row,) = labeled_runs.read_sheet(files[sheet.SHEET])
    assert len(row["conversation"]) < 32_767
    assert row["conversation"].endswith("(cut; sheet.html has it whole)")
    assert "end" in json.loads(Parts(files[sheet.PAGE]).data)["items"][0]["parts"][-2][2]


ROWS = "item,label\ni1,pass\ni2,fail\ni3,cannot tell\ni4,\n"
LABELS = {"i1": True, "i2": False, "i3": None}


def read_labels(folder, data: str | bytes, name: str = "ada.csv") -> dict[str, bool | None]:
    file = folder / name
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    return {label.item: label.passed for label in read([file])}


@each_row("data", [
    *(ROWS, "\ufeff" + ROWS, ROWS.replace("\n", "\r\n"), ROWS.replace("\n", "\r")),
    *(ROWS.replace(",", ";"), ROWS.replace(",", "\t"), ROWS.replace(",", "\t").encode("utf-16")),
    *(ROWS.rstrip("\n"), "\n" + ROWS + "\n\n"),
    "Label , ITEM,x\nPass,i1\nFAIL,i2,\n Cannot Tell ,i3,,,\n,,\n",
    'item,note,label\ni1,"a, ""b""\n; c",pass\ni2,,fail\ni3,,cannot_tell\n',
    "item,label,note\ni1,pass,gr\xfcn\ni2,fail,\ni3,can\u2019t tell,\n".encode("cp1252"),
])  # fmt: skip
def test_sheet_is_read_in_every_encoding_and_delimiter_of_spreadsheets(tmp_path, data):
    assert read_labels(tmp_path, data) == LABELS


def test_common_words_for_labels_are_accepted(tmp_path):
    for passed, words in (
        (True, ("pass", "PASSED", "yes", "Y", "TRUE", "1", " pass ", "'pass", '"pass"')),
        (False, ("fail", "Failed", "no", "N", "False", "0", "fail.")),
        (None, ("cannot tell", "Cannot_Tell", "can't tell", "unsure", "?")),
    ):
        for word in words:
            quoted = word.replace('"', '""')
            assert read_labels(tmp_path, f'item,label\ni1,"{quoted}"\n') == {"i1": passed}, word


def test_labels_belong_to_the_person_in_the_labeller_column_or_else_the_file_name(tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "ada.csv").write_text("item,label,labeller\ni1,pass,\ni2,pass,Ben\n")
    (tmp_path / "more/Ada.csv").write_text("item,label\ni1,yes\ni3,fail\n")
    (tmp_path / "more/sheet.csv").write_text("item,label\ni1,\n")
    labels = read([tmp_path / "ada.csv", tmp_path / "more"])
    names = {(label.labeller.lower(), label.item) for label in labels}
    assert names == {("ada", "i1"), ("ben", "i2"), ("ada", "i3")}
    assert len(read([tmp_path / "ada.csv", tmp_path / "ada.csv"])) == 2


def test_count_of_labels_skips_empty_ones_and_refuses_invalid_sheets(tmp_path):
    file = tmp_path / "sheet.csv"
    assert count_labels(file) == 0
    for text, count in ((ROWS, 3), ("item,label\ni1,\n", 0)):
        file.write_text(text)
        assert count_labels(file) == count
    for text in ("my notes", "item,label\ni1,dunno\n"):
        file.write_text(text)
        with pytest.raises(UsageError):
            count_labels(file)


def errors_of(*paths) -> list[str]:
    with pytest.raises(UsageError) as refusal:
        read(paths)
    return str(refusal.value).split("\n")


def test_all_problems_of_all_sheets_are_reported_with_their_positions(tmp_path):
    first, second, third = (tmp_path / name for name in ("ada.csv", "ben.csv", "cleo.csv"))
    first.write_text('item,note,label\ni1,"two\nlines",maybe\ni2,,pass\n,,fail\n')
    second.write_text("id,verdict\ni1,pass\n")
    third.write_text("item,label,label\ni1,pass,fail\n")
    error = errors_of(first, second, third, tmp_path / "none.csv")
    assert len(error) == 5
    reason = "column label: 'maybe' is not a label; write pass, fail, cannot tell"
    assert error[0].startswith(f"{first}:2: {reason}")
    assert error[1].startswith(f"{first}:5: column item: it is empty")
    assert error[2].startswith(f"{second}:1: there is no column 'item' and none 'label'")
    assert error[3].startswith(f"{third}:1: the column 'label' appears twice")
    assert error[4] == f"{tmp_path / 'none.csv'}: cannot be read: No such file or directory"


def test_unlabeled_contradicting_or_hostile_files_are_refused_with_the_reason(tmp_path):
    for name, label in (("a", "pass"), ("b", "fail")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "sheet.csv").write_text(f"item,label\ni1,{label}\n")
    (error,) = errors_of(tmp_path / "a/sheet.csv", tmp_path / "b/sheet.csv")
    assert "'sheet' says another thing of 'i1' than at" in error
    assert "column labeller" in error
    file = tmp_path / "ada.csv"
    file.write_text(f"item,label\ni1,\x1b[31m::error::x{'y' * 500}\n")
    (error,) = errors_of(file)
    assert "\x1b" not in error
    assert len(error) < 250
    for data, why in (
        *[(b"", "it is empty"), (b"item,label\n", "no label in it")],
        (b"item,label\ni1,\n", "no label in it"),
        (b"PK\x03\x04rest", "a workbook or an archive"),
        (b"\x00\xff\x00", "there is no column 'item'"),
        (b'item,label\ni1,"pass\n' + b"x" * 200_000, "not CSV"),
        (b"<html>", "there is no column 'item'"),
    ):
        file = tmp_path / "ada.csv"
        file.write_bytes(data)
        (error,) = errors_of(file)
        assert why in error


@given(st.binary(max_size=300))
def test_any_file_is_read_or_a_usage_error(tmp_path_factory, data):
    file = tmp_path_factory.getbasetemp() / "any.csv"
    file.write_bytes(data)
    with suppress(UsageError):
        assert read([file])
