"""`--shard`: which part of its plan a run plays, and what it leaves to `merge`."""

from collections.abc import Callable
from dataclasses import replace

from ci_evals.cli.settings.choices import CommentMode
from ci_evals.cli.settings.run_command import RunSettings
from ci_evals.domain import numbers
from ci_evals.domain.plan import Plan
from ci_evals.job import NO_BASELINE, Job
from ci_evals.planning import sharding
from ci_evals.planning.sharding import ShardNumber


def for_shard(settings: RunSettings) -> RunSettings:
    """Return the settings with a shard's defaults: no baseline, no comment, and no check run.

    Shards that find different baselines would split the plan in different ways. Comments of theirs would
    write over each other.
    """
    if settings.shard is None:
        return settings
    comment = CommentMode.NEVER if settings.comment is CommentMode.AUTO else settings.comment
    return replace(settings, baseline=settings.baseline or "none", comment=comment, check=False)


def part_of(settings: RunSettings, plan: Plan) -> ShardNumber | None:
    """Return the part of the plan to play; None for the whole.

    Raises:
        UsageError: it is none, or has no test.
    """
    if settings.shard is None:
        return None
    part = sharding.read(settings.shard)
    sharding.check(plan, part)
    return part


def only_part(job: Job, part: ShardNumber | None, say: Callable[[str], None]) -> Job:
    """Return the job with that part of its plan. Its baseline balances the parts; `merge` compares."""
    if part is None:
        return job
    sharded = sharding.take(job.plan, part, job.redactor, job.baseline.results)
    whole = numbers.count(sum(len(suite.tests) for suite in job.plan.arm(0).suites), "test")
    say(f"shard {part.index} of {part.of}: {len(sharded.shard.tests)} of {whole}")
    facts = replace(job.facts, shard=sharded.shard)
    return replace(job, plan=sharded.plan, facts=facts, baseline=NO_BASELINE)
