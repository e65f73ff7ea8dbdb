"""Scores of which a lower one is better, read as ours: 1 is best."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ci_evals.extension_support.result_files.result_rows import Check, ResultSet, Row
from ci_evals.extensions.result_files.row_results import FileResults

_HIGHER = frozenset(
    {"acc", "acc_norm", "acc_mutual_info", "acc_bytes", "accuracy", "exact_match", "em", "f1", "likelihood"}
    | {"mcc", "pass@1", "pass_at_1", "bypass", "bleu", "chrf", "rouge1", "rouge2", "rougeL", "score", "mean"}
)
_LOWER = frozenset(
    {"ter", "wer", "cer", "brier_score", "perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte"}
)
"""Metrics whose direction is known without a file that states it."""


def with_directions(files: Sequence[FileResults]) -> list[FileResults]:
    """Turn the scores of which a lower one is better, as other files of their suite state it.

    Rows whose metric nobody knows contradict a verdict: their best may be their worst.
    """
    stated: dict[str, dict[str, bool]] = {}
    for file in files:
        for results in file.sets:
            stated.setdefault(results.suite, {}).update(results.higher_is_better)
    return [
        replace(file, sets=[_directed(results, stated[results.suite]) for results in file.sets])
        for file in files
    ]


def _directed(results: ResultSet, stated: Mapping[str, bool]) -> ResultSet:
    metric = results.metric
    if metric is None:
        return results
    higher = _is_higher(metric, stated)
    if higher is None:
        unknown = (
            f"the scores of {results.suite!r} are {metric!r}, and it is not known whether a higher one is "
            "better. Name the tool's results file too, which states it."
        )
        return replace(results, contradictions=(*results.contradictions, unknown))
    if higher and all(_is_higher(check.name, stated) is not False for check in _checks(results.rows)):
        return results
    return replace(results, rows=[_turned(row, stated, higher=higher) for row in results.rows])


def _is_higher(metric: str, stated: Mapping[str, bool]) -> bool | None:
    if metric in stated:
        return stated[metric]
    if metric in _HIGHER:
        return True
    return False if metric in _LOWER else None


def _checks(rows: Iterable[Row]) -> Iterable[Check]:
    return next((row.checks for row in rows if row.checks), ())


def _turned(row: Row, stated: Mapping[str, bool], *, higher: bool) -> Row:
    checks = tuple(
        _turned_check(check) if _is_higher(check.name, stated) is False else check for check in row.checks
    )
    if higher or row.score is None:
        # A lower score is better, and there is none: passed or failed is all that is known.
        return row._replace(checks=checks)
    score = 1 - row.score
    passed = score == 1
    return row._replace(score=score, passed=passed, checks=checks, reason="" if passed else row.reason)


def _turned_check(check: Check) -> Check:
    if check.score is None:
        return check
    score = 1 - check.score
    return replace(check, score=score, passed=score == 1)
