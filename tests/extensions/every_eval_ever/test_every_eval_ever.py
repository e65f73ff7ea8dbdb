"""Records of Every Eval Ever become rows, and a run becomes such records.

`every_eval_ever validate` of 0.3.0 accepted their form.
"""

import json
import re
from typing import Any

import builders as build
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

from ci_evals.domain.results.run import Results
from ci_evals.domain.transcript import EndState, ToolCall
from ci_evals.extensions.every_eval_ever import report_files


def test_eee_sample_is_one_row_per_epoch_and_errors_take_precedence():
    results, aggregate = read_set("eee/base/numbers_samples.jsonl"), read_set("eee/base/numbers.json")
    # The epoch of `four` that broke is not in its score.
    expected = {"four": [PASSED, ERROR], "one": [PASSED], "three": [FAILED], "two": [FAILED]}
    assert outcomes_by_test(results) == expected
    assert row_of(results, "two").score == 2 / 3  # `is_correct` is true there
    assert (results.suite, results.arm) == (aggregate.suite, aggregate.arm)
    scores = [row.score or 0 for row in results.rows if not row.undecided]
    assert (official_score(aggregate).value, len(row_of(results, "three").checks)) == (sum(scores) / 4, 2)
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
def test_error_in_one_epoch_leaves_the_outcome_of_the_other_epoch(epochs):
    first, second = ({"metadata": epoch} for epoch in epochs)
    assert eee_samples(first, second | {"error": "gone"}) == {"one": [PASSED, ERROR]}
    assert eee_samples(first | {"error": "gone"}, second) == {"one": [PASSED, ERROR]}


def test_metric_error_makes_its_epoch_an_error_and_repeated_metric_is_a_new_trial():
    other = {"evaluation_result_id": "includes:accuracy"}
    assert eee_samples({}, other | {"error": "gone"}) == {"one": [ERROR]}
    assert eee_samples(other | {"error": "gone"}, {}) == {"one": [ERROR]}
    failed = {"evaluation": {"score": 0.0, "is_correct": False}}
    for metadata in ({}, None, {"epoch": "1"}):
        outcomes = eee_samples({"metadata": metadata}, {"metadata": metadata, **failed})
        assert outcomes == {"one": [PASSED, FAILED]}


UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def records_of(results: Results) -> tuple[dict, list[dict]]:
    files = {name: "".join(text) for name, text in report_files.files(results).items()}
    (aggregate,) = [json.loads(text) for name, text in files.items() if name.endswith(".json")]
    (samples,) = [text for name, text in files.items() if name.endswith("_samples.jsonl")]
    assert all(re.match(f"eee/data/[^/]+/[^/]+/[^/]+/{UUID}", name) for name in files)
    return aggregate, [json.loads(line) for line in samples.splitlines()]


def run(*trials) -> Results:
    test = build.test_result(trials=trials)
    return build.with_process(build.results(build.suite_result("Refunds", test, agent_id="acme/helper")))


def test_run_becomes_an_aggregate_with_samples_and_errored_trials_are_incorrect():
    aggregate, samples = records_of(run(build.trial_result()))
    (result,) = aggregate["evaluation_results"]
    assert aggregate["model_info"]["id"] == samples[0]["model_id"] == "acme/helper"
    assert (result["evaluation_name"], result["score_details"]["score"]) == ("Refunds", 1.0)
    assert aggregate["detailed_evaluation_results"]["total_rows"] == len(samples) == 1
    assert aggregate["evaluation_id"] == samples[0]["evaluation_id"]
    call = ToolCall(name="find_order", arguments={"id": 7, "kind": "a"})
    turn = build.turn(agent="Here it is.", tool_calls=(call,))
    failed = build.trial_result(2, findings=(build.finding("failed"),))
    _, (first, second) = records_of(run(build.trial_result(turns=(turn,)), failed))
    assert [message["role"] for message in first["messages"]] == ["user", "assistant"]
    arguments = first["messages"][1]["tool_calls"][0]["arguments"]
    assert arguments == {"id": "7", "kind": "a"}  # texts, says the schema
    assert (first["interaction_type"], first["evaluation"]["tool_calls_count"]) == ("agentic", 1)
    assert (first["evaluation"]["is_correct"], second["evaluation"]["is_correct"]) == (True, False)
    assert [sample["metadata"]["epoch"] for sample in (first, second)] == ["1", "2"]
    broken = build.trial_result(2, status=EndState.AGENT_ERROR, error="the agent is down")
    _, (_, sample) = records_of(run(build.trial_result(), broken))
    assert sample["error"] == "the agent is down"
    assert sample["evaluation"]["is_correct"] is False
    broken = build.trial_result(status=EndState.AGENT_ERROR, error="down", findings=())
    assert report_files.files(run(broken)) == {}
