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

HALF = "\ud83d"
ELEMENT = re.compile(
    r'<script type="application/octet-stream" id="([tb]\d+(?:\.\d+)?)">([A-Za-z0-9+/=]+)</script>\n'
)


def run_of(*tests) -> Results:
    """A run of one suite of these tests."""
    return build.results(build.suite_result("Refunds", *tests))


FAILED = build.trial_result(findings=(build.finding(outcome="failed"),))
NO_JUDGE = build.finding(kind="judged", outcome="undecided", cause=Cause.NO_JUDGE)


def unpacked(results: Results, baseline: Results | None = None) -> dict[str, object]:
    """What stands in the elements, by id, as a browser reads it."""
    text = "".join(
        embedded_data.elements(embedded_data.tests_of(story_of(results, ComparisonRuns(baseline))))
    )
    assert ELEMENT.sub("", text) == ""
    return {name: json.loads(zlib.decompress(base64.b64decode(data))) for name, data in ELEMENT.findall(text)}


def outcomes(results: Results) -> list[str]:
    """What each trial of the first test came to."""
    return [trial["outcome"] for trial in unpacked(results)["t0"]["head"]["trials"]]


def test_a_test_is_apart_from_its_conversations():
    """Facts without conversations, and these together: they are much alike, and take a third of the room."""
    talk = build.transcript("user: hi | agent: ok [GREETING]").turns
    test = build.test_result(trials=(build.trial_result(turns=talk), build.trial_result(index=2, turns=())))
    found = unpacked(run_of(test))
    assert sorted(found) == ["t0", "t0.1"]
    assert found["t0"]["location"] == f"{run_of(test).suites[0].file}:{test.line}"
    assert [trial["index"] for trial in found["t0"]["head"]["trials"]] == [1, 2]
    assert found["t0"]["head"]["packs"] == [2]
    greeting = [["workflows", [{"text": "GREETING"}]]]
    assert [[turn["actions"] for turn in trial] for trial in found["t0.1"]] == [[greeting], []]


def test_large_conversations_do_not_wait_for_each_other():
    """Somebody who opens one of them unpacks few others."""
    texts = ("short", "x" * 300_000, "y" * 300_000, "short")
    talks = [(build.turn(agent=text, trace={"two\nlines": "  of\n  text"}),) for text in texts]
    trials = tuple(build.trial_result(index=number, turns=talk) for number, talk in enumerate(talks, start=1))
    found = unpacked(run_of(build.test_result(trials=trials)))
    assert found["t0"]["head"]["packs"] == [2, 1, 1]
    packs = [found[f"t0.{number}"] for number in (1, 2, 3)]
    assert [trial[0]["agent"] for pack in packs for trial in pack] == list(texts)
    assert json.loads(packs[2][0][0]["trace"]) == {"two\nlines": "  of\n  text"}


def test_baseline_is_shown_with_the_test_of_the_same_name():
    """By suite and name, also where it was defined otherwise; what the baseline alone has is left out."""
    head = run_of(build.test_result(name="a"), build.test_result(name="b"))
    base = run_of(build.test_result(name="b", digest="other"), build.test_result(name="c"))
    found = unpacked(head, base)
    assert sorted(found) == ["b1.1", "t0", "t0.1", "t1", "t1.1"]
    assert "base" not in found["t0"]
    assert "defines this test differently" in found["t1"]["notice"]
    assert [shown.same for shown in embedded_data.tests_of(story_of(head, ComparisonRuns(base)))] == [
        False,
        False,
    ]


def test_tests_of_one_name_have_addresses_of_their_own():
    """As where a secret was taken out of the names of both; their order pairs them."""
    names = ("***", "***", "*** (2)", "***")
    head = run_of(*(build.test_result(name=name, digest=f"{place}") for place, name in enumerate(names)))
    found = embedded_data.tests_of(story_of(head, ComparisonRuns(head)))
    assert [shown.name for shown in found] == ["***", "*** (3)", "*** (2)", "*** (4)"]
    assert len({shown.address() for shown in found}) == 4
    assert all(shown.same for shown in found)


def test_each_trial_has_an_outcome_by_the_rules_of_the_run():
    """A missing judge is no fault of a trial where none was wanted; what broke off is an error."""
    trials = (
        build.trial_result(findings=(build.finding(), NO_JUDGE)),
        FAILED,
        build.trial_result(status=EndState.FAILED),
    )
    found = run_of(build.test_result(trials=trials))
    offline = replace(found, run=replace(found.run, config={"provider": "offline"}))
    assert outcomes(offline) == ["passed", "failed", "error"]
    assert outcomes(found) == ["undecided", "failed", "error"]
    shown, *_ = embedded_data.tests_of(story_of(found, ComparisonRuns(offline)))
    assert shown.base_outcomes == (TestOutcome.PASSED, TestOutcome.FAILED, TestOutcome.ERROR)


def test_each_pair_of_trials_has_the_divergence_that_the_comparison_finds():
    """Of every trial and every one of the baseline: the turn, the words, and what only one side did."""
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
    made = build.results(
        build.suite_result(
            "S",
            build.test_result(
                trials=tuple(
                    build.trial_result(index=number, turns=talk) for number, talk in enumerate(talks, 1)
                )
            ),
        )
    )
    ends = set()
    for shown in embedded_data.tests_of(story_of(made, ComparisonRuns(made))):
        data = unpacked(made, made)[f"t{shown.number}"]
        for mine, row in zip(shown.test.trials, data["pairs"], strict=True):
            for theirs, index in zip(shown.test.trials, row, strict=True):
                expected, found = between(mine, theirs), data["divergences"][index]
                ends.add(expected and (expected.only, expected.turn, expected.user_differs))
                assert found.get("turn") == (expected.turn if expected else None)
                if expected is None:
                    assert found["text"] == UNTRACED
                    continue
                assert found["text"] == changes.divergence_sentence(expected, trials=False)
                only = found.get("only", {})
                if expected.turn and expected.only is None:
                    assert min(map(int, only)) == expected.turn
                    head, base = only[str(expected.turn)]
                    assert (bool(head), bool(base)) == (bool(expected.head), bool(expected.base))
    assert len(ends) > 5


def test_a_trial_is_compared_first_with_the_one_that_the_comparison_takes():
    """First one that came out the contrary, and one that broke off only where all did."""
    passed, failed = build.trial_result(), build.trial_result(findings=(build.finding("failed"),))
    broken_off = build.trial_result(status="failed", findings=())
    sides = [
        tuple(replace(trial, index=number) for number, trial in enumerate(trials, 1))
        for trials in product((passed, failed, broken_off), repeat=2)
    ]
    pairs = list(product(sides, repeat=2))
    head, base = (
        build.results(
            build.suite_result(
                "S",
                *(build.test_result(f"T{number}", trials=pair[side]) for number, pair in enumerate(pairs)),
            )
        )
        for side in (0, 1)
    )
    rule, found = ScoreRule(offline=False), unpacked(head, base)
    for shown in embedded_data.tests_of(story_of(head, ComparisonRuns(base))):
        assert shown.base
        expected = between_of_test(TestPair("S", shown.test, shown.base), rule, rule)
        assert expected
        trials = {trial["index"]: trial for trial in found[f"t{shown.number}"]["head"]["trials"]}
        assert trials[expected.head_trial]["counterpart"] == expected.base_trial


def test_of_many_trials_of_the_baseline_the_first_are_there_and_the_counterparts():
    """Each is compared with each of this run, so that hundreds would take long."""
    trials = [build.trial_result(index=number) for number in range(1, 31)]
    trials[24] = replace(FAILED, index=25)
    head, base = (
        run_of(build.test_result(trials=(build.trial_result(),))),
        run_of(build.test_result(trials=tuple(trials))),
    )
    data = unpacked(head, base)["t0"]
    assert [trial["index"] for trial in data["base"]["trials"]] == [*range(1, 21), 25]
    assert data["head"]["trials"][0]["counterpart"] == 25
    assert len(data["pairs"][0]) == 21
    assert data["base"]["note"].startswith("Of its 30 trials, the first 20, ")
    assert "note" not in unpacked(head, head)["t0"]["base"]


def test_half_of_a_surrogate_pair_fails_no_page():
    """An agent can say one in JSON; it goes into the page as the escape that it came as."""
    talk = (build.turn(agent=f"half {HALF}", trace={"x": HALF}),)
    test = build.test_result(
        name=f"name {HALF}",
        user_info={HALF: 10**400},
        trials=(build.trial_result(turns=talk, closing_remark=HALF),),
    )
    found = unpacked(run_of(test))
    assert found["t0"]["head"]["trials"][0]["closing"] == HALF
    assert json.loads(found["t0"]["userInfo"]) == {HALF: 10**400}
    assert found["t0.1"][0][0]["agent"] == f"half {HALF}"


def test_no_text_of_theirs_stands_in_the_elements():
    """Base 64 alone, so that nothing ends an element before its end."""
    tests = [
        build.test_result(
            name=f"{number} {text}",
            trials=(build.trial_result(turns=(build.turn(agent=text, trace={text: text}),)),),
        )
        for number, text in enumerate(CORPUS)
    ]
    assert len(unpacked(run_of(*tests))) == 2 * len(CORPUS)


def test_the_script_looks_for_what_the_sanitiser_looks_for():
    """Its patterns are the sanitiser's own, written so that they can stand in an element of the page."""
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
