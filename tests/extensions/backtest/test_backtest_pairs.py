"""Which runs are compared with which, and what becomes of the others."""

from dataclasses import replace

import builders as build
import stored

from ci_evals.domain.results.reused import TakenFrom
from ci_evals.domain.results.run import Git, Origin
from ci_evals.extensions.backtest.pairing import against_branch, history_of, pairs_of


def pairs(*runs):
    history = history_of(runs, None)
    return [(pair.base.run.id, pair.head.run.id) for pair in pairs_of(history.runs)]


def left_out(*runs):
    return {one.name: one.why for one in history_of(runs, None).left_out}


def test_each_run_is_in_at_most_one_pair_whatever_its_outcomes():
    """Else pairs would share trials, and intervals that assume independence were too narrow."""
    assert pairs(*map(stored.run, range(5))) == [("run-0", "run-1"), ("run-2", "run-3")]
    good = [stored.run(number) for number in range(6)]
    mixed = [stored.run(number, (number % 2,) * 4) for number in range(6)]
    assert pairs(*good) == pairs(*mixed)


def test_runs_with_other_agent_options_or_another_suite_are_not_paired():
    runs = []
    for number in range(6):
        results = stored.run(number)
        agents = "a" if number % 2 else "b"
        digests = replace(results.run.digests, agents=agents * 64)
        runs.append(replace(results, run=replace(results.run, digests=digests)))
    assert pairs(*runs) == [("run-0", "run-2"), ("run-1", "run-3")]
    changed = []
    for number in (1, 2):
        results = stored.run(number)
        (suite,) = results.suites
        tests = tuple(replace(test, digest="x" * 64) for test in suite.tests)
        changed.append(replace(results, suites=(replace(suite, tests=tests),)))
    assert pairs(stored.run(0), *changed) == [("run-1", "run-2")]


def test_branch_with_most_runs_is_used_and_the_others_are_named():
    runs = [*map(stored.run, range(3)), stored.run(3, branch="topic"), stored.run(4, branch="topic")]
    history = history_of(runs, None)
    assert (history.branch, len(history.runs)) == ("main", 3)
    assert left_out(*runs) == dict.fromkeys(("run-3", "run-4"), "of the branch topic, not main")
    assert history_of(runs, "topic").branch == "topic"


def test_interrupted_derived_sharded_and_reused_runs_are_left_out_with_the_reason():
    origin = Origin(how="rejudge", run="run-0", started_at=build.STARTED_AT)
    taken = TakenFrom(reason="passed", run="run-0", started_at=build.STARTED_AT)
    partly = stored.run(4)
    (suite,) = partly.suites
    tests = (replace(suite.tests[0], taken_from=taken), *suite.tests[1:])
    partly = replace(partly, suites=(replace(suite, tests=tests),))
    runs = [stored.run(0, status="interrupted"), stored.run(1, origin=origin)]
    runs += [stored.run(2, shard=build.shard()), stored.run(3, git=Git()), partly]
    reasons = ("not completed (interrupted)", "those of the run run-0 (rejudge)", "merge its shards")
    reasons += ("names no branch", "trials are of an earlier run")
    why = left_out(*runs)
    assert [reason in why[f"run-{index}"] for index, reason in enumerate(reasons)] == [True] * 5
    # Earlier attempts are runs of their own: their trials would count in two pairs.
    earlier = {"run": "run-0", "trials": 12, "started_at": build.STARTED_AT}
    runs = [stored.run(0), stored.run(1, pooled=[earlier]), stored.run(2)]
    assert "trials are of an earlier run" in left_out(*runs)["run-1"]
    assert pairs(*runs) == [("run-0", "run-2")]


def test_pull_request_uses_the_newest_earlier_run_and_equal_commits_are_marked():
    runs = [stored.run(0), stored.run(1), stored.run(3)]
    compared = against_branch(stored.run(2, pull_request=7), runs)
    assert compared.base.run.id == "run-1"
    assert against_branch(stored.run(0, pull_request=7), runs[1:]).comparer is None
    first, second = stored.run(0, commit="c" * 40), stored.run(1, commit="c" * 40)
    assert pairs_of([first, second])[0].same_commit
    dirty = replace(second, run=replace(second.run, git=replace(second.run.git, uncommitted_changes=True)))
    assert not pairs_of([first, dirty])[0].same_commit
