"""Records of Every Eval Ever (github.com/evaleval/every_eval_ever), schema version 0.3.0.

Read from what the converters of every-eval-ever 0.3.0 write: samples as JSON lines, and an aggregate with
the official scores. There a sample's `score` is that of all its epochs together, the same in each of them:
they are one row. An epoch that broke has `is_correct: true` beside its `error`, and so has half a point: it
is an undecided row, whatever the others say. Where the scores of epochs differ, or ci-evals wrote them,
epochs are trials. A record that repeats the metric of another one is of another epoch, also where none is
named. Further metrics of a sample are its checks. `file_path` of an aggregate is not followed.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ci_evals.domain.results.suite import OfficialScore
from ci_evals.extension_support.result_files import fields
from ci_evals.extension_support.result_files.reader import Reader
from ci_evals.extension_support.result_files.result_rows import Check, Message, ResultSet, Row, StatedTotals
from ci_evals.extension_support.result_files.source import SourceFile

_OF_SAMPLE = {"schema_version", "evaluation_id", "model_id", "evaluation_name", "sample_id", "evaluation"}

_NAMELESS = "score"
"""The metric of samples that name none."""
_MEANS = {"acc", "accuracy", "exact_match", "mean", "score"}
"""Metrics that are the mean of the samples' scores."""

Sample = Mapping[str, Any]


def read(file: SourceFile) -> Sequence[ResultSet] | None:
    """Read an aggregate, or samples."""
    aggregate = file.json()
    if (
        isinstance(aggregate, dict)
        and {"schema_version", "evaluation_results", "model_info"} <= aggregate.keys()
    ):
        return _of_aggregate(aggregate)
    lines = file.json_lines()
    if lines is None:
        return None
    sets: dict[tuple[str, str, str], dict[str, list[Sample]]] = {}
    for line in lines:
        if not isinstance(line, dict) or not line.keys() >= _OF_SAMPLE:
            if sets:
                raise ValueError("a line is no record of a sample")
            return None
        key = (
            fields.name(line["evaluation_name"], "evaluation_name"),
            fields.name(line["model_id"], "model_id"),
            fields.name(line["evaluation_id"], "evaluation_id"),
        )
        sets.setdefault(key, {}).setdefault(fields.name(line["sample_id"], "sample_id"), []).append(line)
    return [
        ResultSet(
            suite=suite,
            arm=model,
            rows=[row for test, records in tests.items() for row in _rows(test, records)],
            run_ids=(f"{run} {suite}",),
            records=sum(map(len, tests.values())),
            metric=_metric(tests),
        )
        for (suite, model, run), tests in sets.items()
    ] or None


READER = Reader(
    "eee",
    "records of Every Eval Ever",
    read,
    files="Every Eval Ever, aggregates and samples",
    tried_with="every-eval-ever 0.3.0",
    compared="`num_samples`, `total_rows`, and scores that are means",
)


def _metric(tests: Mapping[str, Sequence[Sample]]) -> str:
    """Return the metric that decides: the first one."""
    first = next(iter(tests.values()))[0]
    return fields.words(first.get("evaluation_result_id"))[:200] or _NAMELESS


def _of_aggregate(aggregate: Mapping[str, Any]) -> list[ResultSet]:
    model = fields.name(fields.table(aggregate["model_info"], "model_info")["id"], "model_info.id")
    found: dict[str, ResultSet] = {}
    for i, result in enumerate(fields.tables(aggregate["evaluation_results"], "evaluation_results")):
        suite = fields.name(result["evaluation_name"], "evaluation_name")
        metric = fields.table(result.get("metric_config") or {}, "metric_config")
        details = fields.table(result.get("score_details") or {}, "score_details")
        uncertainty = details.get("uncertainty")
        of = fields.count(uncertainty.get("num_samples")) if isinstance(uncertainty, dict) else None
        lower = metric.get("lower_is_better") is True
        score = fields.share_or_none(details.get("score"))
        title = fields.words(metric.get("metric_name")) or "score"
        higher = {fields.words(result.get("evaluation_result_id"))[:200] or _NAMELESS: not lower}
        known = found.get(suite)
        if known:
            directions = {**higher, **known.higher_is_better}
            found[suite] = replace(known, higher_is_better=directions)
            continue
        mean = score if title.lower() in _MEANS and not lower else None
        place = f"evaluation_results[{i}].score_details.uncertainty.num_samples"
        found[suite] = ResultSet(
            suite=suite,
            arm=model,
            official=OfficialScore(name=title[:200], value=None if lower else score, of=of or 0),
            stated=None if of is None else StatedTotals(place=place, samples=of, mean=mean),
            higher_is_better=higher,
        )
    detailed = aggregate.get("detailed_evaluation_results")
    records = fields.count(detailed.get("total_rows")) if isinstance(detailed, dict) else None
    if records is not None and len(found) == 1:  # else it counts the samples of all
        (one,) = found.values()
        if one.stated:
            return [replace(one, stated=replace(one.stated, records=records))]
    return list(found.values())


def _rows(test: str, records: list[Sample]) -> Iterator[Row]:
    """Yield the row of a sample, or one of each epoch if their scores differ; each that broke has its own."""
    epochs = _epochs(records)
    whole = [epoch for epoch in epochs if not _broken(epoch)]
    each = any(_metadata(record).get("scored") == "each epoch" for record in records)
    if each or len({_score(epoch[0]) for epoch in whole}) > 1:
        yield from (_row(test, epoch) for epoch in epochs)
        return
    if whole:
        yield _row(test, [record for epoch in whole for record in epoch])
    yield from (_row(test, epoch) for epoch in epochs if _broken(epoch))


def _epochs(records: Sequence[Sample]) -> list[list[Sample]]:
    """Return the records of each epoch, which has one of each metric."""
    epochs: dict[tuple[str, int], list[Sample]] = {}
    times: Counter[tuple[str, str]] = Counter()
    for record in records:
        name = str(_metadata(record).get("epoch"))
        metric = name, str(record.get("evaluation_result_id"))
        epochs.setdefault((name, times[metric]), []).append(record)
        times[metric] += 1
    return list(epochs.values())


def _metadata(record: Sample) -> Mapping[str, Any]:
    metadata = record.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _broken(records: Sequence[Sample]) -> Sample | None:
    """Return the first record with an error."""
    return next((record for record in records if record.get("error")), None)


def _row(test: str, records: Sequence[Sample]) -> Row:
    """Return the row of these records: undecided if one has an error, else the first metric decides."""
    metrics: dict[str, Sample] = {}
    for record in records:
        metrics.setdefault(str(record.get("evaluation_result_id")), record)
    sample = records[0]
    row = Row(
        test=test,
        definition=fields.words(sample.get("sample_hash"))[:100] or None,
    )
    if broken := _broken(records):
        return row._replace(undecided=fields.ERROR, reason=fields.words(broken["error"]) or "broke")
    usage, performance = sample.get("token_usage"), sample.get("performance")
    latency = fields.amount(performance.get("latency_ms")) if isinstance(performance, dict) else None
    tokens = usage if isinstance(usage, dict) else {}
    passed, score = _score(sample)
    checks = [(name, *_score(one)) for name, one in metrics.items()]
    return row._replace(
        passed=passed,
        score=score,
        checks=tuple(Check(name, passed=ok, score=share) for name, ok, share in checks)
        if len(checks) > 1
        else (),
        conversation=_conversation(sample),
        input_tokens=fields.count(tokens.get("input_tokens")),
        output_tokens=fields.count(tokens.get("output_tokens")),
        seconds=None if latency is None else latency / 1000,
    )


def _score(sample: Sample) -> tuple[bool, float | None]:
    evaluation = fields.table(sample["evaluation"], "evaluation")
    score, correct = (
        fields.score_or_none(evaluation.get("score")),
        fields.truth(evaluation["is_correct"], "is_correct"),
    )
    if score is None or (score == 1 and not correct):  # a full score that is called wrong is worth nothing
        return correct, None
    return score == 1, score


def _conversation(sample: Sample) -> tuple[Message, ...]:
    if isinstance(sample.get("messages"), list):
        return fields.conversation(sample["messages"])
    asked, said = sample.get("input"), sample.get("output")
    raw = said.get("raw") if isinstance(said, dict) else None
    both = (
        fields.message("user", asked.get("raw") if isinstance(asked, dict) else None),
        fields.message("assistant", raw[0] if isinstance(raw, list) and raw else raw),
    )
    return tuple(one for one in both if one and one.text)
