"""Results of promptfoo (github.com/promptfoo/promptfoo), version 3: `-o results.json` and `-o results.jsonl`.

Read from files of promptfoo 0.123.1. Its `--repeat` gives every repeat a `testIdx` of its own: trials are the
rows whose test, prompt and provider are equal. `error` also holds the reason of a failed assertion; only a
row with the `failureReason` 2 broke. The export as `.xml` is no JUnit, and that as `.junit.xml` has repeats
as other tests.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ci_evals.domain.results.suite import OfficialScore
from ci_evals.extension_support.result_files import fields
from ci_evals.extension_support.result_files.reader import Reader
from ci_evals.extension_support.result_files.result_rows import Check, Message, ResultSet, Row
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.support.digest import digest
from ci_evals.support.json_text import JsonObject

_ERROR = 2
_RULE = "A row that broke counts as a failure, and one without assertions as a pass."


def read(file: SourceFile) -> Sequence[ResultSet] | None:
    """Read the results of one evaluation: an arm for each pair of a prompt and a provider."""
    document = file.json()
    results: JsonObject = {}
    if isinstance(document, dict) and _is_row(document):
        document = None
    if document is None:
        lines = file.json_lines()
        rows = _of_lines(lines) if lines is not None else None
        suite = ""
    else:
        rows, suite = _of_document(document)
        results = document["results"] if rows is not None else {}
    if rows is None:
        return None
    several = len({_provider(row) for row in rows}) > 1, len({row["prompt"].get("label") for row in rows}) > 1
    arms: dict[str, list[JsonObject]] = {}
    for row in rows:
        arms.setdefault(_arm(row, *several), []).append(row)
    found = [_arm_results(suite or "promptfoo", arm, of_arm) for arm, of_arm in arms.items()]
    wrong = tuple(_contradictions(results, rows))
    runs = tuple(filter(None, (document and fields.words(document.get("evalId")), _ids(rows))))
    return [replace(one, contradictions=wrong, run_ids=runs) for one in found]


READER = Reader(
    "promptfoo",
    "promptfoo results (version 3)",
    read,
    files="results as JSON or JSON Lines, version 3",
    tried_with="promptfoo 0.123.1",
    compared="`stats`, and the counts in `prompts`",
)


def _arm_results(suite: str, arm: str, rows: Sequence[Mapping[str, Any]]) -> ResultSet:
    names = [(_title(row["testCase"]), _definition(row)) for row in rows]
    ambiguous = {title for title, times in Counter(title for title, _ in set(names)).items() if times > 1}
    official = OfficialScore(
        name="passed",
        value=sum(row.get("success") is True for row in rows) / len(rows),
        of=len(rows),
        rule=_RULE,
    )
    made = [_row(row, *name, shared=name[0] in ambiguous) for row, name in zip(rows, names, strict=True)]
    return ResultSet(suite=suite, arm=arm, rows=made, official=official)


def _ids(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a digest of the rows' ids, the same in JSON and JSON Lines of a run; empty without ids."""
    ids = [fields.words(row.get("id")) for row in rows]
    return digest(sorted(ids)) if all(ids) else ""


def _contradictions(results: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the totals of a document that its rows contradict."""
    stats = results.get("stats")
    if isinstance(stats, dict):
        names = ("successes", "failures", "errors")
        yield from _differences("results.stats", stats, dict(zip(names, _counts(rows), strict=True)))
    prompts = results.get("prompts")
    for index, prompt in enumerate(prompts if isinstance(prompts, list) else []):
        metrics = prompt.get("metrics") if isinstance(prompt, dict) else None
        if isinstance(metrics, dict):
            own = [row for row in rows if row.get("promptIdx") == index]
            names = ("testPassCount", "testFailCount", "testErrorCount")
            place = f"results.prompts[{index}].metrics"
            yield from _differences(place, metrics, dict(zip(names, _counts(own), strict=True)))


def _counts(rows: Iterable[Mapping[str, Any]]) -> tuple[int, int, int]:
    """Return how many rows passed, failed and broke, as promptfoo counts."""
    passed = failed = broken = 0
    for row in rows:
        if row.get("success") is True:
            passed += 1
        elif row["failureReason"] == _ERROR:
            broken += 1
        else:
            failed += 1
    return passed, failed, broken


def _differences(place: str, stated: Mapping[str, Any], found: Mapping[str, int]) -> Iterator[str]:
    for key, number in found.items():
        count = fields.count(stated.get(key))
        if count is not None and count != number:
            yield f"{place}.{key} is {count:,}, and the results have {number:,}."


def _is_row(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("testCase"), dict)
        and isinstance(value.get("provider"), dict)
        and isinstance(value.get("prompt"), dict)
        and "failureReason" in value
    )


def _of_document(document: Any) -> tuple[list[JsonObject] | None, str]:
    results = document.get("results") if isinstance(document, dict) else None
    if not isinstance(results, dict) or "evalId" not in document or "results" not in results:
        return None, ""
    if results.get("version") != 3:
        raise ValueError(f"its version is {fields.shown(results.get('version'))}, and only 3 is known")
    rows = fields.tables(results["results"], "results.results")
    wrong = next((i for i, row in enumerate(rows) if not _is_row(row)), None)
    if wrong is not None:
        raise ValueError(f"results.results[{wrong}] has no testCase, provider, prompt or failureReason")
    config = document.get("config")
    return rows, fields.words(config.get("description"))[:200] if isinstance(config, dict) else ""


def _of_lines(lines: Iterable[Any]) -> list[JsonObject] | None:
    rows: list[JsonObject] = []
    for line in lines:
        if not _is_row(line):
            if rows:
                raise ValueError(f"row {len(rows) + 1} has no testCase, provider, prompt or failureReason")
            return None
        rows.append(line)
    return rows or None


def _provider(row: Mapping[str, Any]) -> str:
    return fields.name(row["provider"].get("label") or row["provider"].get("id"), "provider.label")


def _arm(row: Mapping[str, Any], providers: bool, prompts: bool) -> str:
    """Return what a user compares: the provider, the prompt, or the pair of them."""
    prompt = fields.words(row["prompt"].get("label")).strip()[:200] or "prompt"
    return " · ".join([_provider(row)] * (providers or not prompts) + [prompt] * prompts)


def _definition(row: Mapping[str, Any]) -> str:
    return digest({key: row["testCase"].get(key) for key in ("description", "vars", "assert")})


def _row(row: Mapping[str, Any], title: str, definition: str, *, shared: bool) -> Row:
    usage = row.get("tokenUsage")
    tokens = usage if isinstance(usage, dict) else {}
    told = bool(fields.count(tokens.get("total")))
    cost = fields.amount(row.get("cost"))
    milliseconds = fields.amount(row.get("latencyMs"))
    common = Row(
        test=f"{title} #{definition[:8]}" if shared or not title else title,
        definition=definition,
        conversation=_conversation(row),
        cost_usd=cost or None,  # 0 where the provider told none
        input_tokens=fields.count(tokens.get("prompt")) if told else None,
        output_tokens=fields.count(tokens.get("completion")) if told else None,
        seconds=None if milliseconds is None else milliseconds / 1000,
    )
    if row["failureReason"] == _ERROR:
        return common._replace(undecided=fields.ERROR, reason=fields.words(row.get("error")) or "broke")
    passed = fields.truth(row.get("success"), f"success of {common.test!r}")
    if passed and (denial := _denial(row)):
        return common._replace(undecided=fields.ERROR, reason=f"success is true, and {denial}")
    grading = row.get("gradingResult")
    checks = grading.get("componentResults") if isinstance(grading, dict) else None
    if not checks and passed:
        return common._replace(undecided=fields.SKIPPED, reason="has no assertions, so nothing was checked")
    return common._replace(
        passed=passed,
        score=fields.score_or_none(row.get("score")),
        reason="" if passed else fields.words(row.get("error")),
        checks=tuple(_check(one) for one in fields.tables(checks or [], "componentResults")),
    )


def _denial(row: Mapping[str, Any]) -> str:
    """Return what denies that a row passed; empty if nothing does."""
    grading, response = row.get("gradingResult"), row.get("response")
    if isinstance(grading, dict) and grading.get("pass") is False:
        return "gradingResult.pass is false"
    if row["failureReason"]:
        return f"failureReason is {fields.shown(row['failureReason'])}"
    if error := fields.words(row.get("error")):
        return f"error is {error}"
    if isinstance(response, dict) and response.get("error"):
        return f"response.error is {fields.words(response['error']) or 'set'}"
    return ""


def _title(case: Mapping[str, Any]) -> str:
    if described := fields.words(case.get("description")).strip():
        return described[:500]
    given = case.get("vars")
    pairs = [f"{key}={value}" for key, value in given.items()] if isinstance(given, dict) else []
    return " ".join(", ".join(pairs).split())[:200]


def _check(result: Mapping[str, Any]) -> Check:
    assertion = result.get("assertion")
    known = assertion if isinstance(assertion, dict) else {}
    title = fields.words(known.get("metric")) or ": ".join(
        part for part in (fields.words(known.get("type")), fields.words(known.get("value"))[:80]) if part
    )
    passed = fields.truth(result.get("pass"), "pass of an assertion")
    score = fields.score_or_none(result.get("score"))
    return Check(title or "assertion", passed=passed, score=score, reason=fields.words(result.get("reason")))


def _conversation(row: Mapping[str, Any]) -> tuple[Message, ...]:
    response = row.get("response")
    output = response.get("output") if isinstance(response, dict) else None
    asked, said = fields.message("user", row["prompt"].get("raw")), fields.message("assistant", output)
    return tuple(one for one in (asked, said) if one and one.text)
