"""One run of the rows of other tools' results: each row a trial of a test."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean

from ci_evals.domain.errors import UsageError
from ci_evals.domain.prices import PriceTable
from ci_evals.domain.results.suite import OTHER_TOOL, OfficialScore, SuiteResult, TestResult
from ci_evals.domain.results.trial import MOST_TRIALS, TrialResult
from ci_evals.domain.results.usage import Latency, RoleUsage
from ci_evals.domain.transcript import EndState, Turn, Turns, UserSource
from ci_evals.domain.verdict import Finding, Grade, Outcome
from ci_evals.extension_support.result_files.result_rows import Check, Message, ResultSet, Row, Undecided
from ci_evals.scoring import numbers
from ci_evals.scoring.scorecard import Scorecard, total
from ci_evals.scoring.scores import ScoreRule
from ci_evals.scoring.usage import usage_of
from ci_evals.support.digest import of_tests, of_texts
from ci_evals.support.redaction import Redactor

CRITERION = "The test passes"
"""The criterion of a row without checks of its own."""
_RULE = ScoreRule(offline=False)
_NO_TURNS = Turns()
_CAUSES = {
    Undecided.INFRASTRUCTURE: "the infrastructure failed",
    Undecided.ERROR: "it errored",
    Undecided.EMPTY: "there is no result",
}
_SHOWN = 5
"""Names that a message shows."""
_MOST_KINDS = 10_000
"""Values that are kept to be shared."""
_MOST_REASON = 4_000
_MOST_MESSAGE = 50_000

_Verdict = tuple[str, bool, float, str, str | None]
"""Criterion, passed, score, reason and category."""
OfficialRule = Callable[[Sequence[Row]], OfficialScore | None]


@dataclass(frozen=True)
class FileResults:
    """What a file holds, and how the tool that wrote it scores rows."""

    file: str
    format: str
    sets: Sequence[ResultSet]
    official: OfficialRule | None = None
    digest: str = ""
    """SHA-256 of the file."""
    content: str = ""
    """The same without blanks: a file that is only written in another way has it too."""

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(len(results.rows) for results in self.sets)


@dataclass(frozen=True)
class _Part:
    """A set of rows with the file it is from."""

    source: FileResults
    results: ResultSet


def with_arms(files: Sequence[FileResults]) -> list[FileResults]:
    """Give rows whose file names no arm the one that another file of their suite states, without rows.

    Raises:
        UsageError: such files state several.
    """
    stated: dict[str, dict[str, None]] = {}
    for file in files:
        for results in file.sets:
            if results.arm and not results.rows:
                stated.setdefault(results.suite, {})[results.arm] = None

    def named(results: ResultSet) -> ResultSet:
        arms = [*stated.get(results.suite, ())]
        if results.arm or not results.rows or not arms:
            return results
        if len(arms) > 1:
            raise UsageError(
                f"the results of {results.suite!r} are of several models: {_some(arms)}. Their rows do not "
                "say whose they are: gate the files of each model apart."
            )
        return replace(results, arm=arms[0])

    return [replace(file, sets=[named(results) for results in file.sets]) for file in files]


def _some(names: Sequence[str | None]) -> str:
    shown = ", ".join(repr(name) if name else "(without a name)" for name in names[:_SHOWN])
    return shown + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def arms_in(files: Iterable[FileResults]) -> tuple[str | None, ...]:
    """Return the arms of all sets, in the order of their first appearance."""
    return tuple(dict.fromkeys(results.arm for file in files for results in file.sets))


def of_arm(files: Sequence[FileResults], arm: str | None, setting: str = "arm") -> list[FileResults]:
    """Return the results of one arm; of the only one if none is named.

    Raises:
        UsageError: there are several and none is named, or there is none of this name.
    """
    arms = arms_in(files)
    names = _some(arms)
    if arm is None:
        if len(arms) > 1:
            raise UsageError(
                f"the results are of several models, prompts or providers: {names}. They are not mixed: "
                "choose one with `arm=`, and compare it with another by `baseline_arm=`."
            )
        return [*files]
    if arm not in arms:
        raise UsageError(f"`{setting}={arm}`: the results are not of this arm. They have: {names}.")
    return [
        replace(file, sets=own) for file in files if (own := [one for one in file.sets if one.arm == arm])
    ]


def scorecard(
    files: Sequence[FileResults],
    folders: Callable[[Sequence[str]], Sequence[str]],
    prices: PriceTable,
    redactor: Redactor,
) -> Scorecard:
    """Return the numbers of a run that is made of these results, all of one arm.

    Args:
        files: The results.
        folders: The folder of each suite's reports, by the suites' names.
        prices: Of models whose tokens are told, and no cost.
        redactor: Takes secrets out.

    Raises:
        UsageError: there are no rows, all of them are skipped, or files of a suite are not comparable.
    """
    parts: dict[str, list[_Part]] = {}
    for file in files:
        for results in file.sets:
            parts.setdefault(redactor.text(results.suite), []).append(_Part(file, results))
    parts = {name: own for name, own in parts.items() if any(part.results.rows for part in own)}
    if not parts:
        names = ", ".join(file.file for file in files[:_SHOWN])
        raise UsageError(f"{names}: there are no rows, so there is nothing to gate.")
    suites = [
        _suite(name, own, folder, redactor)
        for (name, own), folder in zip(parts.items(), folders([*parts]), strict=True)
    ]
    trials = [trial for suite in suites for test in suite.tests for trial in test.trials]
    usage = usage_of(trials, prices)
    if not usage.by_role:
        usage = replace(usage, cost_usd=None)
    card = total(suites, usage, _RULE)
    official = suites[0].official if len(suites) == 1 else None
    return replace(card, official=official, latency=Latency())


def _suite(name: str, parts: Sequence[_Part], folder: str, redactor: Redactor) -> SuiteResult:
    clean = redactor.text
    rows = [row for part in parts for row in part.results.rows]
    arm = parts[0].results.arm
    by_test: dict[str, list[Row]] = {}
    for row in rows:
        by_test.setdefault(row.test, []).append(row)
    test, most = max(by_test.items(), key=lambda item: len(item[1]))
    if len(most) > MOST_TRIALS:
        raise UsageError(
            f"{parts[0].source.file}: test {test[:100]!r} of {name!r} has {len(most):,} trials, and at most "
            f"{MOST_TRIALS:,} are read. Does each test have its own name?"
        )
    build = _Builder(redactor, clean(arm) if arm else None)
    tests = tuple(build.test(number, own) for number, own in enumerate(by_test.values(), 1))
    fingerprint = _fingerprint(name, parts)
    counted = numbers.of_suite(tests, _RULE)
    return SuiteResult(
        name=name,
        file=clean(parts[0].source.file),
        digest=of_tests(test.digest for test in tests),
        agent_id=clean(arm) if arm else None,
        adapter=OTHER_TOOL + parts[0].source.format,
        fingerprint={clean(key): clean(value) for key, value in fingerprint.items()},
        folder=folder,
        min_score=max((own for part in parts if (own := part.results.min_score) is not None), default=None),
        official=_official(parts, rows),
        score=counted.score,
        interval=counted.interval,
        decided_share=counted.decided_share,
        pass_at_k=counted.pass_at_k,
        pass_hat_k=counted.pass_hat_k,
        counts=counted.counts,
        categories=counted.categories,
        aui_logic=counted.aui_logic,
        tags=counted.tags,
        difficulties=counted.difficulties,
        process=counted.process,
        tests=tests,
    )


def _fingerprint(suite: str, parts: Sequence[_Part]) -> Mapping[str, str]:
    """Return what all files of a suite agree on.

    Raises:
        UsageError: they do not.
    """
    known: dict[str, tuple[str, str]] = {}
    for part in parts:
        for name, value in part.results.fingerprint.items():
            first, file = known.setdefault(name, (value, part.source.file))
            if value != first:
                raise UsageError(
                    f"{part.source.file}: the {name} of {suite!r} is {value[:100]!r}, in {file} it is "
                    f"{first[:100]!r}. Their results do not belong together: gate them apart."
                )
    return {name: value for name, (value, _) in known.items()}


def _official(parts: Sequence[_Part], rows: Sequence[Row]) -> OfficialScore | None:
    """Return the tool's own score of a suite: as a single file states it, else of all rows together."""
    stated = [part.results.official for part in parts if part.results.official]
    with_rows = sum(bool(part.results.rows) for part in parts)
    rule = parts[0].source.official
    if rule and (with_rows > 1 or not stated):
        return rule(rows)
    if len(stated) == 1 and with_rows == 1:
        return stated[0]
    if not stated or len(stated) != with_rows or len({one.name for one in stated}) > 1:
        return None
    if any(one.pass_at_k or one.value is None for one in stated):
        return None
    of = sum(one.of for one in stated)
    value = math.fsum((one.value or 0) * one.of for one in stated) / of if of else None
    return replace(stated[0], value=value, of=of)


@dataclass(frozen=True)
class _Builder:
    """Makes tests of rows, without secrets."""

    redactor: Redactor
    model: str | None

    def clean(self, text: str) -> str:
        """Return a text without secrets."""
        return self.redactor.text(text) if text else text

    def test(self, number: int, rows: Sequence[Row]) -> TestResult:
        """Return a test with a trial for each row that was run."""
        name = self.clean(rows[0].test)
        definitions = sorted({row.definition for row in rows if row.definition})
        clusters = [self.clean(row.cluster) for row in rows if row.cluster is not None]
        floors = [row.min_score for row in rows if row.min_score is not None]
        groups = tuple(dict.fromkeys(self.clean(group) for row in rows for group in row.groups))
        run = [row for row in rows if row.undecided is not Undecided.SKIPPED]
        category = groups[0] if groups else None
        trials = tuple(self._trial(index, row, category) for index, row in enumerate(run, 1))
        counted = numbers.of_test(trials, len(trials), _RULE)
        return TestResult(
            name=name,
            tags=_shared(groups),
            cluster=clusters[0] if clusters else None,
            critical=any(row.critical for row in rows),
            min_score=max(floors, default=None),
            line=number,
            digest=of_texts(definitions or [name]),
            guidelines="",
            turns=(),
            score=counted.score,
            pass_rate=counted.pass_rate,
            passed=counted.passed,
            outcome=counted.outcome,
            flaky=counted.flaky,
            statistics=counted.statistics,
            process=counted.process,
            trials=trials,
        )

    def _trial(self, index: int, row: Row, category: str | None) -> TrialResult:
        reason = self.clean(row.reason[:_MOST_REASON])
        status, error = EndState.COMPLETED, None
        findings: tuple[Finding, ...] = ()
        if row.undecided:
            status = EndState.FAILED
            error = _CAUSES[row.undecided]
            if reason:
                error += f": {reason}"
        else:
            findings = _findings(tuple(self._verdicts(row, reason, category)))
        return TrialResult(
            index=index,
            status=status,
            error=error,
            duration_seconds=float(row.seconds or 0),
            turns=self._turns(row.conversation),
            findings=findings,
            usage=self._usage(row),
        )

    def _verdicts(self, row: Row, reason: str, category: str | None) -> Iterator[_Verdict]:
        score = _share(row)
        if not row.checks or not _explain(row, score):
            reasons = [reason, *(self._check(check) for check in row.checks if check.passed is not True)]
            text = "\n".join(filter(None, reasons))[:_MOST_REASON]
            yield CRITERION, bool(row.passed), score, text, category
            return
        for check in row.checks:
            text = self.clean(check.reason[:_MOST_REASON]) or (reason if not check.passed else "")
            yield self.clean(check.name), bool(check.passed), _share(check), text, category

    def _check(self, check: Check) -> str:
        result = "undecided" if check.passed is None else "failed"
        reason = f": {check.reason[:_MOST_REASON]}" if check.reason else ""
        return self.clean(f"{check.name} {result}{reason}")

    def _usage(self, row: Row) -> tuple[RoleUsage, ...]:
        if row.cost_usd is None and row.input_tokens is None and row.output_tokens is None:
            return ()
        return _usage(self.model, row.input_tokens or 0, row.output_tokens or 0, row.cost_usd)

    def _turns(self, messages: Sequence[Message]) -> Turns:
        """Return the conversation in turns: what the user says, and all that the agent does then."""
        if not messages:
            return _NO_TURNS
        turns: list[Turn] = []
        user: list[str] = []
        agent: list[Message] = []

        def end() -> None:
            if user or agent:
                calls = tuple(call for message in agent for call in message.tool_calls)
                turns.append(
                    self.redactor.model(
                        Turn(
                            index=len(turns) + 1,
                            user="\n\n".join(user)[:_MOST_MESSAGE],
                            user_source=UserSource.FIXED,
                            agent="\n\n".join(m.text for m in agent if m.text)[:_MOST_MESSAGE],
                            latency_seconds=0,
                            tool_calls=calls or None,
                        )
                    )
                )
            user.clear()
            agent.clear()

        for message in messages:
            if message.role == "user":
                if agent:
                    end()
                user.append(message.text)
            elif message.role == "assistant":
                agent.append(message)
        end()
        return Turns(turns).packed()


def _explain(row: Row, score: float) -> bool:
    """Return whether the checks alone come to the row's result, each weighing the same."""
    if any(check.passed is None for check in row.checks):
        return False
    if all(check.passed for check in row.checks) is not row.passed:
        return False
    return math.isclose(fmean(map(_share, row.checks)), score, abs_tol=1e-9)


def _share(result: Row | Check) -> float:
    """Return the score of a row or a check; a full score of what failed is worth nothing."""
    if result.score is None or (result.score == 1 and not result.passed):
        return float(bool(result.passed))
    return result.score


@lru_cache(_MOST_KINDS)
def _usage(model: str | None, read: int, written: int, cost: float | None) -> tuple[RoleUsage, ...]:
    """Equal usage as one object."""
    usage = RoleUsage(
        role="agent", calls=1, model=model, input_tokens=read, output_tokens=written, cost_usd=cost
    )
    return (usage,)


@lru_cache(_MOST_KINDS)
def _shared(names: tuple[str, ...]) -> tuple[str, ...]:
    """Equal names as one object."""
    return names


@lru_cache(_MOST_KINDS)
def _findings(verdicts: tuple[_Verdict, ...]) -> tuple[Finding, ...]:
    """Equal findings as one object."""
    return tuple(_finding(*verdict) for verdict in verdicts)


@lru_cache(_MOST_KINDS)
def _finding(criterion: str, passed: bool, score: float, reason: str, category: str | None) -> Finding:
    """Equal findings as one object: most rows of a test come to the same."""
    return Finding(
        criterion=criterion,
        kind="strict",
        category=category,
        outcome=Outcome.PASSED if passed else Outcome.FAILED,
        reason=reason or "No reason is given.",
        grade=None if score == passed else Grade(score=score, pass_at=None, dimensions=()),
    )
