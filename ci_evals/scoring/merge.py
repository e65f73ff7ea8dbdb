"""Legs of one run become one: its suites whole again, and every number made anew from the trials."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import PurePath
from typing import TypeVar

from pydantic import JsonValue

from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.judge import CheckMode, JudgeCheck
from ci_evals.domain.results.run import Confirmation, Digests, Git, Origin, Results, Resumed, RunInfo, Status
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.scoring import shards as of_one_run
from ci_evals.scoring.coverage import wanted_of
from ci_evals.scoring.gate.invalid_run import worst
from ci_evals.scoring.gate.policy import RunEnding
from ci_evals.scoring.scorecard import Scorecard, recounted, total
from ci_evals.scoring.scores import Counting
from ci_evals.scoring.shards import Leg, told_apart
from ci_evals.scoring.usage import summed
from ci_evals.support.digest import digest, of_loops, of_models, of_tests
from ci_evals.support.redaction import MASK

_SHOWN = 3
_ALIKE: dict[str, str] = {
    "digest": "text",
    "adapter": "adapter",
    "agent_id": "agent",
    "judge_model": "judge",
    "judge_panel": "panel of judges",
    "judge_votes": "number of votes",
    "user_model": "simulated user",
    "embedding_model": "embedding model",
    "min_score": "minScore",
}
"""What a suite that is in two legs must have in common, and its name in a message."""


@dataclass(frozen=True)
class Merged:
    """All legs together."""

    card: Scorecard
    info: RunInfo
    ending: RunEnding
    """Says what is missing, where it is not all."""


@dataclass(frozen=True)
class _SuitePart:
    """What one leg has of a suite."""

    leg: Leg
    suite: SuiteResult
    places: tuple[int, ...]
    """Of its tests: in the plan if the leg is a shard, else the lines of the file."""


def merge(legs: Sequence[Leg], *, expected: int | None = None) -> Merged:
    """The legs as one run.

    Shards become the whole that they are parts of, in the plan's order. Else suites are in the order of the
    legs, and the tests of each as in its file.

    Args:
        legs: At least one.
        expected: How many there should be; shards tell it themselves.

    Raises:
        UsageError: they do not belong together, or a test is in two of them; with every reason.
    """
    problems = [*of_one_run.problems(legs, expected)]
    suites_of: dict[tuple[str, str], list[_SuitePart]] = {}
    for part in sorted((part for leg in legs for part in _parts(leg)), key=_first_place):
        suites_of.setdefault((part.suite.name, PurePath(part.suite.file).as_posix()), []).append(part)
    if not (problems and of_one_run.shards_of(legs)):
        problems += [problem for found in suites_of.values() for problem in _unlike_suites(found)]
    if problems:
        raise UsageError("\n".join(problems))
    counting = Counting(offline=legs[0].results.run.offline)
    suites = [recounted(_joined(found), counting) for found in suites_of.values()]
    usage, parts = summed([leg.results.usage for leg in legs]), wanted_of(leg.results for leg in legs)
    card = total([*_in_own_folders(suites)], usage, counting, parts)
    skipped = all(leg.results.run.status == "skipped" for leg in legs)
    unfinished = [] if skipped else _unfinished(legs)
    ending = RunEnding(
        judge_checks=_judge_checks(legs),
        judge_only_warned=all(leg.results.run.config.get("judgeCheck") == CheckMode.WARN for leg in legs),
        incomplete=(*of_one_run.missing(legs, expected), *unfinished),
    )
    return Merged(card, _info(legs, card.suites, ending, expected), ending)


def _judge_checks(legs: Iterable[Leg]) -> tuple[JudgeCheck, ...]:
    """The worst check of each model that judged."""
    checks: dict[tuple[str | None, str], list[JudgeCheck]] = {}
    for check in (check for leg in legs for check in leg.results.judge_checks):
        checks.setdefault((check.provider, check.model), []).append(check)
    return tuple(one for found in checks.values() if (one := worst(found)))


def _parts(leg: Leg) -> Iterator[_SuitePart]:
    shard = leg.results.run.shard
    places = iter(shard.tests if shard else ())
    for suite in leg.results.suites:
        # A shard that names fewer places than it has tests is refused.
        own = [next(places, 0) if shard else test.line for test in suite.tests]
        yield _SuitePart(leg, suite, tuple(own))


def _first_place(part: _SuitePart) -> int:
    """Where in the plan the suite begins, or any: legs that are no shards are in the order given."""
    return min(part.places, default=0) if part.leg.results.run.shard else 0


def _unlike_suites(parts: Sequence[_SuitePart]) -> Iterator[str]:
    """Why what the legs have of one suite does not make one."""
    seen: dict[str, Leg] = {}
    twice: dict[tuple[str, str], list[str]] = {}
    for part in parts:
        for test in part.suite.tests:
            before = seen.get(test.name)
            seen.setdefault(test.name, part.leg)
            if before and not _may_share_a_name(test, before, part.leg):
                twice.setdefault((before.file, part.leg.file), []).append(test.name)
    suite = f"{parts[0].suite.name!r} ({parts[0].suite.file})"
    for (first, second), names in twice.items():
        tests = ", ".join(map(repr, names[:_SHOWN]))
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        noun = "a test" if len(names) == 1 else "tests"
        if first == second:
            yield f"{first} holds {noun} of the suite {suite} twice: {tests}{more}. A test counts once."
            continue
        yield (
            f"{noun} of the suite {suite} came from both {first} and {second}: {tests}{more}. A test counts "
            "once. For one suite against two agents, do not merge: give each its own --comment-key."
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


def _may_share_a_name(test: TestResult, leg: Leg, other: Leg) -> bool:
    """Whether these are two tests: a secret told their names apart, and no leg plays what another plays."""
    apart = leg is other or (leg.results.run.shard and other.results.run.shard)
    return MASK in test.name and bool(apart)


def _joined(parts: Sequence[_SuitePart]) -> SuiteResult:
    """A suite with the tests that all legs have of it, in the order of their places, then of the legs."""
    placed = [pair for part in parts for pair in zip(part.places, part.suite.tests, strict=True)]
    tests = tuple(test for _, test in sorted(placed, key=lambda pair: pair[0]))
    return parts[0].suite.model_copy(update={"tests": tests})


def _in_own_folders(suites: Iterable[SuiteResult]) -> Iterator[SuiteResult]:
    """The suites, with a number in the name of a folder that another one has."""
    taken: set[str] = set()
    for suite in suites:
        name, slash, below = suite.folder.partition("/")
        names = (name if number == 1 else f"{name}-{number}" for number in count(1))
        own = next(one for one in names if one.casefold() not in taken)
        taken.add(own.casefold())
        yield suite.model_copy(update={"folder": f"{own}{slash}{below}"})


def _unfinished(legs: Sequence[Leg]) -> Iterator[str]:
    """Which legs did not go through."""
    for leg in legs:
        run = leg.results.run
        if not leg.results.suites:
            yield f"the run of {leg.file} holds no suite"
        if run.status == "unfinished":
            yield f"the run of {leg.file} has not finished"
        elif run.status != "completed":
            why = f": {run.stopped_because}" if run.stopped_because else ""
            yield f"the run of {leg.file} was {run.status}{why}"


def _info(
    legs: Sequence[Leg], suites: Sequence[SuiteResult], ending: RunEnding, expected: int | None
) -> RunInfo:
    runs = [leg.results.run for leg in legs]
    reasons = ending.incomplete or [run.stopped_because for run in runs if run.stopped_because]
    started, finished = min(run.started_at for run in runs), max(run.finished_at for run in runs)
    return RunInfo(
        id=_id(run.id for run in runs),
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
        origin=_origin(runs),
        resumed=_resumed(runs),
        warnings=tuple(
            dict.fromkeys([*(w for run in runs for w in run.warnings), *_warnings(legs, suites, expected)])
        ),
    )


def _status(runs: Sequence[RunInfo], ending: RunEnding) -> Status:
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

    provider = legs[0].run.provider
    # They were made before secrets were taken out of names, so that ours may not be the same.
    known = all(_models(provider, leg.suites) == leg.run.digests.models for leg in legs)
    counted = all(_loops(leg.suites) == leg.run.digests.loops for leg in legs)
    return Digests(
        suites=of_tests(test.digest for suite in suites for test in suite.tests),
        agents=common("agents"),
        models=_models(provider, suites) if known else common("models"),
        judge_prompt=common("judge_prompt"),
        user_prompt=common("user_prompt"),
        loops=_loops(suites) if counted else common("loops"),
        scoring=common("scoring"),
    )


def _loops(suites: Iterable[SuiteResult]) -> str:
    return of_loops(len(test.trials) + test.not_run for suite in suites for test in suite.tests)


def _models(provider: JsonValue, suites: Iterable[SuiteResult]) -> str:
    return of_models(provider, (suite.models.identity for suite in suites))


def _confirmation(runs: Sequence[RunInfo]) -> Confirmation | None:
    """The further trials, where all legs played as many."""
    found = [run.confirmation for run in runs if run.confirmation]
    if len(found) < len(runs) or len({one.trials for one in found}) > 1:
        return None
    because = tuple(dict.fromkeys(reason for one in found for reason in one.because))
    return Confirmation(trials=found[0].trials, because=because)


def _origin(runs: Sequence[RunInfo]) -> Origin | None:
    """The run behind all legs; of several what they would be called if they were merged."""
    found = [run.origin for run in runs if run.origin]
    if not found:
        return None
    return Origin(
        how=found[0].how,
        run=_one(one.run for one in found) or _id(one.run for one in found),
        started_at=min(o.started_at for o in found),
    )


def _resumed(runs: Sequence[RunInfo]) -> Resumed | None:
    """The trials of all legs that came from their journals."""
    parts = [run.resumed for run in runs if run.resumed]
    if not parts:
        return None
    return Resumed(
        trials=sum(part.trials for part in parts),
        written_at=max((part.written_at for part in parts if part.written_at), default=None),
        attempt=_one(part.attempt for part in parts),
        commit=_one(part.commit for part in parts),
    )


def _id(runs: Iterable[str]) -> str:
    """One id for several runs, whatever their order."""
    return digest(sorted(runs))[:32]


def _warnings(legs: Sequence[Leg], suites: Sequence[SuiteResult], expected: int | None) -> Iterator[str]:
    if len(legs) < of_one_run.wanted(legs, expected):
        yield "all numbers, and what is said of single tests, are of the legs that are here"
        here = {suite.file for suite in suites}
        whole = dict.fromkeys(file for shard in of_one_run.shards_of(legs) for file in shard.suites)
        if nothing := [file for file in whole if file not in here]:
            yield f"of {', '.join(nothing)} nothing is here"
    if told := told_apart(legs, [leg.results.tool.version for leg in legs]):
        yield f"the legs are of different versions of ci-evals: {told}"
    more = [run.confirmation.trials if run.confirmation else 0 for run in (leg.results.run for leg in legs)]
    if told := told_apart(legs, [str(trials) for trials in more]):
        yield f"the legs played different numbers of further trials of each test (--confirm): {told}"
