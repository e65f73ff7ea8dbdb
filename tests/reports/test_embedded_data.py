"""What the page's script unpacks, and what it knows of texts that cannot be shown."""

import base64
import json
import re
import zlib
from dataclasses import replace
from itertools import product

import builders as build
from hostile_text import CORPUS

from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestOutcome
from ci_evals.domain.transcript import EndState, Integration
from ci_evals.domain.verdict import Cause
from ci_evals.reports.page import embedded_data
from ci_evals.reports.story import changes
from ci_evals.reports.story.changes import UNTRACED
from ci_evals.reports.story.comparison_runs import ComparisonRuns
from ci_evals.reports.story.story import story_of
from ci_evals.scoring.comparison.divergence import between
from ci_evals.scoring.comparison.divergence import of_test as between_of_test
from ci_evals.scoring.comparison.pairing import TestPair
from ci_evals.scoring.scores import ScoreRule
from ci_evals.support.text import visible, visible_for_scripts

LONE_SURROGATE = "\ud83d"
ELEMENT = re.compile(
    r'<script type="application/octet-stream" id="([tb]\d+(?:\.\d+)?)">([A-Za-z0-9+/=]+)</script>\n'
)


def run_of(*tests) -> Results:
    """A run of one suite of these tests."""
    return build.results(build.suite_result("Refunds", *tests))


def run_of_trials(*trials) -> Results:
    """A run of one test of these trials, numbered from 1."""
    numbered = tuple(replace(trial, index=number) for number, trial in enumerate(trials, start=1))
    return run_of(build.test_result(trials=numbered))


FAILED = build.trial_result(findings=(build.finding(outcome="failed"),))
NO_JUDGE = build.finding(kind="judged", outcome="undecided", cause=Cause.NO_JUDGE)


def unpacked(results: Results, baseline: Results | None = None) -> dict[str, object]:
    """The data of the elements, by id, as a browser reads it."""
    tests = embedded_data.tests_of(story_of(results, ComparisonRuns(baseline)))
    text = "".join(embedded_data.elements(tests))
    assert ELEMENT.sub("", text) == ""
    return {name: json.loads(zlib.decompress(base64.b64decode(data))) for name, data in ELEMENT.findall(text)}


def test_conversations_are_embedded_apart_from_facts_and_if_large_in_separate_packs():
    talk = build.transcript("user: hi | agent: ok [GREETING]").turns
    test = build.test_result(trials=(build.trial_result(turns=talk), build.trial_result(index=2, turns=())))
    result = unpacked(run_of(test))
    assert sorted(result) == ["t0", "t0.1"]
    assert result["t0"]["location"] == f"{run_of(test).suites[0].file}:{test.line}"
    assert [trial["index"] for trial in result["t0"]["head"]["trials"]] == [1, 2]
    assert result["t0"]["head"]["packs"] == [2]
    greeting = [["workflows", [{"text": "GREETING"}]]]
    assert [[turn["actions"] for turn in trial] for trial in result["t0.1"]] == [[greeting], []]
    texts = ("short", "x" * 300_000, "y" * 300_000, "short")
    talks = [(build.turn(agent=text, trace={"two\nlines": "  of\n  text"}),) for text in texts]
    result = unpacked(run_of_trials(*(build.trial_result(turns=talk) for talk in talks)))
    assert result["t0"]["head"]["packs"] == [2, 1, 1]
    packs = [result[f"t0.{number}"] for number in (1, 2, 3)]
    assert [trial[0]["agent"] for pack in packs for trial in pack] == list(texts)
    assert json.loads(packs[2][0][0]["trace"]) == {"two\nlines": "  of\n  text"}


def test_baseline_test_is_matched_by_name_with_a_notice_if_defined_differently():
    head = run_of(build.test_result(name="a"), build.test_result(name="b"))
    base = run_of(build.test_result(name="b", digest="other"), build.test_result(name="c"))
    result = unpacked(head, base)
    assert sorted(result) == ["b1.1", "t0", "t0.1", "t1", "t1.1"]
    assert "base" not in result["t0"]
    assert "defines this test differently" in result["t1"]["notice"]
    tests = embedded_data.tests_of(story_of(head, ComparisonRuns(base)))
    assert [test.same for test in tests] == [False, False]


def test_equally_named_tests_are_numbered_and_have_distinct_addresses():
    names = ("***", "***", "*** (2)", "***")
    head = run_of(*(build.test_result(name=name, digest=f"{place}") for place, name in enumerate(names)))
    result = embedded_data.tests_of(story_of(head, ComparisonRuns(head)))
    assert [shown.name for shown in result] == ["***", "*** (3)", "*** (2)", "*** (4)"]
    assert len({shown.address() for shown in result}) == 4
    assert all(shown.same for shown in result)


def test_trial_outcome_follows_the_rules_of_its_run():
    judged = run_of_trials(
        build.trial_result(findings=(build.finding(), NO_JUDGE)),
        FAILED,
        build.trial_result(status=EndState.FAILED),
    )
    offline = replace(judged, run=replace(judged.run, config={"provider": "offline"}))
    for results, expected in (
        (offline, ["passed", "failed", "error"]),
        (judged, ["undecided", "failed", "error"]),
    ):
        assert [trial["outcome"] for trial in unpacked(results)["t0"]["head"]["trials"]] == expected
    shown, *_ = embedded_data.tests_of(story_of(judged, ComparisonRuns(offline)))
    assert shown.base_outcomes == (TestOutcome.PASSED, TestOutcome.FAILED, TestOutcome.ERROR)


def test_each_pair_of_trials_has_its_divergence():
    call = Integration(code="shop", status=200)
    talks = (
        (build.turn(1),),
        (build.turn(1), build.turn(2)),
        (build.turn(1, user="Hello?"), build.turn(2, workflows=("B", "A", "A"))),
        (build.turn(1, workflows=None, params=None, rules=None, integrations=None),),
        (build.turn(1, params={"a": {"x": 1, "y": [None, "é"]}, "b": " Undefined "}, rules=None),),
        (build.turn(1, params={"b": None, "a": {"y": [None, "é"], "x": 1.0}}, rules=("r",)),),
        (build.turn(1, params={"a": 1.5, "n": 12345678901234567891}, named_params=("n",)),),
        (build.turn(1, params=None, named_params=("n", "m"), integrations=(call, call)),),
        (build.turn(1, integrations=(call.model_copy(update={"status": None}),)),),
        (build.turn(1, params={"a": 10**21, "b": "\ufeff", "c": "\x1c undefined\x85"}),),
        (build.turn(1, params={"a": 1e21, "b": "", "d": "unde fined"}),),
        (),
    )
    made = run_of_trials(*(build.trial_result(turns=talk) for talk in talks))
    ends = set()
    for shown in embedded_data.tests_of(story_of(made, ComparisonRuns(made))):
        data = unpacked(made, made)[f"t{shown.number}"]
        for mine, row in zip(shown.test.trials, data["pairs"], strict=True):
            for theirs, index in zip(shown.test.trials, row, strict=True):
                expected, result = between(mine, theirs), data["divergences"][index]
                ends.add(expected and (expected.only, expected.turn, expected.user_differs))
                assert result.get("turn") == (expected.turn if expected else None)
                if expected is None:
                    assert result["text"] == UNTRACED
                    continue
                assert result["text"] == changes.divergence_sentence(expected, trials=False)
                only = result.get("only", {})
                if expected.turn and expected.only is None:
                    assert min(map(int, only)) == expected.turn
                    head, base = only[str(expected.turn)]
                    assert (bool(head), bool(base)) == (bool(expected.head), bool(expected.base))
    assert len(ends) > 5


def test_embedded_trial_has_the_counterpart_that_the_comparison_chose():
    passed, failed = build.trial_result(), build.trial_result(findings=(build.finding("failed"),))
    broken_off = build.trial_result(status="failed", findings=())
    both = product((passed, failed, broken_off), repeat=2)
    sides = [(first, replace(second, index=2)) for first, second in both]
    pairs = list(product(sides, repeat=2))
    numbered = [[(f"T{number}", pair[side]) for number, pair in enumerate(pairs)] for side in (0, 1)]
    head, base = (run_of(*(build.test_result(name, trials=t) for name, t in tests)) for tests in numbered)
    rule, result = ScoreRule(offline=False), unpacked(head, base)
    for shown in embedded_data.tests_of(story_of(head, ComparisonRuns(base))):
        assert shown.base
        expected = between_of_test(TestPair("Refunds", shown.test, shown.base), rule, rule)
        assert expected
        trials = {trial["index"]: trial for trial in result[f"t{shown.number}"]["head"]["trials"]}
        assert trials[expected.head_trial]["counterpart"] == expected.base_trial


def test_long_baseline_embeds_only_first_20_trials_and_counterparts():
    """Each is compared with each of this run, so that hundreds would take long."""
    trials = [build.trial_result()] * 30
    trials[24] = FAILED
    head = run_of_trials(build.trial_result())
    data = unpacked(head, run_of_trials(*trials))["t0"]
    assert [trial["index"] for trial in data["base"]["trials"]] == [*range(1, 21), 25]
    assert data["head"]["trials"][0]["counterpart"] == 25
    assert len(data["pairs"][0]) == 21
    assert data["base"]["note"].startswith("Of its 30 trials, the first 20, ")
    assert "note" not in unpacked(head, head)["t0"]["base"]


def test_hostile_text_is_embedded_as_base64_and_lone_surrogates_as_escapes():
    talk = (build.turn(agent=f"half {LONE_SURROGATE}", trace={"x": LONE_SURROGATE}),)
    test = build.test_result(
        name=f"name {LONE_SURROGATE}",
        user_info={LONE_SURROGATE: 10**400},
        trials=(build.trial_result(turns=talk, closing_remark=LONE_SURROGATE),),
    )
    result = unpacked(run_of(test))
    assert result["t0"]["head"]["trials"][0]["closing"] == LONE_SURROGATE
    assert json.loads(result["t0"]["userInfo"]) == {LONE_SURROGATE: 10**400}
    assert result["t0.1"][0][0]["agent"] == f"half {LONE_SURROGATE}"

    def test_of(number: int, text: str):
        trial = build.trial_result(turns=(build.turn(agent=text, trace={text: text}),))
        return build.test_result(name=f"{number} {text}", trials=(trial,))

    result = unpacked(run_of(*(test_of(number, text) for number, text in enumerate(CORPUS))))
    assert len(result) == 2 * len(CORPUS)


def test_browser_patterns_remove_same_characters_as_sanitizer():
    patterns = visible_for_scripts()
    assert patterns.isascii()
    assert not set("<>&\"'") & set(patterns)
    signs = ("\n", "\ufffd", "", "", "")
    steps = [re.sub(r"\\u\{([0-9a-f]+)\}", r"\\U000\1", pattern) for pattern in patterns.split("\n")]
    for text in CORPUS:
        left = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        for pattern, sign in zip(steps, signs, strict=True):
            left = re.sub(pattern, sign, left)
        assert left == visible(text), text
