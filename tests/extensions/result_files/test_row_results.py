"""Rows of other tools become suites, tests and trials, and no number that was not told."""

from random import Random

import pytest

from ci_evals.domain.errors import UsageError
from ci_evals.domain.prices import NO_PRICES
from ci_evals.domain.results.suite import OfficialScore, SuiteResult
from ci_evals.extension_support.result_files.result_rows import Check, Message, ResultSet, Row, Undecided
from ci_evals.extensions.result_files.row_results import FileResults, of_arm, scorecard
from ci_evals.scoring.scorecard import Scorecard, recounted
from ci_evals.scoring.scores import ScoreRule
from ci_evals.support import dataclass_json
from ci_evals.support.redaction import Redactor


def card(*sets: ResultSet, secrets: tuple[str, ...] = (), **about) -> Scorecard:
    """Each set is of a file of its own."""
    files = [FileResults(f"{number}.json", "made-up", [one], **about) for number, one in enumerate(sets)]
    return scorecard(files, lambda names: [f"{name}/x" for name in names], NO_PRICES, Redactor(keys=secrets))


def rows(*passed: int, **more) -> list[Row]:
    return [Row(test=f"t{number}", passed=bool(one), **more) for number, one in enumerate(passed)]


def official(value: float, of: int = 2) -> OfficialScore:
    return OfficialScore(name="accuracy", value=value, of=of)


def test_unreported_cost_is_unknown():
    result = card(ResultSet(suite="s", rows=rows(1, seconds=3)))
    assert result.usage.cost_usd is None
    assert (result.latency.replies, result.suites[0].tests[0].trials[0].duration_seconds) == (0, 3)


def test_skipped_trial_does_not_lower_the_score_of_its_test():
    skipped = Row(test="t0", undecided=Undecided.SKIPPED)
    result = card(ResultSet(suite="s", rows=[skipped]), ResultSet(suite="s", rows=rows(1, 1)))
    assert result.score == 100


def test_score_of_a_tool_is_kept_and_checks_that_explain_it_become_findings():
    (suite,) = card(ResultSet(suite="s", rows=[Row(test="t", passed=True, score=0.7)])).suites
    assert suite.tests[0].passed
    assert suite.score == pytest.approx(70)
    checks = (Check("a", passed=True), Check("b", passed=False, reason="why"))
    explained = Row(test="t", passed=False, score=0.5, checks=checks)
    weighted = Row(test="u", passed=False, score=0.9, checks=checks)
    (suite,) = card(ResultSet(suite="s", rows=[explained, weighted])).suites
    first, second = (test.trials[0].findings for test in suite.tests)
    assert [finding.criterion for finding in first] == ["a", "b"]
    assert [finding.reason for finding in second] == ["b failed: why"]
    assert suite.tests[1].score == pytest.approx(90)


def test_official_scores_are_weighted_by_count_and_none_for_several_suites():
    sets = [ResultSet(suite="s", rows=rows(1, 0), official=official(*own)) for own in ((0.5, 2), (1, 6))]
    assert (card(sets[0]).official, card(*sets).official) == (official(0.5), official(0.875, 8))
    assert card(*sets, official=lambda own: official(0.25, len(own))).official == official(0.25, 4)
    result = card(*(ResultSet(suite=name, rows=rows(1), official=official(1)) for name in "ab"))
    assert result.official is None
    assert [suite.official for suite in result.suites] == [official(1), official(1)]


def test_clusters_widen_the_interval():
    alone = [Row(test=f"t{i}", passed=i < 5) for i in range(10)]
    together = [Row(test=f"t{i}", passed=i < 5, cluster=f"c{i // 5}") for i in range(10)]
    wide, narrow = (card(ResultSet(suite="s", rows=own)).interval for own in (together, alone))
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


def test_messages_of_a_row_become_turns():
    texts = [("system", "x"), ("user", "Hi"), ("assistant", "Hello"), ("assistant", "you"), ("user", "Bye")]
    row = Row(test="t", passed=True, conversation=tuple(Message(role, text) for role, text in texts))
    (suite,) = card(ResultSet(suite="s", rows=[row])).suites
    turns = suite.tests[0].trials[0].turns
    assert [(turn.user, turn.agent) for turn in turns] == [("Hi", "Hello\n\nyou"), ("Bye", "")]


def test_secrets_in_all_fields_of_a_row_are_redacted():
    key = "sk-very-secret-key-1"
    messages = (Message("user", key),)
    row = Row(test=key, passed=False, reason=key, groups=(key,), conversation=messages, cluster=key)
    results = card(ResultSet(suite=key, arm=key, rows=[row], fingerprint={"version": key}), secrets=(key,))
    assert key not in dataclass_json.to_json(results)


def test_result_files_with_different_fingerprints_or_arms_are_refused():
    sets = [ResultSet(suite="s", rows=rows(1), fingerprint={"checksum": mark}) for mark in "ab"]
    with pytest.raises(UsageError, match=r"1\.json: the checksum of 's' is 'b', in 0\.json it is 'a'"):
        card(*sets)
    files = [FileResults("f", "made-up", [ResultSet(suite="s", arm=arm, rows=rows(1)) for arm in "ab"])]
    with pytest.raises(UsageError, match="'a', 'b'"):
        of_arm(files, None)
    with pytest.raises(UsageError, match="`arm=c`"):
        of_arm(files, "c")
    assert [one.arm for one in of_arm(files, "b")[0].sets] == ["b"]


def test_scorecard_is_equal_for_shared_and_separate_trial_objects():
    rng = Random(1)
    results: list[dict[str, object]] = [
        {"passed": True, "seconds": 1.5, "cost_usd": 0.1},
        {"passed": True, "seconds": 2.5, "groups": ("a", "b")},
        {"passed": False, "reason": "why", "groups": ("b",)},
        {"passed": True, "score": 0.7, "groups": ("b",)},
        {"passed": False, "checks": (Check("one", passed=True), Check("two", passed=False))},
        {"undecided": Undecided.ERROR, "reason": "broke"},
        {"undecided": Undecided.SKIPPED},
    ]
    mixed = [Row(test=f"t{rng.randrange(60)}", **rng.choice(results)) for _ in range(150)]
    (suite,) = card(ResultSet(suite="s", rows=mixed)).suites
    assert len({id(trial.findings) for test in suite.tests for trial in test.trials}) < 15
    alone = dataclass_json.from_json(SuiteResult, dataclass_json.to_json(suite))
    assert recounted(alone, ScoreRule(offline=False)) == suite == alone
