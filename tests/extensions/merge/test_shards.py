"""Shards that are merged: each once, all of one plan and one split; one that is missing is named."""

from dataclasses import replace

import builders as build
import pytest
from each_row import each_row

from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.extensions.merge.merge import merge
from ci_evals.extensions.merge.shards import ShardRun
from ci_evals.gate.policy import Policy
from ci_evals.job.conclude import conclude


def shard(index, of=3, *, tests=None, names=None, file="evals/refunds.json", **fields) -> Results:
    """A shard with one test, or those that are named, of a suite."""
    names = names or [f"test {index}"]
    suite = build.suite_result("Refunds", *map(build.test_result, names), file=file)
    fields = {"suites": ("evals/refunds.json",)} | fields
    part = build.shard(index, of, tests=tests or (index,), **fields)
    return build.results(suite, run=build.run_info(id=f"run {index}", shard=part))


def merged(*shards: Results, expected=None):
    return merge([ShardRun(f"shard{i}", one) for i, one in enumerate(shards)], expected=expected)


def concluded(*shards: Results) -> Results:
    result = merged(*shards)
    return conclude(result.card, result.info, Policy(), result.ending)


def test_complete_shards_merge_and_expected_number_must_match():
    results = concluded(shard(2), shard(3), shard(1))
    assert (results.gate.exit_code, results.run.shard, results.run.warnings) == (0, None, ())
    assert [test.name for test in results.suites[0].tests] == ["test 1", "test 2", "test 3"]
    assert merged(shard(1), shard(2), shard(3), expected=3).ending.incomplete == ()
    with pytest.raises(UsageError, match="`shards=4`, but these are shards of 3: omit `shards=`"):
        merged(shard(1), shard(2), shard(3), expected=4)
    with pytest.raises(UsageError, match="`shards=2`, but there are 3 results: shard0, shard1, shard2"):
        merged(shard(1), shard(2), shard(3), expected=2)


@each_row(
    ("present", "of", "reason"),
    [
        ((1, 3), 3, "shard 2 of 3 is missing: rerun its job"),
        ((3,), 3, "shards 1 and 2 of 3 are missing: rerun their jobs"),
        ((2,), 9, "shards 1, 3, 4, 5, 6 and 3 more of 9 are missing: rerun their jobs"),
    ],
)
def test_missing_shards_are_named_and_leave_no_verdict(present, of, reason):
    suites = ("evals/refunds.json", "evals/orders.json")
    results = concluded(*(shard(index, of, suites=suites) for index in present))
    assert (results.gate.exit_code, results.gate.reasons) == (3, (reason,))
    assert results.run.stopped_because == reason
    notes = ("All numbers cover only the shards that are here.", "No results of evals/orders.json are here.")
    assert results.run.warnings[:2] == notes


def test_interrupted_shard_leaves_no_verdict():
    cut = shard(2, 2)
    results = concluded(shard(1, 2), replace(cut, run=replace(cut.run, status="interrupted")))
    assert (results.gate.exit_code, results.gate.reasons) == (3, ("the run of shard1 was interrupted",))


Q = "q" * 64
ALONE = build.results(build.suite_result("Refunds", build.test_result("test 3")))


@each_row(
    ("shards", "value"),
    [
        ([shard(1), shard(2), ALONE], "some of the results are of shards, and these are not: shard2."),
        ([shard(1), shard(2, 4)], "the shards are of different numbers: of 3 (shard0); of 4 (shard1)."),
        ([shard(1), shard(2, plan=Q)], f"the shards are of different plans: {'p' * 12} (shard0); {Q[:12]} ("),
        (
            [shard(1), shard(2, split=Q)],
            f"the shards are split in different ways: {'s' * 12} (shard0); {Q[:3]}",
        ),
        ([shard(1), shard(2), shard(1)], "shard 1 of 3 came from shard0 and shard2: name each shard once"),
        ([shard(1), shard(2, tests=(1,))], "shard0 and shard1 contain the same tests of the plan"),
        ([shard(1), shard(2, tests=(2, 3))], "shard1: its tests are not those that it names"),
        ([shard(1), shard(2, names=["x", "y"], tests=(2, 2))], "shard1: its tests are not those"),
        ([shard(1), shard(4)], "shard1: its tests are not those"),
        ([shard(1, 2), shard(2, 2, tests=(3,))], "the shards together do not contain all tests of the plan"),
    ],
)
def test_shards_that_do_not_fit_together_are_refused(shards, value):
    with pytest.raises(UsageError) as refused:
        merged(*shards)
    assert str(refused.value).startswith(value)
    assert "\n" not in str(refused.value)


def test_redacted_names_may_be_equal_in_two_shards():
    result = merged(shard(1, 2, names=["of ***"]), shard(2, 2, names=["of ***"]))
    assert result.card.counts.tests == 2
    with pytest.raises(UsageError, match="came from both shard0 and shard1: 'x'"):
        merged(shard(1, 2, names=["x"]), shard(2, 2, names=["x"]))
