"""Legs of one run: whether they belong together, and which of them are not there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_evals.domain.results.run import Results, RunInfo, Shard

_SHOWN = 5


@dataclass(frozen=True)
class Leg:
    """The results of one of the runs that are merged, and the file that they stand in."""

    file: str
    results: Results


def problems(legs: Sequence[Leg], expected: int | None) -> Iterator[str]:
    """Why these results are not legs of one run."""
    if expected is not None and len(legs) > expected:
        yield (
            f"--legs={expected}, but there are {len(legs)} results: "
            f"{', '.join(leg.file for leg in legs)}. Name the results of one run of the workflow."
        )
    yield from _unlike_runs(legs)
    yield from _unlike_shards(legs, expected)


def missing(legs: Sequence[Leg], expected: int | None) -> Iterator[str]:
    """Which legs there should be beside these."""
    count = wanted(legs, expected) - len(legs)
    if count <= 0:
        return
    noun = "shard" if shards_of(legs) else "leg"
    here = f"1 of {wanted(legs, expected)} {noun}s is here"
    if len(legs) > 1:
        here = f"{len(legs)} of {wanted(legs, expected)} {noun}s are here"
    lost = _lost(legs) or ("one is" if count == 1 else f"{count} are")
    job, it = ("job", "it") if count == 1 else ("jobs", "them")
    yield f"{here}: {lost} missing. Look at the {job} that left no results, and run {it} again"


def wanted(legs: Sequence[Leg], expected: int | None) -> int:
    """How many legs there should be, as far as that is known."""
    return max([expected or 0, *(shard.of for shard in shards_of(legs))])


def shards_of(legs: Sequence[Leg]) -> list[Shard]:
    """Which parts of a plan the legs have played; nothing where they are no parts."""
    return [leg.results.run.shard for leg in legs if leg.results.run.shard]


def told_apart(legs: Sequence[Leg], values: Sequence[str | None]) -> str | None:
    """The values that are known, each with its files; None where there is but one."""
    files: dict[str, list[str]] = {}
    for leg, value in zip(legs, values, strict=True):
        if value is not None:
            files.setdefault(value, []).append(leg.file)
    if len(files) < 2:
        return None
    return "; ".join(f"{value} ({', '.join(found)})" for value, found in files.items())


def _unlike_runs(legs: Sequence[Leg]) -> Iterator[str]:
    """Why scores of these runs do not stand for one thing."""
    comparable = "Their scores do not mean the same: run all legs with one version of ci-evals."
    audited = f"{comparable[:-1]}, and with the same --audit-user and --audit-model."
    provider = "Their scores do not mean the same: run all legs with one --provider."
    runs = [leg.results.run for leg in legs]
    for what, found, remedy in (
        ("repositories", [run.git.repository for run in runs], "Merge only results of one repository."),
        ("commits", [_short(run.git.commit) for run in runs], "Merge only results of one commit."),
        ("providers", [run.provider or "its own" for run in runs], provider),
        ("prompts of the judge", [_short(run.digests.judge_prompt) for run in runs], comparable),
        ("prompts of the simulated user", [_short(run.digests.user_prompt) for run in runs], audited),
        ("rules of scoring", [_short(run.digests.scoring) for run in runs], comparable),
        ("origins", [_origin(run) for run in runs], "Merge only runs that were made in one way."),
    ):
        if told := told_apart(legs, found):
            yield f"the legs are of different {what}: {told}. {remedy}"


def _short(value: str | None) -> str | None:
    return value[:12] if value else None


def _origin(run: RunInfo) -> str:
    return run.origin.how if run.origin else "played"


def _unlike_shards(legs: Sequence[Leg], expected: int | None) -> Iterator[str]:
    """Why these are not the parts of one plan, each once. Where the plans differ, nothing else is told."""
    if not (shards := shards_of(legs)):
        return
    if len(shards) < len(legs):
        whole = ", ".join(leg.file for leg in legs if not leg.results.run.shard)
        yield (
            f"some of the results are of shards, and these are not: {whole}. Merge the shards of one run and "
            "nothing else."
        )
        return
    baselines = (
        "They were balanced by different baselines: play all with --baseline=none, or all with one file."
    )
    for what, found, remedy in (
        ("of different numbers", [f"of {shard.of}" for shard in shards], "Play all shards I/N with one N."),
        (
            "of different plans",
            [_short(shard.plan) for shard in shards],
            "Play all with the same suites, --test, --tag and --loops.",
        ),
        ("split in different ways", [_short(shard.split) for shard in shards], baselines),
    ):
        if told := told_apart(legs, found):
            yield f"the shards are {what}: {told}. {remedy}"
            return
    if expected is not None and len(legs) <= expected != shards[0].of:
        yield f"--legs={expected}, but these are shards of {shards[0].of}: leave --legs out."
    for index in sorted({shard.index for shard in shards}):
        files = [leg.file for leg, shard in zip(legs, shards, strict=True) if shard.index == index]
        if len(files) > 1:
            yield (
                f"shard {index} of {shards[0].of} came from {' and '.join(files)}: name each shard once, "
                "where one was run again its last results."
            )
    yield from _torn(legs)


def _torn(legs: Sequence[Leg]) -> Iterator[str]:
    """Results that cannot be what their shard says."""
    seen: dict[int, Leg] = {}
    for leg in legs:
        shard = leg.results.run.shard
        assert shard is not None  # noqa: S101  # all are shards here
        tests = sum(len(suite.tests) for suite in leg.results.suites)
        own = set(shard.tests)
        if shard.index > shard.of or len(own) != len(shard.tests) or len(own) != tests:
            yield f"{leg.file}: its tests are not those that it names as its shard's; play that shard again."
        elif twice := own & seen.keys():
            other = seen[min(twice)]
            if other.results.run.shard != shard:
                yield f"{other.file} and {leg.file} hold the same tests of the plan; play both shards again."
        seen |= dict.fromkeys(own, leg)
    if len(legs) == shards_of(legs)[0].of and len(seen) != max(seen, default=0):
        yield "the shards together do not hold all tests of the plan; play them again."


def _lost(legs: Sequence[Leg]) -> str | None:
    """The shards that are missing, by their numbers."""
    shards = shards_of(legs)
    if not shards:
        return None
    here = {shard.index for shard in shards}
    lost = [str(index) for index in range(1, shards[0].of + 1) if index not in here]
    if len(lost) == 1:
        return f"shard {lost[0]} is"
    if len(lost) > _SHOWN:
        return f"shards {', '.join(lost[:_SHOWN])} and {len(lost) - _SHOWN} more are"
    return f"shards {', '.join(lost[:-1])} and {lost[-1]} are"
