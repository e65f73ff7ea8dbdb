"""Shards of one run: whether they belong together, and which of them are not there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_evals.domain.results.run import Results, RunInfo, Shard

_SHOWN = 5


@dataclass(frozen=True)
class ShardRun:
    """The results of one of the runs that are merged, and the file that they stand in."""

    file: str
    results: Results


def problems(runs: Sequence[ShardRun], expected: int | None) -> Iterator[str]:
    """Yield the reasons why these results are not shards of one run."""
    if expected is not None and len(runs) > expected:
        yield (
            f"`shards={expected}`, but there are {len(runs)} results: "
            f"{', '.join(run.file for run in runs)}. Name the results of one run of the workflow."
        )
    yield from _unlike_runs(runs)
    yield from _unlike_shards(runs, expected)


def missing(runs: Sequence[ShardRun], expected: int | None) -> Iterator[str]:
    """Yield a sentence on the shards that are missing, if any are."""
    count = shard_count(runs, expected) - len(runs)
    if count <= 0:
        return
    of = f"of {shard_count(runs, expected)}"
    named = _lost(runs)
    lost = f"{named} {of}" if named else f"{count} {of} shards"
    yield f"{lost} is missing: rerun its job" if count == 1 else f"{lost} are missing: rerun their jobs"


def shard_count(runs: Sequence[ShardRun], expected: int | None) -> int:
    """The number of shards that there should be, as far as it is known."""
    return max([expected or 0, *(shard.of for shard in shards_of(runs))])


def shards_of(runs: Sequence[ShardRun]) -> list[Shard]:
    """The parts of a plan that these runs have played; empty if they are no parts."""
    return [run.results.run.shard for run in runs if run.results.run.shard]


def differing(runs: Sequence[ShardRun], values: Sequence[str | None]) -> str | None:
    """The values that are known, each with its files; None where there is but one."""
    files: dict[str, list[str]] = {}
    for run, value in zip(runs, values, strict=True):
        if value is not None:
            files.setdefault(value, []).append(run.file)
    if len(files) < 2:
        return None
    return "; ".join(f"{value} ({', '.join(names)})" for value, names in files.items())


def _unlike_runs(runs: Sequence[ShardRun]) -> Iterator[str]:
    """Yield the reasons why scores of these runs do not mean the same."""
    comparable = "Their scores do not mean the same: run all shards with one version of ci-evals."
    audited = f"{comparable[:-1]}, and with the same `audit_user=` and auditModel."
    provider = "Their scores do not mean the same: run all shards with one `provider=`."
    infos = [run.results.run for run in runs]
    for what, values, remedy in (
        ("repositories", [info.git.repository for info in infos], "Merge only results of one repository."),
        ("commits", [_short(info.git.commit) for info in infos], "Merge only results of one commit."),
        ("providers", [info.provider or "its own" for info in infos], provider),
        ("prompts of the judge", [_short(info.digests.judge_prompt) for info in infos], comparable),
        ("prompts of the simulated user", [_short(info.digests.user_prompt) for info in infos], audited),
        ("rules of scoring", [_short(info.digests.scoring) for info in infos], comparable),
        ("origins", [_origin(info) for info in infos], "Merge only runs that were made in the same way."),
    ):
        if differences := differing(runs, values):
            yield f"the shards are of different {what}: {differences}. {remedy}"


def _short(value: str | None) -> str | None:
    return value[:12] if value else None


def _origin(info: RunInfo) -> str:
    return info.origin.how if info.origin else "played"


def _unlike_shards(runs: Sequence[ShardRun], expected: int | None) -> Iterator[str]:
    """Yield the reasons why these are not the parts of one plan, each once."""
    if not (shards := shards_of(runs)):
        return
    if len(shards) < len(runs):
        whole = ", ".join(run.file for run in runs if not run.results.run.shard)
        yield (
            f"some of the results are of shards, and these are not: {whole}. Merge the shards of one run and "
            "nothing else."
        )
        return
    baselines = (
        "They were balanced by different baselines: play all with `baseline=none`, or all with one file."
    )
    for what, values, remedy in (
        ("of different numbers", [f"of {shard.of}" for shard in shards], "Play all shards I/N with one N."),
        (
            "of different plans",
            [_short(shard.plan) for shard in shards],
            "Play all with the same suites, `test=`, `tag=` and `loops=`.",
        ),
        ("split in different ways", [_short(shard.split) for shard in shards], baselines),
    ):
        if differences := differing(runs, values):
            yield f"the shards are {what}: {differences}. {remedy}"
            return
    if expected is not None and len(runs) <= expected != shards[0].of:
        yield f"`shards={expected}`, but these are shards of {shards[0].of}: omit `shards=`."
    for index in sorted({shard.index for shard in shards}):
        files = [run.file for run, shard in zip(runs, shards, strict=True) if shard.index == index]
        if len(files) > 1:
            yield (
                f"shard {index} of {shards[0].of} came from {' and '.join(files)}: name each shard "
                "once; of a rerun shard, its last results."
            )
    yield from _torn(runs)


def _torn(runs: Sequence[ShardRun]) -> Iterator[str]:
    """Results that cannot be what their shard says."""
    seen: dict[int, ShardRun] = {}
    for run in runs:
        shard = run.results.run.shard
        assert shard is not None  # noqa: S101  # all are shards here
        tests = sum(len(suite.tests) for suite in run.results.suites)
        own = set(shard.tests)
        if shard.index > shard.of or len(own) != len(shard.tests) or len(own) != tests:
            yield f"{run.file}: its tests are not those that it names as its shard's; rerun that shard."
        elif twice := own & seen.keys():
            other = seen[min(twice)]
            if other.results.run.shard != shard:
                yield f"{other.file} and {run.file} contain the same tests of the plan; rerun both shards."
        seen |= dict.fromkeys(own, run)
    if len(runs) == shards_of(runs)[0].of and len(seen) != max(seen, default=0):
        yield "the shards together do not contain all tests of the plan; rerun them."


def _lost(runs: Sequence[ShardRun]) -> str | None:
    shards = shards_of(runs)
    if not shards:
        return None
    here = {shard.index for shard in shards}
    lost = [str(index) for index in range(1, shards[0].of + 1) if index not in here]
    if len(lost) == 1:
        return f"shard {lost[0]}"
    if len(lost) > _SHOWN:
        return f"shards {', '.join(lost[:_SHOWN])} and {len(lost) - _SHOWN} more"
    return f"shards {', '.join(lost[:-1])} and {lost[-1]}"
