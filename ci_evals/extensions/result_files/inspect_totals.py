"""The totals that an Inspect log states, compared with its samples."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ci_evals.extension_support.result_files import fields
from ci_evals.extension_support.result_files.result_rows import Row, differ, mean_of

_MEANS = {"accuracy", "mean"}
"""Metrics that are the mean of the samples' scores."""


def run_ids(evaluation: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids of the run: its own, or in older logs those of run and task."""
    if own := fields.words(evaluation.get("eval_id")):
        return (own,)
    parts = [fields.words(evaluation.get(key)) for key in ("run_id", "task_id", "created")]
    return (" ".join(parts),) if parts[0] else ()


def contradictions(log: Mapping[str, Any], rows: Sequence[Row], played: Sequence[Row]) -> Iterator[str]:
    """Yield what a log says of its samples that they contradict.

    Args:
        log: The log.
        rows: All rows, also of samples that never began.
        played: Those of the samples in the log.
    """
    if log["status"] != "success":
        yield f"status is {log['status']!r}: the evaluation has not finished, or broke. Run it again."
    found = len(rows)
    planned = _planned(log["eval"])
    if planned is not None and planned > found:
        yield f"eval.dataset and eval.config plan {planned:,} samples and epochs, and the log has {found:,}."
    results = log.get("results")
    known = results if isinstance(results, dict) else {}
    total, completed = fields.count(known.get("total_samples")), fields.count(known.get("completed_samples"))
    if total is not None and total != found:
        yield f"results.total_samples is {total:,}, and the log has {found:,} samples."
    whole = sum(row.undecided is not fields.ERROR for row in played)
    if completed is not None and completed != whole:
        yield f"results.completed_samples is {completed:,}, and {whole:,} samples of the log did not break."
    yield from _scores(known, played)


def _planned(evaluation: Mapping[str, Any]) -> int | None:
    """Return how many samples and epochs there should be, if the log does not name the samples."""
    data, config = evaluation.get("dataset"), evaluation.get("config")
    if not isinstance(data, dict):
        return None
    options = config if isinstance(config, dict) else {}
    ids, samples = data.get("sample_ids"), fields.count(data.get("samples"))
    if isinstance(ids, list) and ids:
        samples = len(ids)
    elif options.get("limit") is not None or options.get("sample_id") is not None:
        return None  # `samples` counts the whole data set
    return None if samples is None else samples * (fields.count(options.get("epochs")) or 1)


def _scores(results: Mapping[str, Any], played: Sequence[Row]) -> Iterator[str]:
    """Yield what is said of the scorer that counts."""
    scores = results.get("scores")
    if results.get("headline") or not isinstance(scores, list) or len(scores) != 1:
        return
    score = scores[0]
    scored = fields.count(score.get("scored_samples"))
    tests = len({row.test for row in played if row.passed is not None})
    if scored is not None and scored != tests:
        yield f"results.scores[0].scored_samples is {scored:,}, and {tests:,} samples have a score."
    reducer, metrics = score.get("reducer"), score.get("metrics")
    if reducer not in {None, "mean"} or not isinstance(metrics, dict):
        return
    mean = mean_of(played)
    for name in _MEANS & metrics.keys():
        metric = metrics[name]
        stated = fields.share_or_none(metric.get("value")) if isinstance(metric, dict) else None
        if stated is not None and mean is not None and differ(mean, stated):
            yield f"results.scores[0].metrics.{name} is {stated:.3f}, and the samples have {mean:.3f}."
