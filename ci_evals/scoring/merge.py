"""Legs of one run become one: its suites whole again, and every number made anew from the trials."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import PurePath
from typing import TypeVar

from pydantic import JsonValue

from ci_evals.domain.digest import digest, of_models, of_tests
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results import (
    Confirmation,
    Digests,
    Git,
    Results,
    RunInfo,
    Status,
    SuiteResult,
)
from ci_evals.scoring.gate import Ending
from ci_evals.scoring.pairing import Side
from ci_evals.scoring.scorecard import Scorecard, recounted, total
from ci_evals.scoring.share import Counting
from ci_evals.scoring.usage import summed

_SHOWN = 3
_ALIKE: dict[str, str] = {
    "digest": "text",
    "adapter": "adapter",
    "agent_id": "agent",
    "judge_model": "judge",
    "user_model": "simulated user",
    "embedding_model": "embedding model",
    "min_score": "minScore",
}
"""What a suite that is in two legs must have in common, and its name in a message."""


@dataclass(frozen=True)
class Leg:
    """The results of one of the runs that are merged, and the file that they stand in."""

    file: str
    results: Results


@dataclass(frozen=True)
class Merged:
    """All legs together."""

    card: Scorecard
    info: RunInfo
    ending: Ending
    """Says what is missing, where it is not all."""


@dataclass(frozen=True)
class _Part:
    """What one leg has of a suite."""

    leg: Leg
    suite: SuiteResult


def merge(legs: Sequence[Leg], *, expected: int | None = None) -> Merged:
    """The legs as one run. Suites are in the order of the legs, the tests of each as in its file.

    Args:
        legs: At least one.
        expected: How many there should be.

    Raises:
        UsageError: they do not belong together, or a test is in two of them; with every reason.
    """
    parts: dict[tuple[str, str], list[_Part]] = {}
    for leg in legs:
        for suite in leg.results.suites:
            parts.setdefault((suite.name, PurePath(suite.file).as_posix()), []).append(_Part(leg, suite))
    problems = [*_too_many(legs, expected), *_unlike_runs(legs)]
    problems += [problem for found in parts.values() for problem in _unlike_suites(found)]
    if problems:
        raise UsageError("\n".join(problems))
    counting = Counting(offline=Side.of(legs[0].results).offline)
    suites = [recounted(_joined(found), counting) for found in parts.values()]
    card = total([*_in_own_folders(suites)], summed([leg.results.usage for leg in legs]), counting)
    skipped = all(leg.results.run.status == "skipped" for leg in legs)
    unfinished = [] if skipped else _unfinished(legs)
    ending = Ending(incomplete=(*_missing(legs, expected), *unfinished))
    return Merged(card, _info(legs, card.suites, ending, expected), ending)


def _too_many(legs: Sequence[Leg], expected: int | None) -> Iterator[str]:
    if expected is not None and len(legs) > expected:
        yield (
            f"--legs={expected}, but there are {len(legs)} results: "
            f"{', '.join(leg.file for leg in legs)}. Name the results of one run of the workflow."
        )


def _unlike_runs(legs: Sequence[Leg]) -> Iterator[str]:
    """Why scores of these runs do not stand for one thing."""
    comparable = "Their scores do not mean the same: run all legs with one version of ci-evals."
    provider = "Their scores do not mean the same: run all legs with one --provider."
    runs = [leg.results.run for leg in legs]
    for what, found, remedy in (
        ("repositories", [run.git.repository for run in runs], "Merge only results of one repository."),
        ("commits", [_short(run.git.commit) for run in runs], "Merge only results of one commit."),
        ("providers", [str(run.config.get("provider") or "its own") for run in runs], provider),
        ("prompts of the judge", [_short(run.digests.judge_prompt) for run in runs], comparable),
        ("prompts of the simulated user", [_short(run.digests.user_prompt) for run in runs], comparable),
        ("rules of scoring", [_short(run.digests.scoring) for run in runs], comparable),
    ):
        if told := _told_apart(legs, found):
            yield f"the legs are of different {what}: {told}. {remedy}"


def _told_apart(legs: Sequence[Leg], values: Sequence[str | None]) -> str | None:
    """The values that are known, each with its files; None where there is but one."""
    files: dict[str, list[str]] = {}
    for leg, value in zip(legs, values, strict=True):
        if value is not None:
            files.setdefault(value, []).append(leg.file)
    if len(files) < 2:
        return None
    return "; ".join(f"{value} ({', '.join(found)})" for value, found in files.items())


def _short(value: str | None) -> str | None:
    return value[:12] if value else None


def _unlike_suites(parts: Sequence[_Part]) -> Iterator[str]:
    """Why what the legs have of one suite does not make one."""
    seen: dict[str, _Part] = {}
    twice: dict[tuple[str, str], list[str]] = {}
    for part in parts:
        for test in part.suite.tests:
            before = seen.setdefault(test.name, part)
            if before is not part:
                twice.setdefault((before.leg.file, part.leg.file), []).append(test.name)
    suite = f"{parts[0].suite.name!r} ({parts[0].suite.file})"
    for (first, second), names in twice.items():
        tests = ", ".join(map(repr, names[:_SHOWN]))
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield (
            f"{'a test' if len(names) == 1 else 'tests'} of the suite {suite} came from both {first} and "
            f"{second}: {tests}{more}. A test counts once. For one suite against two agents, do not merge: "
            "give each its own --comment-key."
        )
    for part in parts[1:] if not twice else ():
        unlike = [word for name, word in _ALIKE.items() if _differ(name, parts[0].suite, part.suite)]
        if unlike:
            yield (
                f"the suite {suite} has not the same {', '.join(unlike)} in {parts[0].leg.file} and "
                f"{part.leg.file}: legs that share a suite must play it alike."
            )


def _differ(name: str, one: SuiteResult, other: SuiteResult) -> bool:
    return bool(getattr(one, name) != getattr(other, name))


def _joined(parts: Sequence[_Part]) -> SuiteResult:
    """A suite with the tests that all legs have of it, in the order of their lines, then of the legs."""
    tests = [test for part in parts for test in part.suite.tests]
    return parts[0].suite.model_copy(update={"tests": tuple(sorted(tests, key=lambda test: test.line))})


def _in_own_folders(suites: Iterable[SuiteResult]) -> Iterator[SuiteResult]:
    """The suites, with a number in the name of a folder that another one has."""
    taken: set[str] = set()
    for suite in suites:
        name, slash, below = suite.folder.partition("/")
        names = (name if number == 1 else f"{name}-{number}" for number in count(1))
        own = next(one for one in names if one.casefold() not in taken)
        taken.add(own.casefold())
        yield suite.model_copy(update={"folder": f"{own}{slash}{below}"})


def _missing(legs: Sequence[Leg], expected: int | None) -> Iterator[str]:
    missing = (expected or 0) - len(legs)
    if missing > 0:
        here = "1 of {} legs is here" if len(legs) == 1 else f"{len(legs)} of {{}} legs are here"
        lost, job, it = ("one is", "job", "it") if missing == 1 else (f"{missing} are", "jobs", "them")
        yield (
            f"{here.format(expected)}: {lost} missing. "
            f"Look at the {job} that left no results, and run {it} again"
        )


def _unfinished(legs: Sequence[Leg]) -> Iterator[str]:
    """Which legs did not go through."""
    for leg in legs:
        run = leg.results.run
        if not leg.results.suites:
            yield f"the run of {leg.file} holds no suite"
        if run.status != "completed":
            why = f": {run.stopped_because}" if run.stopped_because else ""
            yield f"the run of {leg.file} was {run.status}{why}"


def _info(
    legs: Sequence[Leg], suites: Sequence[SuiteResult], ending: Ending, expected: int | None
) -> RunInfo:
    runs = [leg.results.run for leg in legs]
    reasons = ending.incomplete or [run.stopped_because for run in runs if run.stopped_because]
    started, finished = min(run.started_at for run in runs), max(run.finished_at for run in runs)
    return RunInfo(
        id=digest(sorted(run.id for run in runs))[:32],
        started_at=started,
        finished_at=finished,
        duration_seconds=(finished - started).total_seconds(),
        status=_status(runs, ending),
        stopped_because="; ".join(dict.fromkeys(reasons)) or None,
        config=_agreed([run.config for run in runs]),
        git=_git([run.git for run in runs]),
        environment=_agreed([run.environment for run in runs]),
        digests=_digests([leg.results for leg in legs], suites),
        confirmation=_confirmation(runs),
        warnings=tuple(
            dict.fromkeys([*(w for run in runs for w in run.warnings), *_warnings(legs, expected)])
        ),
    )


def _status(runs: Sequence[RunInfo], ending: Ending) -> Status:
    """The worst; a leg that is missing, or was skipped where others were not, stopped the whole."""
    found = {run.status for run in runs}
    if "interrupted" in found:
        return "interrupted"
    if found == {"skipped"} and not ending.incomplete:
        return "skipped"
    return "stopped" if ending.incomplete else "completed"


_Value = TypeVar("_Value")
_Known = TypeVar("_Known", bound=Hashable)


def _agreed(parts: Sequence[Mapping[str, _Value]]) -> dict[str, _Value]:
    """What all of them say alike."""
    return {
        key: value
        for key, value in parts[0].items()
        if all(key in part and part[key] == value for part in parts)
    }


def _git(parts: Sequence[Git]) -> Git:
    return Git(
        commit=_one(part.commit for part in parts),
        ref=_one(part.ref for part in parts),
        repository=_one(part.repository for part in parts),
        head_commit=_one(part.head_commit for part in parts),
        pull_request=_one(part.pull_request for part in parts),
    )


def _one(values: Iterable[_Known | None]) -> _Known | None:
    """The one value that is known; None where there are several."""
    known = {value for value in values if value is not None}
    return known.pop() if len(known) == 1 else None


def _digests(legs: Sequence[Results], suites: Sequence[SuiteResult]) -> Digests:
    """What the scores depend on, told as one run of all would tell it, as far as that can be known."""

    def common(name: str) -> str:
        found = sorted({getattr(leg.run.digests, name) for leg in legs})
        return found[0] if len(found) == 1 else digest(found)

    provider = legs[0].run.config.get("provider")
    # They were made before secrets were taken out of names, so that ours may not be the same.
    known = all(_models(provider, leg.suites) == leg.run.digests.models for leg in legs)
    return Digests(
        suites=of_tests(test.digest for suite in suites for test in suite.tests),
        agents=common("agents"),
        models=_models(provider, suites) if known else common("models"),
        judge_prompt=common("judge_prompt"),
        user_prompt=common("user_prompt"),
        loops=common("loops"),
        scoring=common("scoring"),
    )


def _models(provider: JsonValue, suites: Iterable[SuiteResult]) -> str:
    return of_models(
        provider, ((suite.judge_model, suite.user_model, suite.embedding_model) for suite in suites)
    )


def _confirmation(runs: Sequence[RunInfo]) -> Confirmation | None:
    """The further trials, where all legs played as many."""
    found = [run.confirmation for run in runs if run.confirmation]
    if len(found) < len(runs) or len({one.trials for one in found}) > 1:
        return None
    because = tuple(dict.fromkeys(reason for one in found for reason in one.because))
    return Confirmation(trials=found[0].trials, because=because)


def _warnings(legs: Sequence[Leg], expected: int | None) -> Iterator[str]:
    if len(legs) < (expected or 0):
        yield "all numbers, and what is said of single tests, are of the legs that are here"
    if told := _told_apart(legs, [leg.results.tool.version for leg in legs]):
        yield f"the legs are of different versions of ci-evals: {told}"
    more = [run.confirmation.trials if run.confirmation else 0 for run in (leg.results.run for leg in legs)]
    if told := _told_apart(legs, [str(trials) for trials in more]):
        yield f"the legs played different numbers of further trials of each test (--confirm): {told}"
