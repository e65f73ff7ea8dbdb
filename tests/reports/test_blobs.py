"""What the page's script unpacks, and what it knows of texts that cannot be shown."""

import base64
import json
import re
import zlib

import builders as build
from hostile import CORPUS

from ci_evals.domain.results import Results, TestOutcome
from ci_evals.domain.text import visible, visible_for_scripts
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Cause
from ci_evals.reports.page import blobs

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
    text = "".join(blobs.blobs(blobs.tests_of(results, baseline)))
    assert ELEMENT.sub("", text) == ""
    return {name: json.loads(zlib.decompress(base64.b64decode(data))) for name, data in ELEMENT.findall(text)}


def test_a_test_and_each_of_its_trials_are_elements_of_their_own():
    """Facts without conversations, and each conversation apart: somebody who opens one unpacks no other."""
    talk = build.transcript("user: hi | agent: ok [GREETING]").exchanges
    test = build.test_result(trials=(build.trial_result(exchanges=talk), build.trial_result(index=2)))
    found = unpacked(run_of(test))
    assert list(found) == ["t0", "t0.1", "t0.2"]
    assert found["t0"]["file"] == run_of(test).suites[0].file
    assert found["t0"]["test"]["name"] == test.name
    assert [trial["exchanges"] for trial in found["t0"]["test"]["trials"]] == [[], []]
    assert [exchange["workflows"] for exchange in found["t0.1"]] == [["GREETING"]]


def test_the_baseline_stands_beside_a_test_of_the_same_name():
    """By suite and name, also where it was defined otherwise; what the baseline alone has is left out."""
    head = run_of(build.test_result(name="a"), build.test_result(name="b"))
    base = run_of(build.test_result(name="b", digest="other"), build.test_result(name="c"))
    assert [name for name in unpacked(head, base) if "." not in name] == ["t0", "t1", "b1"]
    assert [shown.same for shown in blobs.tests_of(head, base)] == [False, False]


def test_each_trial_has_an_outcome_by_the_rules_of_the_run():
    """A missing judge is no fault of a trial where none was wanted; what broke off is an error."""
    trials = (
        build.trial_result(findings=(build.finding(), NO_JUDGE)),
        FAILED,
        build.trial_result(status=EndState.FAILED),
    )
    found = run_of(build.test_result(trials=trials))
    offline = found.model_copy(
        update={"run": found.run.model_copy(update={"config": {"provider": "offline"}})}
    )
    assert unpacked(offline)["t0"]["outcomes"] == ["passed", "failed", "error"]
    assert unpacked(found)["t0"]["outcomes"] == ["undecided", "failed", "error"]
    shown, *_ = blobs.tests_of(found, offline)
    assert shown.base_outcomes == (TestOutcome.PASSED, TestOutcome.FAILED, TestOutcome.ERROR)


def test_half_of_a_surrogate_pair_fails_no_page():
    """An agent can say one in JSON; it goes into the page as the escape that it came as."""
    talk = (build.exchange(agent=f"half {HALF}", trace={"x": HALF}),)
    test = build.test_result(
        name=f"name {HALF}",
        user_info={HALF: 10**400},
        trials=(build.trial_result(exchanges=talk, closing_remark=HALF),),
    )
    found = unpacked(run_of(test))
    assert found["t0"]["test"]["trials"][0]["closingRemark"] == HALF
    assert found["t0"]["test"]["userInfo"] == {HALF: 10**400}
    assert found["t0.1"][0]["agent"] == f"half {HALF}"


def test_no_text_of_theirs_stands_in_the_elements():
    """Base 64 alone, so that nothing ends an element before its end."""
    tests = [
        build.test_result(
            name=f"{number} {text}",
            trials=(build.trial_result(exchanges=(build.exchange(agent=text, trace={text: text}),)),),
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
