"""The `--shard` option, and what a shard does not do by itself."""

import plans
import pytest

from ci_evals.cli.run.sharding import for_shard, part_of
from ci_evals.cli.settings.choices import CommentMode
from ci_evals.cli.settings.run_command import RunSettings
from ci_evals.domain.errors import UsageError

PLAN = plans.make_plan({"name": "a"}, {"name": "b"})


def run_settings(**options) -> RunSettings:
    return RunSettings(suites=["s.json"], **options)


def test_shard_option_selects_part_and_invalid_one_is_rejected():
    assert (part_of(run_settings(), PLAN), str(part_of(run_settings(shard="2/2"), PLAN))) == (None, "2/2")
    for shard, message in (
        ("", "`shard=`: '' is not a shard"),
        ("3/2", "`shard=`: '3/2' is not a shard"),
        ("1/3", "`shard=1/3`: the plan has 2 tests; ask for at most 2 parts"),
    ):
        with pytest.raises(UsageError) as refused:
            part_of(run_settings(shard=shard), PLAN)
        assert str(refused.value).startswith(message)


def test_shard_looks_for_no_baseline_and_does_not_comment_unless_set():
    alone = for_shard(run_settings(shard="1/2", check=True))
    assert (alone.baseline, alone.comment, alone.check) == ("none", CommentMode.NEVER, False)
    report = run_settings(shard="1/2", baseline="auto", comment=CommentMode.ALWAYS)
    assert (for_shard(report), for_shard(run_settings())) == (report, run_settings())
