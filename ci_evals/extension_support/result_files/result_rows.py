"""Results of other tools: rows, each of them one trial of a test."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from types import MappingProxyType
from typing import Literal, NamedTuple

from ci_evals.domain.definition import SuiteDefinition
from ci_evals.domain.results.suite import OfficialScore
from ci_evals.domain.transcript import ToolCall


class Undecided(StrEnum):
    """The cause of a row that neither passed nor failed."""

    INFRASTRUCTURE = "infrastructure"
    """Something other than the agent and its test broke: a container, a network, a harness."""
    ERROR = "error"
    """The trial broke off with an error, so that there is nothing to score."""
    SKIPPED = "skipped"
    """It was not run: counted neither for nor against, and no error."""
    EMPTY = "empty"
    """The tool wrote a row without a result."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation. A tool's result belongs into its `ToolCall`."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One score among several of a row: a scorer, a metric, an assertion."""

    name: str
    passed: bool | None
    """None if it could not be decided; the `reason` then says why."""
    score: float | None = None
    """0 to 1; None if there is only passed or failed."""
    reason: str = ""


class Row(NamedTuple):
    """One trial of a test, as a tool reports it.

    Exactly one of `passed` and `undecided` is set. The order of the rows of a test is that of its trials.
    """

    test: str
    """The id or name of the test, the same in every file and every run."""
    trial: str | int | None = None
    """The tool's own number of the trial. Two rows of a test with one number in one file are refused."""
    cluster: str | None = None
    """Tests of one cluster depend on each other (a template): intervals count clusters."""
    definition: str | None = None
    """A digest of what is asked (a hash of the document, the case): tests compare only if it is equal."""
    conversation: tuple[Message, ...] = ()
    passed: bool | None = None
    score: float | None = None
    """0 to 1; None for 1 if passed, else 0."""
    undecided: Undecided | None = None
    reason: str = ""
    """Why it failed or is undecided: the tool's message. Escapes and length are taken care of later."""
    groups: tuple[str, ...] = ()
    """What the test belongs to: subtask, site, level, file, class. They become categories."""
    checks: tuple[Check, ...] = ()
    """The scores behind `score`, if there are several; for reports."""
    cost_usd: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float | None = None
    critical: bool = False
    """True if the run fails with the test, whatever its score."""
    min_score: float | None = None
    """The test's own floor, in points."""

    @property
    def result(self) -> tuple[object, ...]:
        """The outcome, which most rows share with another one."""
        return _RESULT(self)

    @property
    def amounts(self) -> tuple[float | None, ...]:
        """Cost, input tokens, output tokens and seconds."""
        return _AMOUNTS(self)


_RESULT = attrgetter("passed", "score", "undecided", "reason", "groups", "checks", "critical", "min_score")
_AMOUNTS = attrgetter("cost_usd", "input_tokens", "output_tokens", "seconds")


def mean_of(rows: Iterable[Row]) -> float | None:
    """Return the mean over the tests of the mean of their decided rows; None if no row is decided."""
    scores: dict[str, list[float]] = {}
    for row in rows:
        if row.passed is not None:
            score = float(row.passed) if row.score is None else row.score
            scores.setdefault(row.test, []).append(score)
    means = [math.fsum(of) / len(of) for of in scores.values()]
    return math.fsum(means) / len(means) if means else None


def differ(mean: float, stated: float) -> bool:
    """Return whether a mean is not the stated one: tools round, and add in another order."""
    return not math.isclose(mean, stated, abs_tol=0.005)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedTotals:
    """The totals that a file without rows states of the rows in other files."""

    place: str
    """Where it states them: `n-samples.gsm8k.effective`."""
    samples: int
    """How many tests the other files have, each counted once per file."""
    records: int | None = None
    """How many records the other files have, whatever rows they make; None if it does not say."""
    passed: int | None = None
    """How many of the samples passed; None if it does not say."""
    mean: float | None = None
    """The mean of their scores; None if its score is no such mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultSet:
    """The rows of one suite by one arm in one file.

    Sets of the same suite and arm in several files are put together: their rows of one test are its trials.
    """

    suite: str
    """Task, data set or test file; it names the suite in every report, the same in every run."""
    arm: str | None = None
    """Model, prompt or provider: what a user would compare. None if the file does not say."""
    rows: Sequence[Row] = ()
    fingerprint: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """What must be equal for two runs to be comparable, by name in words: `data set checksum`."""
    official: OfficialScore | None = None
    """As the file states it. With several files of one suite the reader's own `official` counts."""
    warnings: tuple[str, ...] = ()
    """What limits trust in these rows: `json_dump.json lists tasks that crashed as failures`."""
    contradictions: tuple[str, ...] = ()
    """What the file says of these rows that they contradict, with its place: such rows give no verdict."""
    run_ids: tuple[str, ...] = ()
    """The ids of the run that these rows are of: rows of one run in two files are given twice."""
    definitions: tuple[SuiteDefinition, ...] = ()
    """The requirements of all suites of the run, if the file has them."""
    records: int = 0
    """The number of records that the rows were made of, for a format whose totals count them."""
    stated: StatedTotals | None = None
    metric: str | None = None
    """The name of the rows' score, if the file does not say whether a higher one is better."""
    higher_is_better: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))
    """Of a file without rows: which metrics of the rows in other files are better if they are higher."""
    min_score: float | None = None
    """The suite's own floor, in points."""
