"""A run as records of Every Eval Ever, whose form `every_eval_ever validate` of 0.3.0 accepted."""

import json
import re

import builders as build

from ci_evals.domain.results.run import Results
from ci_evals.domain.transcript import EndState, ToolCall
from ci_evals.extensions.every_eval_ever import report_files

PLACE = re.compile(
    r"eee/data/[^/]+/[^/]+/[^/]+/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
)


def records_of(results: Results) -> tuple[dict, list[dict]]:
    files = {name: "".join(text) for name, text in report_files.files(results).items()}
    (aggregate,) = [json.loads(text) for name, text in files.items() if name.endswith(".json")]
    (samples,) = [text for name, text in files.items() if name.endswith("_samples.jsonl")]
    assert all(PLACE.match(name) for name in files)
    return aggregate, [json.loads(line) for line in samples.splitlines()]


def run(*trials) -> Results:
    test = build.test_result(trials=trials)
    return build.with_process(build.results(build.suite_result("Refunds", test, agent_id="acme/helper")))


def test_suite_becomes_an_aggregate_with_score_and_model():
    aggregate, samples = records_of(run(build.trial_result()))
    (result,) = aggregate["evaluation_results"]
    assert aggregate["model_info"]["id"] == samples[0]["model_id"] == "acme/helper"
    assert (result["evaluation_name"], result["score_details"]["score"]) == ("Refunds", 1.0)
    assert aggregate["detailed_evaluation_results"]["total_rows"] == len(samples) == 1
    assert aggregate["evaluation_id"] == samples[0]["evaluation_id"]


def test_each_trial_becomes_a_sample_with_its_conversation():
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


def test_errored_trial_is_exported_as_incorrect_and_alone_not_exported():
    broken = build.trial_result(2, status=EndState.AGENT_ERROR, error="the agent is down")
    _, (_, sample) = records_of(run(build.trial_result(), broken))
    assert sample["error"] == "the agent is down"
    assert sample["evaluation"]["is_correct"] is False
    broken = build.trial_result(status=EndState.AGENT_ERROR, error="down", findings=())
    assert report_files.files(run(broken)) == {}
