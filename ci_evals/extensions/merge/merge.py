"""Merge shards into one run: its suites whole again, every number computed again from the trials."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import PurePath
from typing import TypeVar

from pydantic import JsonValue

from ci_evals.domain.choices import CheckMode
from ci_evals.domain.definition import SuiteDefinition
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.arms import Arm
from ci_evals.domain.results.judge import JudgeCheck, worst_check
from ci_evals.domain.results.run import Digests, Git, Origin, Results, Resumed, RunInfo, Status
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.run_ending import RunEnding
from ci_evals.extensions.merge import shards as of_one_run
from ci_evals.extensions.merge.shards import ShardRun, differing
from ci_evals.scoring import null_score
from ci_evals.scoring.coverage import wanted_in
from ci_evals.scoring.scorecard import Scorecard, recounted, total
from ci_evals.scoring.scores import ScoreRule, deciding
from ci_evals.scoring.usage import summed
from ci_evals.support.digest import digest, of_loops, of_models, of_tests
from ci_evals.support.redaction import MASK

_SHOWN = 3
_SAME_IN_ALL: Mapping[str, Callable[[SuiteResult], object]] = {
    "text": lambda suite: suite.digest,
    "adapter": lambda suite: suite.adapter,
    "agent": lambda suite: suite.agent_id,
    "judge": lambda suite: suite.judge_model,
    "panel of judges": lambda suite: suite.judge_panel,
    "number of votes": lambda suite: suite.judge_votes,
    "simulated user": lambda suite: suite.user_model,
    "embedding model": lambda suite: suite.embedding_model,
    "minScore": lambda suite: suite.min_score,
}
"""Facts that must agree if a suite is in two shards, by their names in a message."""


@dataclass(frozen=True)
class Merged:
    """All shards together."""

    card: Scorecard
    info: RunInfo
    ending: RunEnding
    """Says what is missing, where it is not all."""


@dataclass(frozen=True)
class _SuitePart:
    """The part of a suite that one shard has played."""

    run: ShardRun
    suite: SuiteResult
    places: tuple[int, ...]
    """Positions of its tests: in the plan if the run was sharded, else the lines of the file."""


def merge(runs: Sequence[ShardRun], *, expected: int | None = None) -> Merged:
    """Merge shards into one run.

    Shards become the whole that they are parts of, in the plan's order. Else suites are in the order of the
    shards, and the tests of each as in its file.

    Args:
        runs: At least one.
        expected: How many there should be; shards tell it themselves.

    Raises:
        UsageError: they do not belong together, or a test is in two of them; with every reason.
    """
    problems = [*of_one_run.problems(runs, expected)]
    suites_of: dict[tuple[str, str], list[_SuitePart]] = {}
    for part in sorted((part for run in runs for part in _parts(run)), key=_first_place):
        suites_of.setdefault((part.suite.name, PurePath(part.suite.file).as_posix()), []).append(part)
    if not (problems and of_one_run.shards_of(runs)):
        problems += [problem for parts in suites_of.values() for problem in _unlike_suites(parts)]
    if problems:
        raise UsageError("\n".join(problems))
    rule = ScoreRule(offline=runs[0].results.run.offline)
    suites = [recounted(_joined(parts), rule) for parts in suites_of.values()]
    usage = summed([run.results.usage for run in runs])
    wanted = wanted_in(*(run.results.coverage for run in runs))
    card = total([*_in_own_folders(suites)], usage, rule, wanted)
    arms, without = _arms(runs, card)
    card = replace(card, arms=arms)
    skipped = all(run.results.run.status == "skipped" for run in runs)
    unfinished = [] if skipped else _unfinished(runs)
    ending = RunEnding(
        judge_checks=_judge_checks(runs),
        judge_only_warned=all(run.results.run.config.get("judgeCheck") == CheckMode.WARN for run in runs),
        incomplete=(*of_one_run.missing(runs, expected), *unfinished, *without),
    )
    return Merged(card, _info(runs, card.suites, ending, expected), ending)


def _arms(runs: Sequence[ShardRun], head: Scorecard) -> tuple[tuple[Arm, ...], tuple[str, ...]]:
    """The agents that all shards played, with their merged numbers, and what is missing of others."""
    names = dict.fromkeys(arm.name for run in runs for arm in run.results.arms if not arm.gated)
    arms: list[Arm] = []
    missing: list[str] = []
    for name in names:
        sides = [(run, run.results.of_arm(name)) for run in runs]
        without = [run.file for run, side in sides if side is None and run.results.run.status != "skipped"]
        if without:
            missing.append(f"the agent {name!r} was not played in {', '.join(without[:_SHOWN])}")
        else:
            of_arm = [ShardRun(run.file, side) for run, side in sides if side]
            arms.append(merge(of_arm).card.as_arm(name))
    gated = [arm for run in runs for arm in run.results.arms if arm.gated]
    if not arms or not gated:
        return (), tuple(missing)
    own = replace(head, usage=summed([arm.usage for arm in gated]))
    arms.append(own.as_arm(gated[0].name, gated=True))
    order = [arm.name for arm in next(run.results.arms for run in runs if run.results.arms)]
    return tuple(sorted(arms, key=lambda arm: order.index(arm.name))), tuple(missing)


def _judge_checks(runs: Iterable[ShardRun]) -> tuple[JudgeCheck, ...]:
    """The worst check of each model that judged, at each address."""
    checks: dict[tuple[str | None, str | None, str], list[JudgeCheck]] = {}
    for check in (check for run in runs for check in run.results.judge_checks):
        checks.setdefault((check.provider, check.address_digest, check.model), []).append(check)
    return tuple(found for same in checks.values() if (found := worst_check(same)))


def _parts(run: ShardRun) -> Iterator[_SuitePart]:
    shard = run.results.run.shard
    places = iter(shard.tests if shard else ())
    for suite in run.results.suites:
        # A shard that names fewer places than it has tests is refused.
        own = [next(places, 0) if shard else test.line for test in suite.tests]
        yield _SuitePart(run, suite, tuple(own))


def _first_place(part: _SuitePart) -> int:
    """The position in the plan at which the suite begins; without one the order of the runs stays."""
    return min(part.places, default=0) if part.run.results.run.shard else 0


def _unlike_suites(parts: Sequence[_SuitePart]) -> Iterator[str]:
    """Yield the reasons why these parts do not make one suite."""
    seen: dict[str, ShardRun] = {}
    twice: dict[tuple[str, str], list[str]] = {}
    for part in parts:
        for test in part.suite.tests:
            before = seen.get(test.name)
            seen.setdefault(test.name, part.run)
            if before and not _may_share_a_name(test, before, part.run):
                twice.setdefault((before.file, part.run.file), []).append(test.name)
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
            "once. For one suite against two agents, do not merge: give each its own `comment_key=`."
        )
    whole = parts[0].suite
    for part in parts[1:] if not twice else ():
        unlike = [name for name, fact in _SAME_IN_ALL.items() if fact(whole) != fact(part.suite)]
        if unlike:
            yield (
                f"the suite {suite} does not have the same {', '.join(unlike)} in {parts[0].run.file} and "
                f"{part.run.file}: shards that share a suite must play it the same way."
            )


def _may_share_a_name(test: TestResult, run: ShardRun, other: ShardRun) -> bool:
    """Return whether these are two tests: a secret hides their names, and no two shards play the same."""
    apart = run is other or (run.results.run.shard and other.results.run.shard)
    return MASK in test.name and bool(apart)


def _joined(parts: Sequence[_SuitePart]) -> SuiteResult:
    """A suite with the tests that all shards have of it, in the order of their places, then of the shards."""
    placed = [pair for part in parts for pair in zip(part.places, part.suite.tests, strict=True)]
    tests = tuple(test for _, test in sorted(placed, key=lambda pair: pair[0]))
    return replace(parts[0].suite, tests=tests)


def _in_own_folders(suites: Iterable[SuiteResult]) -> Iterator[SuiteResult]:
    """The suites, with a number in the name of a folder that another one has."""
    taken: set[str] = set()
    for suite in suites:
        name, slash, below = suite.folder.partition("/")
        names = (name if number == 1 else f"{name}-{number}" for number in count(1))
        own = next(name for name in names if name.casefold() not in taken)
        taken.add(own.casefold())
        yield replace(suite, folder=f"{own}{slash}{below}")


def _unfinished(runs: Sequence[ShardRun]) -> Iterator[str]:
    for run in runs:
        info = run.results.run
        if not run.results.suites:
            yield f"the run of {run.file} holds no suite"
        if info.status == "unfinished":
            yield f"the run of {run.file} has not finished"
        elif info.status != "completed":
            why = f": {info.stopped_because}" if info.stopped_because else ""
            yield f"the run of {run.file} was {info.status}{why}"


def _info(
    runs: Sequence[ShardRun], suites: Sequence[SuiteResult], ending: RunEnding, expected: int | None
) -> RunInfo:
    infos = [run.results.run for run in runs]
    reasons = ending.incomplete or [info.stopped_because for info in infos if info.stopped_because]
    started, finished = min(info.started_at for info in infos), max(info.finished_at for info in infos)
    return RunInfo(
        id=_id(info.id for info in infos),
        started_at=started,
        finished_at=finished,
        duration_seconds=(finished - started).total_seconds(),
        status=_status(infos, ending),
        stopped_because="; ".join(dict.fromkeys(reasons)) or None,
        config=_agreed([info.config for info in infos]),
        git=_git([info.git for info in infos]),
        environment=_agreed([info.environment for info in infos]),
        digests=_digests([run.results for run in runs], suites),
        origin=_origin(infos),
        resumed=_resumed(infos),
        null_score=null_score.mean(test.null_score for suite in suites for test in deciding(suite.tests)),
        definitions=_definitions(infos),
        warnings=tuple(
            dict.fromkeys([*(w for info in infos for w in info.warnings), *_warnings(runs, suites, expected)])
        ),
    )


def _status(infos: Sequence[RunInfo], ending: RunEnding) -> Status:
    """The worst; a shard that is missing, or was skipped where others were not, stopped the whole."""
    statuses = {info.status for info in infos}
    if "interrupted" in statuses:
        return "interrupted"
    if statuses == {"skipped"} and not ending.incomplete:
        return "skipped"
    return "stopped" if ending.incomplete else "completed"


_Value = TypeVar("_Value")
_Known = TypeVar("_Known", bound=Hashable)


def _agreed(parts: Sequence[Mapping[str, _Value]]) -> dict[str, _Value]:
    return {
        key: value
        for key, value in parts[0].items()
        if all(key in part and part[key] == value for part in parts)
    }


def _git(parts: Sequence[Git]) -> Git:
    return Git(
        commit=_only(part.commit for part in parts),
        ref=_only(part.ref for part in parts),
        repository=_only(part.repository for part in parts),
        head_commit=_only(part.head_commit for part in parts),
        pull_request=_only(part.pull_request for part in parts),
        uncommitted_changes=any(part.uncommitted_changes for part in parts),
    )


def _only(values: Iterable[_Known | None]) -> _Known | None:
    """The one value that is known; None where there are several."""
    known = {value for value in values if value is not None}
    return known.pop() if len(known) == 1 else None


def _digests(runs: Sequence[Results], suites: Sequence[SuiteResult]) -> Digests:
    """The digests that one run of all shards would have, as far as they can be known."""

    def common(read: Callable[[Digests], str]) -> str:
        digests = sorted({read(run.run.digests) for run in runs})
        return digests[0] if len(digests) == 1 else digest(digests)

    provider = runs[0].run.provider
    # They were made before secrets were taken out of names, so that ours may not be the same.
    known = all(_models(provider, run.suites) == run.run.digests.models for run in runs)
    counted = all(_loops(run.suites) == run.run.digests.loops for run in runs)
    return Digests(
        suites=of_tests(test.digest for suite in suites for test in suite.tests),
        agents=common(lambda digests: digests.agents),
        models=_models(provider, suites) if known else common(lambda digests: digests.models),
        judge_prompt=common(lambda digests: digests.judge_prompt),
        user_prompt=common(lambda digests: digests.user_prompt),
        loops=_loops(suites) if counted else common(lambda digests: digests.loops),
        scoring=common(lambda digests: digests.scoring),
    )


def _loops(suites: Iterable[SuiteResult]) -> str:
    return of_loops(len(test.trials) + test.not_run for suite in suites for test in suite.tests)


def _models(provider: JsonValue, suites: Iterable[SuiteResult]) -> str:
    return of_models(provider, (suite.models.identity for suite in suites))


def _origin(infos: Sequence[RunInfo]) -> Origin | None:
    """The run behind all shards; of several what they would be called if they were merged."""
    origins = [info.origin for info in infos if info.origin]
    if not origins:
        return None
    return Origin(
        how=origins[0].how,
        run=_only(origin.run for origin in origins) or _id(origin.run for origin in origins),
        started_at=min(origin.started_at for origin in origins),
    )


def _resumed(infos: Sequence[RunInfo]) -> Resumed | None:
    parts = [info.resumed for info in infos if info.resumed]
    if not parts:
        return None
    return Resumed(
        trials=sum(part.trials for part in parts),
        written_at=max((part.written_at for part in parts if part.written_at), default=None),
        attempt=_only(part.attempt for part in parts),
        commit=_only(part.commit for part in parts),
    )


def _definitions(infos: Sequence[RunInfo]) -> tuple[SuiteDefinition, ...] | None:
    """Join the requirements of the suites; None if a run lacks them, or two contradict each other."""
    merged: dict[tuple[str, str], tuple[SuiteDefinition, ...]] = {}
    for info in infos:
        if info.definitions is None:
            return None
        own: dict[tuple[str, str], tuple[SuiteDefinition, ...]] = {}
        for suite in info.definitions:
            key = (suite.name, PurePath(suite.file).as_posix())
            own[key] = (*own.get(key, ()), suite)
        if any(merged.get(key, suites) != suites for key, suites in own.items()):
            return None
        merged |= own
    return tuple(suite for suites in merged.values() for suite in suites)


def _id(ids: Iterable[str]) -> str:
    """One id for several runs, whatever their order."""
    return digest(sorted(ids))[:32]


def _warnings(runs: Sequence[ShardRun], suites: Sequence[SuiteResult], expected: int | None) -> Iterator[str]:
    if len(runs) < of_one_run.shard_count(runs, expected):
        yield "All numbers cover only the shards that are here."
        here = {suite.file for suite in suites}
        whole = dict.fromkeys(file for shard in of_one_run.shards_of(runs) for file in shard.suites)
        if nothing := [file for file in whole if file not in here]:
            yield f"No results of {', '.join(nothing)} are here."
    if pooled := [run.file for run in runs if run.results.run.pooled]:
        yield (
            f"trials of earlier attempts are in {', '.join(pooled[:_SHOWN])}: merged results look for a drop "
            "as if there were only one attempt"
        )
    if values := differing(runs, [run.results.tool.version for run in runs]):
        yield f"the shards are of different versions of ci-evals: {values}"
