"""Test runs of DeepEval (github.com/confident-ai/deepeval).

They are in `test_run_*.json`, `.latest_run_full.json`, and under `testRunData` in `.latest_test_run.json`.

Read from files of deepeval 4.3.1. A test in which a metric broke has `success: false` and that metric an
`error`: it is undecided. A metric marked flaky never decides.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from ci_evals.domain.results.suite import OfficialScore
from ci_evals.extension_support.result_files import fields
from ci_evals.extension_support.result_files.reader import Reader
from ci_evals.extension_support.result_files.result_rows import Check, Message, ResultSet, Row
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.support.digest import digest

_LATEST = "testRunData"
"""The key of the run in `.latest_test_run.json`."""
_RULE = "A test whose metric broke counts as a failure."
_ASKED = ("input", "expectedOutput", "scenario", "expectedOutcome", "context", "expectedTools")


def read(file: SourceFile) -> Sequence[ResultSet] | None:
    """Read one test run."""
    run = file.json()
    if isinstance(run, dict) and isinstance(run.get(_LATEST), dict):
        run = run[_LATEST]
    if not isinstance(run, dict) or "testCases" not in run or "metricsScores" not in run:
        return None
    cases = fields.tables(run["testCases"], "testCases")
    cases += fields.tables(run.get("conversationalTestCases") or [], "conversationalTestCases")
    lower, higher = (_passing_below(cases, below=below) for below in (True, False))
    rows = [_row(case, lower) for case in cases]
    passed, failed = fields.count(run.get("testPassed")) or 0, fields.count(run.get("testFailed")) or 0
    total = passed + failed
    parameters = run.get("hyperparameters")
    model = fields.words(parameters.get("model")) if isinstance(parameters, dict) else ""
    return [
        ResultSet(
            suite=fields.words(run.get("identifier")) or fields.words(run.get("testFile")) or "deepeval",
            arm=model or None,
            rows=rows,
            fingerprint={
                "metrics": digest(sorted({_metric(one) for case in cases for one in _metrics(case)}))
            },
            official=OfficialScore(
                name="passed", value=passed / total if total else None, of=total, rule=_RULE
            ),
            contradictions=(
                *_contradictions(run, cases),
                *(
                    f"metric {name!r} passes above its threshold, and below it."
                    for name in sorted(lower & higher)
                ),
            ),
            run_ids=(digest(cases),),
        )
    ]


READER = Reader(
    "deepeval",
    "a DeepEval test run",
    read,
    files="test runs (`.latest_run_full.json`, `.latest_test_run.json`, `test_run_*.json`)",
    tried_with="deepeval 4.3.1",
    compared="`testPassed`, `testFailed`, `metricsScores`",
)


def _contradictions(run: Mapping[str, Any], cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the totals of a run that its test cases contradict."""
    for key, success in (("testPassed", True), ("testFailed", False)):
        stated, found = fields.count(run.get(key)), sum(case.get("success") is success for case in cases)
        if stated is not None and stated != found:
            yield f"{key} is {stated:,}, and {found:,} test cases have success: {str(success).lower()}."
    results: dict[str, Counter[str]] = {}
    for metric in (metric for case in cases for metric in _metrics(case)):
        of = results.setdefault(str(metric.get("name")), Counter())
        of["errors" if metric.get("error") else "passes" if metric.get("success") is True else "fails"] += 1
    scores = run["metricsScores"]
    for i, score in enumerate(scores if isinstance(scores, list) else []):
        found_of = results.get(str(score.get("metric"))) if isinstance(score, dict) else None
        for key in ("passes", "fails", "errors") if found_of else ():
            stated = fields.count(score.get(key))
            if found_of and stated is not None and stated != found_of[key]:
                yield f"metricsScores[{i}].{key} is {stated:,}, and the test cases have {found_of[key]:,}."


def _metrics(case: Mapping[str, Any]) -> list[dict[str, object]]:
    return fields.tables(case.get("metricsData") or [], "metricsData")


def _metric(metric: Mapping[str, Any]) -> str:
    return f"{fields.name(metric.get('name'), 'the name of a metric')} {metric.get('threshold')}"


def _passing_below(cases: Sequence[Mapping[str, Any]], *, below: bool) -> set[str]:
    """Return the metrics with a verdict that only a pass below, or only one above, the threshold explains."""
    found = set()
    for metric in (metric for case in cases for metric in _metrics(case)):
        score, threshold = (fields.share_or_none(metric.get(key)) for key in ("score", "threshold"))
        if score is not None and threshold is not None and score != threshold and not metric.get("error"):
            passed = metric.get("success") is True
            if (passed is (score < threshold)) is below:
                found.add(str(metric.get("name")))
    return found


def _score(metric: Mapping[str, Any], lower: AbstractSet[str]) -> float | None:
    """Return the score of a metric, of which 1 is best."""
    score = fields.score_or_none(metric.get("score"))
    if score is None or not 0 <= score <= 1:
        return score
    return 1 - score if str(metric.get("name")) in lower else score


def _row(case: Mapping[str, Any], lower: AbstractSet[str]) -> Row:
    metrics = _metrics(case)
    row = Row(
        test=fields.test_name(case.get("name")),
        groups=tuple(dict.fromkeys(fields.names(case.get("tags") or [], "tags"))),
        definition=digest([case.get(key) for key in _ASKED]),
        conversation=_conversation(case),
        checks=tuple(_check(metric, lower) for metric in metrics) if len(metrics) > 1 else (),
        cost_usd=fields.amount(case.get("tokenCost")),
        seconds=fields.amount(case.get("completionTime")),
    )
    deciding = [metric for metric in metrics if metric.get("flaky") is not True]
    if broken := next((metric for metric in deciding if metric.get("error")), None):
        reason = f"{broken['name']}: {fields.words(broken['error'])}"
        return row._replace(undecided=fields.ERROR, reason=reason)
    if not deciding and (metrics or case.get("success") is not False):
        return row._replace(undecided=fields.SKIPPED, reason="has no metrics, so nothing was checked")
    if case.get("success") is None:
        return row._replace(undecided=fields.EMPTY, reason="has no result")
    failed = [metric for metric in deciding if metric.get("success") is not True]
    passed = fields.truth(case["success"], f"success of {row.test!r}")
    if deciding and passed is bool(failed):
        raise ValueError(f"success of {row.test!r} does not agree with its metrics")
    scores = [score for metric in deciding if (score := _score(metric, lower)) is not None]
    reason = "; ".join(f"{one['name']}: {fields.words(one.get('reason'))}" for one in failed)
    wrong = next((score for score in scores if not 0 <= score <= 1), None)
    score = wrong if wrong is not None or not scores else sum(scores) / len(scores)
    return row._replace(passed=passed, score=score, reason=reason)


def _check(metric: Mapping[str, Any], lower: AbstractSet[str]) -> Check:
    title = fields.name(metric.get("name"), "the name of a metric")
    if broken := fields.words(metric.get("error")):
        return Check(title, passed=None, reason=broken)
    passed = metric.get("success")
    score = _score(metric, lower)
    return Check(title, passed=passed is True, score=score, reason=fields.words(metric.get("reason")))


def _conversation(case: Mapping[str, Any]) -> tuple[Message, ...]:
    turns = case.get("turns")
    if not isinstance(turns, list):
        said = {
            "role": "assistant",
            "content": case.get("actualOutput"),
            "toolsCalled": case.get("toolsCalled"),
        }
        turns = [{"role": "user", "content": case.get("input")}, said]
    found = (_message(turn) for turn in turns if isinstance(turn, dict))
    return tuple(message for message in found if message and (message.text or message.tool_calls))


def _message(turn: Mapping[str, Any]) -> Message | None:
    called = turn.get("toolsCalled")
    calls = [one for one in called if isinstance(one, dict)] if isinstance(called, list) else []
    shaped = (
        {"id": str(i), "name": one.get("name"), "arguments": one.get("inputParameters")}
        for i, one in enumerate(calls)
    )
    results = {str(i): one["output"] for i, one in enumerate(calls) if isinstance(one.get("output"), str)}
    known = [call for one in shaped if (call := fields.tool_call(one, results))]
    return fields.message(turn.get("role"), turn.get("content"), known)
