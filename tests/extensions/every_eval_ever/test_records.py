"""Records of Every Eval Ever become rows."""

import json
from typing import Any

from each_row import each_row
from tool_results import (
    ERROR,
    FAILED,
    FILES,
    PASSED,
    official_score,
    outcomes_by_test,
    read_set,
    read_text,
    row_of,
)


def test_sample_is_one_row_for_all_its_epochs_and_metrics() -> None:
    results, aggregate = read_set("eee/base/numbers_samples.jsonl"), read_set("eee/base/numbers.json")
    # The epoch of `four` that broke is not in its score.
    expected = {"four": [PASSED, ERROR], "one": [PASSED], "three": [FAILED], "two": [FAILED]}
    assert outcomes_by_test(results) == expected
    assert row_of(results, "two").score == 2 / 3  # `is_correct` is true there
    assert (results.suite, results.arm) == (aggregate.suite, aggregate.arm)
    scores = [row.score or 0 for row in results.rows if not row.undecided]
    assert official_score(aggregate).value == sum(scores) / 4
    assert len(row_of(results, "three").checks) == 2


def test_is_correct_overrides_the_score_and_an_error_overrides_is_correct() -> None:
    lines = [json.loads(line) for line in (FILES / "eee/base/numbers_samples.jsonl").read_text().splitlines()]
    (passed,) = [line for line in lines if line["evaluation"].get("score") == 1][:1]
    passed["evaluation"]["is_correct"] = False
    (results,) = read_text(json.dumps(passed) + "\n", "f.jsonl")
    assert (results.rows[0].passed, results.rows[0].score) == (False, None)
    broken = [line | {"error": "gone"} for line in lines if line["sample_id"] == "four"]
    assert any(line["evaluation"]["is_correct"] for line in broken)
    (results,) = read_text("".join(json.dumps(line) + "\n" for line in broken))
    assert outcomes_by_test(results) == {"four": [ERROR] * 3}  # one for each epoch


def eee_samples(*changes: dict[str, Any]) -> dict[str, list[Any]]:
    """The outcomes of records of one sample that passed, each with its changes."""
    text = (FILES / "eee/base/numbers_samples.jsonl").read_text().splitlines()
    passed = next(line for line in map(json.loads, text) if line["sample_id"] == "one")
    (results,) = read_text("".join(json.dumps(passed | change) + "\n" for change in changes))
    return outcomes_by_test(results)


@each_row("epochs", [[{"epoch": "1"}, {"epoch": "2"}], [{"epoch": "1"}] * 2, [{}, {}], [None] * 2])
def test_error_in_one_epoch_does_not_affect_other_epoch(epochs: list[Any]) -> None:
    first, second = ({"metadata": epoch} for epoch in epochs)
    assert eee_samples(first, second | {"error": "gone"}) == {"one": [PASSED, ERROR]}
    assert eee_samples(first | {"error": "gone"}, second) == {"one": [PASSED, ERROR]}


def test_metric_error_fails_its_epoch_and_repeated_metric_is_a_new_trial() -> None:
    other = {"evaluation_result_id": "includes:accuracy"}
    assert eee_samples({}, other | {"error": "gone"}) == {"one": [ERROR]}
    assert eee_samples(other | {"error": "gone"}, {}) == {"one": [ERROR]}
    failed = {"evaluation": {"score": 0.0, "is_correct": False}}
    for metadata in ({}, None, {"epoch": "1"}):
        outcomes = eee_samples({"metadata": metadata}, {"metadata": metadata, **failed})
        assert outcomes == {"one": [PASSED, FAILED]}
