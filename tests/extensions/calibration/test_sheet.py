"""The sheet that people label on: what is drawn, what it shows, and what it must not tell."""

import json
import random
import re
from collections import Counter
from html.parser import HTMLParser

import builders as build
import labeled_runs
from each_row import each_row
from hostile_text import CORPUS
from labeled_runs import CRITERIA, JUDGE, REASON, judged_run

from ci_evals.domain.checks.rubric import Level, Rubric, RubricDimension
from ci_evals.domain.transcript import EndState
from ci_evals.extensions.calibration import items, sheet


def sheet_files(found, most=60, seed=0) -> dict[str, str]:
    return sheet.files_of(items.sample(items.items(found), most, seed))


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


def test_every_verdict_of_one_outcome_is_drawn_equally_often():
    """Else the sample could not be weighted back."""
    outcome = items.items(judged_run(tests=6))
    times = Counter(item.id for seed in range(400) for item in items.sample(outcome, 12, seed))
    for result in (True, False):
        side = [times[item.id] for item in outcome if item.passed is result]
        assert max(side) < 1.5 * sum(side) / len(side)
        assert min(side) > 0.5 * sum(side) / len(side)


def test_sheet_order_is_independent_of_outcomes_and_depends_on_seed():
    result = items.items(judged_run())
    orders = [[item.passed for item in items.sample(result, 60, seed)] for seed in range(30)]
    first_half = [sum(order[:30]) for order in orders]
    assert 12 < sum(first_half) / len(first_half) < 18
    assert sheet_files(judged_run()) == sheet_files(judged_run())
    assert sheet_files(judged_run())[sheet.SHEET] != sheet_files(judged_run(), seed=1)[sheet.SHEET]


def test_sheet_hides_verdict_reason_score_and_model_of_the_judge():
    files = sheet_files(judged_run())
    for text in files.values():
        for secret in (JUDGE, REASON, "77.25", "gpt", "outcome", "passRate", "score"):
            assert secret not in text
    everything = sheet_files(judged_run(), most=10_000)
    contrary = sheet_files(judged_run(sensitivity=0.5, specificity=0.5), most=10_000)
    by_id = [
        {row["item"]: row for row in labeled_runs.read_sheet(one[sheet.SHEET])}
        for one in (everything, contrary)
    ]
    assert by_id[0] == by_id[1]


def test_sheet_has_only_judged_verdicts_once_per_conversation():
    judged = build.finding(kind="judged", criterion="It greets")
    undecided = build.finding("undecided", kind="judged", cause="cannot_tell", criterion="It bows")
    steps = build.finding(kind="judged", criterion="It reasons")
    levels = (Level(score=1, name="all"), Level(score=0, name="none"))
    rubric = Rubric(pass_at=0.5, dimensions=(RubricDimension(name="reasoning", levels=levels, steps=True),))
    sound = build.trial_result(findings=(judged, build.finding(), undecided, steps))
    broken = build.trial_result(2, status=EndState.FAILED, findings=(judged,), turns=())
    test = build.test_result(trials=(sound, broken), rubrics={4: rubric})
    result = build.results(build.suite_result("S", test))
    assert [item.criterion for item in items.items(result)] == ["It greets"]
    trials = tuple(
        build.trial_result(n, findings=(build.finding(verdict, kind="judged"),))
        for n, verdict in enumerate(("failed", "passed"), start=1)
    )
    (item,) = items.items(build.results(build.suite_result("S", build.test_result(trials=trials))))
    assert item.passed is False


def test_rubric_levels_are_shown_on_the_sheet():
    levels = (Level(score=1, name="whole", description="Nothing lacks"), Level(score=0.25, name="part"))
    rubric = Rubric(pass_at=0.5, dimensions=(RubricDimension(name="clarity", levels=levels, weight=2),))
    trial = build.trial_result(findings=(build.finding(kind="judged", criterion="It explains"),))
    test = build.test_result(trials=(trial,), rubrics={1: rubric})
    (item,) = items.items(build.results(build.suite_result("S", test)))
    shown = sheet.readable(item.parts)
    assert "Levels of clarity, weight 2:\n> whole (1): Nothing lacks\n> part (0.25)" in shown
    assert "if that is at least 0.5" in shown


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
    trial = build.trial_result(
        turns=(build.turn(1, user=text, agent=text),),
        findings=(build.finding(kind="judged", criterion=text or "It greets"),),
        closing_remark=text or None,
    )
    test = build.test_result(trials=(trial,), guidelines=text or "none", user_info={"note": text})
    files = sheet_files(build.results(build.suite_result("S", test)))
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
    trial = build.trial_result(
        turns=(build.turn(1, user=text, agent=f"{rng.random()} {text}"),),
        findings=(build.finding(kind="judged", criterion=text),),
    )
    results = build.results(build.suite_result("S", build.test_result(trials=(trial,))))
    table = sheet_files(results)[sheet.SHEET]
    for cell in re.split(r"[;\t\r\n]|\",\"", table):
        assert not re.match(r"[\s\"]*[=+\-@＝＋－＠]", cell), cell


def test_long_conversation_is_cut_on_the_sheet_and_whole_on_the_page():
    trial = build.trial_result(
        turns=(build.turn(1, agent="word " * 10_000 + "end"),), findings=(build.finding(kind="judged"),)
    )
    files = sheet_files(build.results(build.suite_result("S", build.test_result(trials=(trial,)))))
    (row,) = labeled_runs.read_sheet(files[sheet.SHEET])
    assert len(row["conversation"]) < 32_767
    assert row["conversation"].endswith("(cut; sheet.html has it whole)")
    assert "end" in json.loads(Parts(files[sheet.PAGE]).data)["items"][0]["parts"][-2][2]


def test_labeling_page_has_a_strict_content_security_policy():
    page = sheet_files(judged_run(tests=1))[sheet.PAGE]
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    assert "default-src &#39;none&#39;" in policy
    assert "require-trusted-types-for &#39;script&#39;" in policy
    assert "unsafe" not in policy
    assert not re.search(r"https?:", page)
    assert "innerHTML" not in page
