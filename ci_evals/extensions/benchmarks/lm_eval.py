"""Results of lm-evaluation-harness (github.com/EleutherAI/lm-evaluation-harness).

Read from files of lm-eval 0.4.13: `samples_TASK_DATE.jsonl` (of `--log_samples`) has the rows,
`results_DATE.json` the official scores and the hashes of the tasks. A document stands in the samples once for
each filter: the first filter counts, and the first metric that is a score. The name of the task stands only
in the name of the samples' file, and the model only in the results: its arm is the kind of model with its
arguments, since `model_name` is a random word where the model has no name.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ci_evals.domain.results.suite import OfficialScore
from ci_evals.extension_support.result_files import fields
from ci_evals.extension_support.result_files.reader import Reader
from ci_evals.extension_support.result_files.result_rows import Check, Message, ResultSet, Row, StatedTotals
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.support.digest import digest

_SAMPLES = re.compile(r"samples_(.+)_\d{4}-\d\d-\d\dT[\d.:-]+$")
_OF_SAMPLE = {"doc_id", "doc_hash", "filter", "metrics"}


def read(file: SourceFile) -> Sequence[ResultSet] | None:
    """Read the samples of one task, or the results of all."""
    results = file.json()
    if (
        isinstance(results, dict)
        and {"results", "versions", "n-samples", "higher_is_better"} <= results.keys()
    ):
        return _of_results(results)
    lines = file.json_lines()
    if lines is None:
        return None
    rows: list[Row] = []
    first: tuple[str, str] | None = None
    for line in lines:
        if not isinstance(line, dict) or not line.keys() >= _OF_SAMPLE:
            if first:
                raise ValueError(f"a line after row {len(rows)} has no doc_id, doc_hash, filter or metrics")
            return None
        first = first or (fields.name(line["filter"], "filter"), _metric(line))
        if line["filter"] == first[0]:
            rows.append(_row(line, first[1]))
    found = _SAMPLES.fullmatch(file.stem)
    if first is None:
        return None
    return [ResultSet(suite=found[1] if found else file.stem, rows=rows, metric=first[1])]


READER = Reader(
    "lm-eval",
    "lm-evaluation-harness results or samples",
    read,
    files="`results_*.json` and `samples_*.jsonl`, together",
    tried_with="lm-eval 0.4.13",
    compared="`n-samples`, and scores that are means; a task without a file of samples",
)


def _metric(sample: Mapping[str, Any]) -> str:
    metrics = fields.names(sample["metrics"], "metrics")
    found = next((one for one in metrics if _share(sample, one) is not None), None)
    if found is None:
        raise ValueError(f"none of its metrics ({', '.join(metrics)[:200]}) is a score from 0 to 1")
    return found


def _share(sample: Mapping[str, Any], metric: str) -> float | None:
    """Return a metric of a sample; None if it is another thing than a score, such as a perplexity."""
    value = sample.get(metric)
    return fields.share(value, metric) if fields.is_nan(value) else fields.share_or_none(value)


def _row(sample: Mapping[str, Any], metric: str) -> Row:
    score = fields.share(sample[metric], metric)
    metrics = fields.names(sample["metrics"], "metrics")
    asked = [
        fields.name(sample[key], key) for key in ("doc_hash", "prompt_hash", "target_hash") if sample.get(key)
    ]
    scores = [(one, share) for one in metrics if (share := _share(sample, one)) is not None]
    return Row(
        test=fields.name(sample["doc_id"], "doc_id"),
        passed=score == 1,
        score=score,
        reason="" if score == 1 else f"{metric} {score:g}",
        definition=digest(asked),
        checks=tuple(Check(one, passed=share == 1, score=share) for one, share in scores)
        if len(scores) > 1
        else (),
        conversation=_conversation(sample),
    )


def _conversation(sample: Mapping[str, Any]) -> tuple[Message, ...]:
    arguments, said = sample.get("arguments"), sample.get("filtered_resps")
    first = next(iter(arguments.values()), None) if isinstance(arguments, dict) else None
    asked = first.get("arg_0") if isinstance(first, dict) else None
    answer = said[0] if isinstance(said, list) and said else None
    both = (
        fields.message("user", asked),
        fields.message("assistant", answer if isinstance(answer, str) else None),
    )
    return tuple(one for one in both if one and one.text)


def _of_results(results: Mapping[str, Any]) -> list[ResultSet]:
    hashes = fields.table(results.get("task_hashes") or {}, "task_hashes")
    counts = fields.table(results["n-samples"], "n-samples")
    versions = fields.table(results["versions"], "versions")
    config = fields.table(results.get("config") or {}, "config")
    arm = " ".join(filter(None, (fields.words(config.get("model")), _arguments(config.get("model_args")))))
    found = []
    for task, metrics in fields.table(results["results"], "results").items():
        if task not in counts:  # a group
            continue
        fingerprint = {"version of the task": str(versions.get(task))[:100]}
        fingerprint |= {"task hash": hashes[task][:100]} if isinstance(hashes.get(task), str) else {}
        effective = fields.count(fields.table(counts[task], "n-samples").get("effective")) or 0
        official = _official(fields.table(metrics, task), effective)
        directions = _directions(results, task)
        mean = official.value if official and _is_mean(results, task, official.name) else None
        if official and directions.get(official.name.partition(" ")[0]) is False:
            mean = None if mean is None else 1 - mean  # as the rows are read
        found.append(
            ResultSet(
                suite=task,
                arm=arm[:500] or None,
                fingerprint=fingerprint,
                official=official,
                stated=StatedTotals(place=f"n-samples.{task}.effective", samples=effective, mean=mean),
                higher_is_better=directions,
            )
        )
    return found


def _directions(results: Mapping[str, Any], task: str) -> dict[str, bool]:
    """Return which metrics of a task are better if they are higher."""
    told = fields.table(results["higher_is_better"], "higher_is_better").get(task)
    return {key: one for key, one in told.items() if isinstance(one, bool)} if isinstance(told, dict) else {}


def _is_mean(results: Mapping[str, Any], task: str, official: str) -> bool:
    """Return whether the official score is the mean of the samples' scores."""
    configs = results.get("configs")
    config = configs.get(task) if isinstance(configs, dict) else None
    metrics = config.get("metric_list") if isinstance(config, dict) else None
    return isinstance(metrics, list) and any(
        isinstance(one, dict)
        and one.get("aggregation") == "mean"
        and one.get("metric") == official.partition(" ")[0]
        for one in metrics
    )


def _arguments(value: Any) -> str:
    """Return a model's arguments, which are a text or, by name, an object."""
    pairs = value.items() if isinstance(value, dict) else ()
    return fields.words(value) or ",".join(f"{key}={one}" for key, one in pairs)


def _official(metrics: Mapping[str, Any], of: int) -> OfficialScore | None:
    """Return the first metric, with its filter: `exact_match,strict`."""
    for key, value in metrics.items():
        title, comma, chosen = key.partition(",")
        if comma and not title.endswith("_stderr"):
            name = title if chosen == "none" else f"{title} ({chosen})"
            return OfficialScore(name=name[:200], value=fields.share_or_none(value), of=of)
    return None
