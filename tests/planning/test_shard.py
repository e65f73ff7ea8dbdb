"""Parts of a plan: every test in one of them, the same each time, and about as long as each other."""

from dataclasses import replace

import builders as build
import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Plan, PlannedSuite
from ci_evals.domain.suite import Suite
from ci_evals.planning import sharding
from ci_evals.planning.sharding import ShardNumber
from ci_evals.support.redaction import Redactor


def suite_of(*tests: str | dict, file: str = "s.json", name: str = "S") -> PlannedSuite:
    """A suite of tests by name, a turn for each of them unless they say more."""
    plain = {"guidelines": "g", "turns": [{"user": "x"}], "maxTurns": 1, "evaluations": [{"criterion": "c"}]}
    named = [test if isinstance(test, dict) else {"name": test} for test in tests]
    suite = Suite.model_validate({"name": name, "tests": [plain | test for test in named]})
    digests = tuple(f"digest of {test.name}" for test in suite.tests)
    lines = tuple(range(1, len(digests) + 1))
    return PlannedSuite(suite, file, "d", suite.tests, digests, lines)


def plan_of(*tests: str | dict, loops: int = 1, **fields) -> Plan:
    return Plan(suites=(suite_of(*tests, **fields),), loops=loops)


def names(plan: Plan) -> list[str]:
    return [test.name for suite in plan.suites for test in suite.tests]


def names_by_shard(plan: Plan, of: int, baseline=None, redactor=None) -> list[list[str]]:
    """The names of the tests of each part."""
    shards, redactor = (ShardNumber(i, of) for i in range(1, of + 1)), redactor or Redactor()
    return [names(sharding.take(plan, shard, redactor, baseline).plan) for shard in shards]


def recorded(name: str, *seconds: float, **fields):
    """A test of a baseline whose trials took so long."""
    trials = tuple(build.trial_result(i, duration_seconds=took) for i, took in enumerate(seconds, 1))
    return build.test_result(name, **{"trials": trials, "digest": f"digest of {name}"} | fields)


def baseline_of(*tests, name: str = "S"):
    return build.results(build.suite_result(name, *tests))


def test_malformed_shard_number_is_refused():
    for text in ("1/1", "2/5", "1000/1000"):
        assert str(sharding.read(text)) == text
    malformed = ("", "2", "0/3", "4/3", "1/1001", "02/3", "2/03", " 2/3", "2/3 ", "2 / 3", "-1/3", "1/3/5")
    for text in (*malformed, "²/3", "1/" + "9" * 5000):
        with pytest.raises(UsageError, match=r"`shard=`: .* is not a shard; write I/N"):
            sharding.read(text)


def test_more_shards_than_tests_are_refused():
    plan = plan_of("a", "b")
    sharding.check(plan, ShardNumber(1, 2))
    with pytest.raises(UsageError, match="has 2 tests; ask for at most 2 parts"):
        sharding.check(plan, ShardNumber(1, 3))
    with pytest.raises(UsageError, match=r"has 1 test; ask for at most 1 part$"):
        sharding.check(plan_of("a"), ShardNumber(1, 3))


def test_shards_are_balanced_by_durations_of_the_baseline_or_without_one_by_turns():
    tests = [{"name": "long", "maxTurns": 7}, "a", "b", {"name": "loops", "loops": 4}, "c", "d"]
    assert names_by_shard(plan_of(*tests), 2) == [["long", "d"], ["a", "b", "loops", "c"]]
    before = baseline_of(recorded("slow", 60, 120), recorded("quick", 5), recorded("quicker", 4))
    tests = ["quick", "quicker", "new", {"name": "slow", "maxTurns": 1}]
    # 90 for slow, 33 for new, 5 and 4.
    assert names_by_shard(plan_of(*tests), 2, before) == [["slow"], ["quick", "quicker", "new"]]
    twice = ["quick", "quicker", {"name": "new", "loops": 9}, "slow"]
    assert names_by_shard(plan_of(*twice), 2, before) == [["new"], ["quick", "quicker", "slow"]]


@each_row("status", ["failed", "interrupted", "agent_error"])
def test_durations_of_failed_trials_are_ignored(status):
    cut = build.trial_result(1, duration_seconds=500, status=status)
    whole = build.trial_result(2, duration_seconds=1)
    before = baseline_of(recorded("a", trials=(cut, whole)), recorded("b", 2), recorded("c", trials=(cut,)))
    # 1 for a, 2 for b, and 1.5 for c.
    assert names_by_shard(plan_of("a", "b", "c"), 2, before) == [["b"], ["a", "c"]]


def test_baseline_durations_are_matched_by_redacted_name_and_digest():
    redactor = Redactor(values=["secret-one", "secret-two"])
    tests = ["for secret-one", "for secret-two", "c"]
    before = baseline_of(
        recorded("for ***", 9, digest="digest of for secret-one"),
        recorded("for ***", 1, digest="digest of for secret-two"),
        recorded("c", 100, digest="asks something else now"),
        name="S of ***",
    )
    plan = plan_of(*tests, name="S of secret-one")
    # 9 and 1, and 5 for c; else, with 9 for both, c would be alone.
    assert names_by_shard(plan, 2, before, redactor) == [["for secret-one"], ["for secret-two", "c"]]
    assert names_by_shard(plan, 2, before) == names_by_shard(plan, 2)


def test_plan_digest_depends_on_plan_and_split_digest_also_on_shards():
    tests = ["a", "b", "c"]

    def first(plan: Plan, baseline=None):
        return sharding.take(plan, ShardNumber(1, 2), Redactor(), baseline).shard

    one = first(plan_of(*tests))
    for plan in (
        plan_of(*reversed(tests)),
        plan_of(*tests, loops=2),
        plan_of(*tests[:2], {"name": "c", "loops": 2}),
        plan_of(*tests[:2]),
        plan_of(*tests, file="other.json"),
        plan_of(*tests, name="Other"),
    ):
        assert first(plan).plan != one.plan
        assert first(plan).split != one.split
    same = first(plan_of(*tests), baseline_of(recorded("c", 9)))
    assert (same.plan, same.split) == (one.plan, one.split)
    balanced = first(plan_of(*tests), baseline_of(recorded("c", 9), recorded("b", 1)))
    assert balanced.plan == one.plan
    assert balanced.split != one.split
    assert first(plan_of(*tests, file="./s.json")).plan == one.plan


some_tests = st.lists(
    st.fixed_dictionaries({"maxTurns": st.integers(1, 9)}, optional={"loops": st.integers(1, 3)}),
    min_size=1,
    max_size=6,
)


@given(st.data())
def test_shards_partition_the_plan_and_are_balanced(data):
    result = data.draw(st.lists(some_tests, min_size=1, max_size=3))
    named = [[test | {"name": f"{s}.{t}"} for t, test in enumerate(tests)] for s, tests in enumerate(result)]
    suites = tuple(suite_of(*tests, file=f"{s}.json", name=f"{s}") for s, tests in enumerate(named))
    plan = Plan(suites=suites, loops=data.draw(st.integers(1, 3)))
    seconds = st.sampled_from([0.0, 0.1, 1.0, 40.0])
    known = []
    for suite in suites:
        tests = [recorded(test.name, *data.draw(st.lists(seconds, max_size=2))) for test in suite.tests]
        known.append(build.suite_result(suite.suite.name, *tests))
    before = data.draw(st.sampled_from([None, build.results(*known)]))
    of = data.draw(st.integers(1, len(names(plan))))
    took = [sharding.take(plan, ShardNumber(i, of), Redactor(), before) for i in range(1, of + 1)]
    places = [place for one in took for place in one.shard.tests]
    whole = names(plan)
    assert sorted(places) == list(range(1, len(whole) + 1))
    for one in took:
        assert names(one.plan) == [whole[place - 1] for place in one.shard.tests] != []
        assert list(one.shard.tests) == sorted(one.shard.tests)
        assert all(suite.tests for suite in one.plan.suites)
    if before is None:

        def weights(plan: Plan) -> list[int]:
            return [plan.loops_of(t) * len(s.suite.turns_of(t)) for s in plan.suites for t in s.tests]

        totals = [sum(weights(one.plan)) for one in took]
        assert max(totals) - min(totals) <= max(weights(plan))


def test_shard_keeps_plan_order_records_all_suites_and_1_of_1_equals_the_plan():
    first_suite = suite_of("a", {"name": "b", "maxTurns": 9}, file="x.json")
    plan = Plan(suites=(first_suite, suite_of("c", "d", file="y.json")), loops=2)
    first, second = (sharding.take(plan, ShardNumber(i, 2), Redactor()) for i in (1, 2))
    assert [names(one.plan) for one in (first, second)] == [["b"], ["a", "c", "d"]]
    (suite,) = first.plan.suites
    assert (suite.file, suite.test_digests, suite.test_lines) == ("x.json", ("digest of b",), (2,))
    assert (first.plan.loops, suite.digest) == (2, "d")
    assert (first.shard.index, first.shard.of, first.shard.tests) == (1, 2, (2,))
    assert (second.shard.index, second.shard.of, second.shard.tests) == (2, 2, (1, 3, 4))
    assert first.shard.suites == second.shard.suites == ("x.json", "y.json")
    assert (first.shard.plan, first.shard.split) == (second.shard.plan, second.shard.split)
    plan = plan_of("a", "b", loops=2)
    assert sharding.take(plan, ShardNumber(1, 1), Redactor()).plan == replace(plan)
