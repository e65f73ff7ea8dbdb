"""`--shard`: what is refused before anything is played, and what a shard does not do by itself."""

import plans
import pytest

from ci_evals.cli.run.sharding import for_shard, part_of
from ci_evals.cli.settings.choices import CommentMode
from ci_evals.cli.settings.run_command import RunSettings
from ci_evals.domain.errors import UsageError

PLAN = plans.make_plan({"name": "a"}, {"name": "b"})


def asked(**options) -> RunSettings:
    return RunSettings(suites=["s.json"], **options)


def test_a_part_is_asked_for():
    """Or the whole."""
    assert part_of(asked(), PLAN) is None
    assert str(part_of(asked(shard="2/2"), PLAN)) == "2/2"


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"shard": ""}, "`shard=`: '' is not a shard"),
        ({"shard": "3/2"}, "`shard=`: '3/2' is not a shard"),
        ({"shard": "1/3"}, "`shard=1/3`: the plan has 2 tests; ask for at most 2 parts"),
    ],
)
def test_unplayable_tests_are_refused(options, value):
    """With what to do."""
    with pytest.raises(UsageError) as refused:
        part_of(asked(**options), PLAN)
    assert str(refused.value).startswith(value)


def test_a_shard_neither_looks_for_a_baseline_nor_comments():
    """Unless it is told to; other runs stay as they are."""
    alone = for_shard(asked(shard="1/2", check=True))
    assert (alone.baseline, alone.comment, alone.check) == ("none", CommentMode.NEVER, False)
    report = asked(shard="1/2", baseline="auto", comment=CommentMode.ALWAYS)
    assert for_shard(report) == report
    assert for_shard(asked()) == asked()
