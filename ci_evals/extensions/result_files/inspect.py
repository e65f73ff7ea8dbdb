"""Logs of Inspect (github.com/UKGovernmentBEIS/inspect_ai), `.json` and `.eval`.

Read from logs of inspect_ai 0.3.180 and 0.3.285. An `.eval` file is a zip file: `header.json` has the log
without its samples, `summaries.json` what is known of each sample, `samples/ID_epoch_N.json` the whole of
each. A log that was broken off has `_journal/start.json` and `_journal/summaries/*.json` instead of the
first two.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ci_evals.domain.results.suite import OfficialScore
from ci_evals.extension_support.result_files import fields
from ci_evals.extension_support.result_files.reader import Reader
from ci_evals.extension_support.result_files.result_rows import Check, ResultSet, Row
from ci_evals.extension_support.result_files.source import Member, SourceFile
from ci_evals.extensions.result_files import inspect_totals
from ci_evals.support.digest import digest
from ci_evals.support.json_text import JsonObject

_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_MOST_OF_CONVERSATIONS = 100_000_000
"""Bytes of samples that are unpacked for the messages in them."""
_MOST_SAMPLES = 1_000_000
_RULE = "Samples that broke are left out, and a sample counts with the mean of its epochs."


def read(file: SourceFile) -> Sequence[ResultSet] | None:
    """Read the log of one task."""
    members = file.members()
    if members is not None:
        log = _packed(members)
        samples = _summaries(members) if log else []
    else:
        log = file.json()
        samples = log.get("samples") or [] if _is_log(log) else []
    if not _is_log(log):
        return None
    if log.get("status") not in {"started", "success", "cancelled", "error"}:
        raise file.broken(f"has the unknown status {fields.shown(log.get('status'))}.")
    evaluation = log["eval"]
    scorer, key, official = _official(log)
    played = [_row(sample, scorer, key) for sample in fields.tables(samples, "samples")]
    rows = [*_with_messages(played, samples, members), *_never_began(evaluation, played)]
    if official and not official.of:  # older logs do not state how many samples were scored
        scored = len({row.test for row in played if row.passed is not None})
        official = replace(official, of=scored, value=official.value if scored else None)
    return [
        ResultSet(
            suite=fields.name(evaluation["task"], "eval.task"),
            arm=fields.name(evaluation["model"], "eval.model"),
            rows=rows,
            fingerprint=_fingerprint(evaluation),
            official=official,
            contradictions=tuple(inspect_totals.contradictions(log, rows, played)),
            run_ids=inspect_totals.run_ids(evaluation),
        )
    ]


READER = Reader(
    "inspect",
    "an Inspect log",
    read,
    files="Inspect logs, `.json` and `.eval`",
    tried_with="inspect_ai 0.3.285, 0.3.180",
    compared="`status`, the planned samples and epochs, `total_samples`, "
    "`completed_samples`, `scored_samples`, the accuracy",
)


def _is_log(log: Any) -> bool:
    evaluation = log.get("eval") if isinstance(log, dict) else None
    return isinstance(evaluation, dict) and "task" in evaluation and "model" in evaluation


def _packed(members: Mapping[str, Member]) -> Any:
    if "header.json" in members:
        return members["header.json"].json()
    start = members["_journal/start.json"].json() if "_journal/start.json" in members else None
    return start | {"status": start.get("status", "started")} if isinstance(start, dict) else None


def _summaries(members: Mapping[str, Member]) -> list[Any]:
    if "summaries.json" in members:
        return fields.tables(members["summaries.json"].json(), "summaries.json")
    parts = {
        int(found[1]): name
        for name in members
        if (found := re.fullmatch(r"_journal/summaries/(\d{1,9})\.json", name))
    }
    return [item for _, name in sorted(parts.items()) for item in fields.tables(members[name].json(), name)]


def _official(log: Mapping[str, Any]) -> tuple[str | None, str | None, OfficialScore | None]:
    """Return the scorer that counts, the name of its score, and the number that the log states."""
    results = log.get("results")
    scores = fields.tables(results.get("scores") or [], "results.scores") if isinstance(results, dict) else []
    if not scores:
        return None, None, None
    headline = results.get("headline") if isinstance(results, dict) else None
    headline = headline if isinstance(headline, dict) else {}
    wanted = headline.get("scorer"), headline.get("score")
    first = next((one for one in scores if (one.get("scorer"), one.get("name")) == wanted), scores[0])
    metrics = fields.table(first.get("metrics") or {}, "results.scores[0].metrics")
    metric = headline.get("metric") if first is not scores[0] or headline.get("metric") in metrics else None
    metric = metric if metric in metrics else next(iter(metrics), None)
    stated = metrics[metric].get("value") if metric and isinstance(metrics[metric], dict) else None
    scored = fields.count(first.get("scored_samples"))
    official = OfficialScore(
        name=str(metric or "accuracy")[:200], value=fields.share_or_none(stated), of=scored or 0, rule=_RULE
    )
    return fields.name(first["scorer"], "scorer"), fields.name(first["name"], "name"), official


def _without_ids(asked: Any) -> Any:
    """Return the input without the ids of its messages, which each run draws again."""
    if not isinstance(asked, list):
        return asked
    return [
        {key: value for key, value in one.items() if key != "id"} if isinstance(one, dict) else one
        for one in asked
    ]


def _row(sample: Mapping[str, Any], scorer: str | None, key: str | None) -> Row:
    usage = sample.get("model_usage")
    models = [one for one in usage.values() if isinstance(one, dict)] if isinstance(usage, dict) else []
    scores = sample.get("scores") or {}
    row = Row(
        test=fields.name(sample["id"], "the id of a sample"),
        trial=fields.count(sample.get("epoch")),
        definition=digest([_without_ids(sample.get("input")), sample.get("target")]),
        seconds=fields.amount(sample.get("total_time")),
        input_tokens=_total(models, "input_tokens"),
        output_tokens=_total(models, "output_tokens"),
        cost_usd=fields.amount(sum(costs)) if (costs := _numbers(models, "total_cost")) else None,
    )
    broken = sample.get("error")
    if broken or not scores:  # a sample that broke may have a score beside its error
        reason = broken.get("message") if isinstance(broken, dict) else broken
        cause = fields.ERROR if broken else fields.EMPTY
        return row._replace(undecided=cause, reason=fields.words(reason) or "was not scored")
    each = {by: _scores(score) for by, score in fields.table(scores, "scores").items()}
    chosen = each.get(scorer or "") or next(iter(each.values()))
    value, reason = chosen.get(key or "") or next(iter(chosen.values()))
    if value is None:
        return row._replace(undecided=fields.EMPTY, reason=reason or "was not scored")
    score = fields.share(value, f"the score of sample {row.test!r}")
    named = [
        (by if len(parts) == 1 else f"{by}: {part}", one)
        for by, parts in each.items()
        for part, one in parts.items()
    ]
    return row._replace(
        score=score,
        passed=score == 1,
        reason="" if score == 1 else reason,
        checks=tuple(_check(by, *one) for by, one in named) if len(named) > 1 else (),
    )


def _scores(score: Any) -> dict[str, tuple[float | None, str]]:
    """Return the values of a scorer's score, and what it says of them: it may have several by name."""
    record = fields.table(score, "a score")
    value, reason = record.get("value"), fields.words(record.get("explanation"))
    parts = value if isinstance(value, dict) and value else {"": value}
    return {str(part): (_number(one), reason) for part, one in parts.items()}


def _number(value: Any) -> float | None:
    """Return a value as Inspect's own `value_to_float` reads it; None where there is none."""
    if isinstance(value, str):
        word = value.strip()
        known = _LETTERS.get(word, _WORDS.get(word.lower()))
        return known if known is not None else float(word)
    if value is None or (isinstance(value, float) and math.isnan(value)):  # NaN: unscored
        return None
    if not isinstance(value, bool | int | float):
        raise ValueError(f"a score is {fields.shown(value)}")  # noqa: TRY004
    return float(value)


def _check(name: str, value: float | None, reason: str) -> Check:
    score = fields.share_or_none(value)
    if score is None:
        return Check(name, passed=None, reason=f"the score is {fields.shown(value)}")
    return Check(name, passed=score == 1, score=score, reason=reason)


def _numbers(models: list[JsonObject], key: str) -> list[float]:
    return [number for one in models if (number := fields.amount(one.get(key))) is not None]


def _total(models: list[JsonObject], key: str) -> int | None:
    found = [number for one in models if (number := fields.count(one.get(key))) is not None]
    return sum(found) if found else None


def _with_messages(
    rows: list[Row], samples: list[JsonObject], members: Mapping[str, Member] | None
) -> Iterator[Row]:
    """Add the messages, from the sample itself or from its member, as long as they are not too large."""
    budget = _MOST_OF_CONVERSATIONS
    for row, sample in zip(rows, samples, strict=True):
        whole: Any = sample
        if members is not None:
            member = members.get(f"samples/{row.test}_epoch_{row.trial}.json")
            budget -= member.size if member else 0
            whole = member.json() if member and budget >= 0 else None
        messages = whole.get("messages") if isinstance(whole, dict) else None
        yield row._replace(conversation=fields.conversation(messages))


def _fingerprint(evaluation: Mapping[str, Any]) -> dict[str, str]:
    data = evaluation.get("dataset")
    scorers = evaluation.get("scorers")
    return {
        "task version": str(evaluation.get("task_version", 0))[:100],
        "task arguments": digest(evaluation.get("task_args") or {}),
        "data set": digest(
            [data.get(key) for key in ("name", "samples", "sample_ids")] if isinstance(data, dict) else None
        ),
        "scorers": digest(
            [one.get("name") for one in scorers if isinstance(one, dict)] if isinstance(scorers, list) else []
        ),
    }


def _never_began(evaluation: Mapping[str, Any], rows: list[Row]) -> list[Row]:
    """Return a row for each epoch of a sample that a log which was broken off does not have."""
    data, config = evaluation.get("dataset"), evaluation.get("config")
    ids = data.get("sample_ids") if isinstance(data, dict) else None
    epochs = fields.count(config.get("epochs")) if isinstance(config, dict) else None
    if not isinstance(ids, list) or len(ids) * (epochs or 1) > _MOST_SAMPLES:
        return []
    there = {(row.test, row.trial) for row in rows}
    expected = [
        (name, epoch) for epoch in range(1, (epochs or 1) + 1) for name in fields.names(ids, "sample_ids")
    ]
    return [
        Row(test=name, trial=epoch, undecided=fields.ERROR, reason="never began")
        for name, epoch in expected
        if (name, epoch) not in there
    ]
