"""Shards of a run become one: what was split comes out whole, what does not belong together is refused."""

from dataclasses import fields, replace

import builders as build
import plans
import pytest
from each_row import each_row
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import scorecard_of_results
from property_examples import examples

from ci_evals.domain.choices import Regression
from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Plan
from ci_evals.domain.prices import PriceTable
from ci_evals.domain.results.run import Digests, Git, Origin, PooledRun, Results
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.results.usage import RoleUsage, Tokens, Usage
from ci_evals.domain.run_ending import RunEnding
from ci_evals.domain.transcript import EndState, Turns
from ci_evals.domain.verdict import Cause, Finding, Outcome, Vote
from ci_evals.extensions.merge.merge import Merged, merge
from ci_evals.extensions.merge.shards import ShardRun
from ci_evals.gate.policy import Policy
from ci_evals.gate.selectors import read_drops, read_thresholds
from ci_evals.job.conclude import BaselineResults, conclude
from ci_evals.planning import sharding
from ci_evals.scoring.scorecard import recounted, total
from ci_evals.scoring.scores import ScoreRule
from ci_evals.scoring.usage import usage_of
from ci_evals.support.digest import digest, of_loops, of_models, of_tests
from ci_evals.support.redaction import Redactor

RULE = ScoreRule(offline=False)
PRICES = PriceTable.model_validate({"asOf": "2026-11-22", "models": {"known": {"input": 2, "output": 8}}})
DROP, DROPS = read_drops("5, suite:a=3")
POLICY = Policy(
    min_score=70,
    thresholds=read_thresholds("category:tone=60, tag:slow=50, suite:b=90, test:a0=100, logic:L1=5"),
    max_errors=3,
    max_drop=DROP,
    max_drops=DROPS,
    regression=Regression.SIGNIFICANT,
    max_p95_latency=2,
    max_cost=5,
)


def a_test(name, trials=None, *, line=1, **fields):
    trials = (build.trial_result(),) if trials is None else tuple(trials)
    return build.test_result(name, trials=trials, line=line, digest=f"digest of {name}", **fields)


def suite_of(name, *tests, **fields):
    return build.suite_result(name, *tests, **{"file": f"{name}.json"} | fields)


def run(*suites, usage=None, **info) -> Results:
    """A run of these suites, with the numbers and digests that it would have."""
    suites = tuple(recounted(suite, RULE) for suite in suites)
    played = [trial for suite in suites for test in suite.tests for trial in test.trials]
    card = total(suites, usage or usage_of(played, PRICES), RULE)
    digests = {field.name: field.name[0] * 64 for field in fields(Digests)} | {
        "suites": of_tests(test.digest for suite in suites for test in suite.tests),
        "loops": of_loops(len(test.trials) + test.not_run for suite in suites for test in suite.tests),
        "models": of_models("openai", (suite.models.identity for suite in suites)),
    }
    found = build.results(*suites, run=build.run_info(**{"digests": Digests(**digests)} | info))
    return replace(
        found, **{field.name: getattr(card, field.name) for field in fields(card) if field.name != "suites"}
    )


def merged(*shards: Results, expected=None) -> Merged:
    return merge([ShardRun(f"shard{i}", one) for i, one in enumerate(shards)], expected=expected)


def concluded(*shards: Results, expected=None, policy=POLICY, baseline=None) -> Results:
    found = merged(*shards, expected=expected)
    return conclude(found.card, found.info, policy, found.ending, BaselineResults(baseline))


findings = st.builds(
    lambda outcome, weight, category, logic: Finding(
        criterion="c",
        kind="judged",
        reason="r",
        outcome=outcome,
        cause=Cause.JUDGE_ERROR if outcome is Outcome.UNDECIDED else None,
        weight=weight,
        category=category,
        aui_logic=logic,
    ),
    st.sampled_from([Outcome.PASSED, Outcome.PASSED, Outcome.FAILED, Outcome.UNDECIDED]),
    st.sampled_from([0.0, 0.1, 1.0, 3.0]),
    st.sampled_from([None, "tone", "safety"]),
    st.sampled_from([(), ("L1",), ("L1", "L2")]),
)
usages = st.builds(
    # Dollars that binary numbers hold exactly, so that they add up to the same in any order.
    lambda role, model, tokens: RoleUsage(role=role, model=model, calls=1, input_tokens=15_625 * tokens),
    st.sampled_from(["user", "judge"]),
    st.sampled_from(["known", "known", "known", "unknown"]),
    st.integers(1, 100),
)
trials = st.builds(
    lambda status, found, seconds, tokens, used: TrialResult(
        index=1,
        status=status,
        duration_seconds=1,
        findings=tuple(found),
        turns=Turns((build.turn(latency_seconds=seconds, input_tokens=tokens),)),
        usage=tuple(used),
    ),
    st.sampled_from([EndState.COMPLETED, EndState.COMPLETED, *EndState]),
    st.lists(findings, max_size=3),
    st.sampled_from([0.1, 0.7, 3.0]),
    st.sampled_from([None, 5]),
    st.lists(usages, max_size=2),
)


@st.composite
def some_tests(draw, suite):
    """The tests of a suite, each at its own line."""
    return tuple(
        a_test(
            f"{suite}{place}",
            played := draw(st.lists(trials, max_size=2)),
            line=10 * place + 3,
            tags=draw(st.sampled_from([(), ("slow",), ("slow", "new")])),
            difficulty=draw(st.sampled_from([None, "easy"])),
            critical=draw(st.booleans()),
            min_score=draw(st.sampled_from([None, 50.0])),
            not_run=draw(st.integers(0, 1)) if played else 1,
        )
        for place in range(draw(st.integers(1, 3)))
    )


@st.composite
def runs(draw):
    """A whole run of one to three suites."""
    return tuple(
        suite_of(name, *draw(some_tests(name)), min_score=draw(st.sampled_from([None, 80.0])))
        for name in "abc"[: draw(st.integers(1, 3))]
    )


@st.composite
def splits(draw, suites):
    """Each test in one of up to three shards; a shard that has none is not there."""
    shards = draw(st.integers(1, 3))
    places = {(s.name, t.name): draw(st.integers(0, shards - 1)) for s in suites for t in s.tests}
    found = []
    for shard in range(shards):
        own = [
            replace(suite, tests=kept)
            for suite in suites
            if (kept := tuple(t for t in suite.tests if places[suite.name, t.name] == shard))
        ]
        if own:
            found.append(run(*own, id=f"shard {shard}"))
    return found


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(st.data())
def test_merged_shards_equal_the_whole_run(data):
    """By suites, by tests, or both: every number, check and p, and what was used."""
    suites = data.draw(runs())
    baseline = data.draw(st.none() | runs().map(lambda base: run(*base, id="base")))
    found = merged(*data.draw(splits(suites)))
    # Which shard came first decides the order of suites, and nothing else.
    order = [suite.name for suite in found.card.suites]
    whole = run(*sorted(suites, key=lambda suite: order.index(suite.name)), id=found.info.id)
    expected = conclude(
        scorecard_of_results(whole), whole.run, POLICY, RunEnding(), BaselineResults(baseline)
    )
    assert conclude(found.card, found.info, POLICY, found.ending, BaselineResults(baseline)) == replace(
        expected, run=found.info
    )
    for name in ("suites", "models", "loops"):
        assert getattr(found.info.digests, name) == getattr(whole.run.digests, name)


def plan_of(suites) -> Plan:
    """The plan that these results are of."""
    planned = []
    for suite in suites:
        (whole,) = plans.make_plan(*({"name": test.name} for test in suite.tests), name=suite.name).suites
        digests = tuple(test.digest for test in suite.tests)
        lines = tuple(test.line for test in suite.tests)
        planned.append(replace(whole, file=suite.file, test_digests=digests, test_lines=lines))
    return Plan(suites=tuple(planned), loops=1)


def shards_of(suites, of, baseline=None) -> list[Results]:
    """The results of each shard, had it been played alone."""
    found = []
    for index in range(1, of + 1):
        part = sharding.take(plan_of(suites), sharding.ShardNumber(index, of), Redactor(), baseline)
        mine = {(suite.file, test.name) for suite in part.plan.suites for test in suite.tests}
        own = [
            replace(suite, tests=kept)
            for suite in suites
            if (kept := tuple(test for test in suite.tests if (suite.file, test.name) in mine))
        ]
        found.append(run(*own, id=f"shard {index}", shard=part.shard))
    return found


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(st.data())
def test_all_shards_are_the_whole(data):
    """For any plan, number of shards and order of results: every number, check and p, in the plan's order."""
    suites = data.draw(runs())
    if data.draw(st.booleans(), label="the files have one line"):
        suites = [
            replace(suite, tests=tuple(replace(test, line=1) for test in suite.tests)) for suite in suites
        ]
    baseline = data.draw(st.none() | runs().map(lambda base: run(*base, id="base")))
    of = data.draw(st.integers(1, sum(len(suite.tests) for suite in suites)))
    found = merged(*data.draw(st.permutations(shards_of(suites, of, baseline))))
    whole = run(*suites, id=found.info.id)
    expected = conclude(
        scorecard_of_results(whole), whole.run, POLICY, RunEnding(), BaselineResults(baseline)
    )
    assert conclude(found.card, found.info, POLICY, found.ending, BaselineResults(baseline)) == replace(
        expected, run=found.info
    )
    assert found.info.shard is None
    for name in ("suites", "models", "loops"):
        assert getattr(found.info.digests, name) == getattr(whole.run.digests, name)


def test_tests_of_one_suite_are_in_the_order_of_its_file():
    """Then in that of the shards; suites in that of the shards."""
    first = run(suite_of("a", a_test("2", line=20), a_test("4", line=40)), id="1")
    second = run(
        suite_of("b", a_test("x")), suite_of("a", a_test("1", line=10), a_test("3", line=40)), id="2"
    )
    suites = merged(first, second).card.suites
    assert [(suite.name, [test.name for test in suite.tests]) for suite in suites] == [
        ("a", ["1", "2", "4", "3"]),
        ("b", ["x"]),
    ]


def test_suites_of_one_name_from_two_files_stay_two():
    """Each in a folder of its own, also where the file system does not tell upper from lower case."""
    suites = [suite_of("Refunds", a_test("a"), file=f"{place}.json", folder="Refunds/1") for place in "xy"]
    third = suite_of("refunds", a_test("a"), folder="refunds/2")
    found = merged(run(suites[0], id="1"), run(suites[1], id="2"), run(third, id="3"))
    assert [suite.folder for suite in found.card.suites] == ["Refunds/1", "Refunds-2/1", "refunds-3/2"]


def test_one_file_named_in_two_ways_is_one_suite():
    """`./a.json` is `a.json`."""
    found = merged(
        run(suite_of("a", a_test("1")), id="1"), run(suite_of("a", a_test("2"), file="./a.json"), id="2")
    )
    assert len(found.card.suites) == 1


def test_run_shows_what_all_shards_share():
    """From the first start to the last end; the id hangs on the shards alone."""
    early = build.STARTED_AT.replace(hour=8)
    git = {"repository": "o/r", "commit": "c" * 40, "ref": "refs/pull/7/merge"}
    one = run(
        suite_of("a"),
        id="1",
        started_at=early,
        config={"provider": "openai", "loops": 3, "test": "x"},
        git=Git(**git, pull_request=7),
        environment={"python": "3.13.1", "system": "Linux"},
        warnings=("w1", "w2"),
    )
    other = run(
        suite_of("b"),
        id="2",
        config={"provider": "openai", "loops": 3, "test": "y"},
        git=Git(**git | {"ref": None}),
        environment={"python": "3.12.1", "system": "Linux"},
        warnings=("w2",),
    )
    info = merged(one, other).info
    assert (info.started_at, info.finished_at) == (early, one.run.finished_at)
    assert info.duration_seconds == (one.run.finished_at - early).total_seconds()
    assert info.config == {"provider": "openai", "loops": 3}
    assert info.git == Git(**git, pull_request=7)
    assert info.environment == {"system": "Linux"}
    assert info.warnings == ("w1", "w2")
    assert info.status == "completed"
    assert info.id == merged(other, one).info.id != merged(one).info.id


def test_digests_are_those_of_one_run_where_they_can_be_known():
    """Else they hang on those of the shards, in no order."""
    a, b = suite_of("a", judge_model="m"), suite_of("b", judge_model="m")
    own = {"agents": "x", "loops": "l", "judge_prompt": "j", "user_prompt": "u", "scoring": "1"}
    one = run(a, id="1", digests=Digests(**own, suites="?", models="secret"))
    other = run(b, id="2", digests=Digests(**own | {"agents": "y"}, suites="?", models="secret"))
    found, swapped = merged(one, other).info.digests, merged(other, one).info.digests
    assert (found.loops, found.models) == ("l", "secret")
    assert found.agents == swapped.agents not in {"x", "y"}
    assert found.suites == of_tests(test.digest for suite in (a, b) for test in suite.tests)


def test_an_embedding_model_counts_where_there_is_one():
    """And a run that needs none has the digest that it had before there were any."""
    one, other = suite_of("a", embedding_model="m"), suite_of("b")
    found = merged(run(one, id="1"), run(other, id="2")).info.digests.models
    assert found == run(one, other).run.digests.models != run(suite_of("a"), other).run.digests.models
    assert of_models("openai", [("j", "u", None)]) == digest(["openai", [["j", "u"]]])


def test_votes_of_all_shards_agree_as_those_of_one_run():
    """Their agreement is made anew, and the digest tells of votes and panel."""
    alike, split = (
        build.finding(
            kind="judged",
            criterion=name,
            votes=[Vote(model="j", outcome=Outcome(outcome), reason="r") for outcome in outcomes],
        )
        for name, outcomes in (("a", ["passed", "passed"]), ("b", ["passed", "failed", "passed"]))
    )
    voting = {"judge_model": "j", "judge_panel": ("j", "k"), "judge_votes": 3}
    one, other = (
        suite_of(name, a_test("1", trials=(build.trial_result(findings=(finding,)),)), **voting)
        for name, finding in (("a", alike), ("b", split))
    )
    whole, found = run(one, other), concluded(run(one, id="1"), run(other, id="2"))
    assert found.vote_agreement == whole.vote_agreement
    assert found.vote_agreement.whole.share.value == 0.5
    assert found.run.digests.models == of_models("openai", [([["j", "k"], 3], None, None)] * 2)


def using(*by_role: RoleUsage, **fields) -> Usage:
    calls = {"calls": sum(one.calls for one in by_role if one.role != "agent")}
    return Usage(by_role=by_role, **calls | fields)


def test_usage_is_added_by_role_and_model():
    """Costs as the shards told them, the date that of the oldest prices."""
    judge = RoleUsage(role="judge", model="m", calls=2, input_tokens=10, output_tokens=4, cost_usd=0.25)
    agent = RoleUsage(role="agent", calls=3, input_tokens=7)
    user = RoleUsage(role="user", model="m", calls=1, input_tokens=1, cost_usd=0.5)
    one = using(judge, agent, tokens=Tokens(input=10, output=4), cost_usd=0.25, prices_as_of="2026-11-01")
    other = using(judge, user, tokens=Tokens(input=11, output=4), cost_usd=0.75, prices_as_of="2026-10-01")
    usage = merged(run(suite_of("a"), usage=one, id="1"), run(suite_of("b"), usage=other, id="2")).card.usage
    assert usage == using(
        replace(judge, calls=4, input_tokens=20, output_tokens=8, cost_usd=0.5),
        user,
        agent,
        tokens=Tokens(input=21, output=8),
        cost_usd=1.0,
        prices_as_of="2026-10-01",
    )


def test_a_cost_that_one_shard_does_not_know_is_unknown_of_all():
    """A shard that asked no model costs nothing."""
    known = using(RoleUsage(role="judge", model="m", calls=1, cost_usd=0.5), cost_usd=0.5)
    unknown = using(RoleUsage(role="judge", model="new", calls=1), unpriced=("new",))
    free, a, b = Usage(), suite_of("a"), suite_of("b")
    usage = merged(run(a, usage=known, id="1"), run(b, usage=unknown, id="2")).card.usage
    assert (usage.cost_usd, usage.unpriced) == (None, ("new",))
    assert merged(run(a, usage=known, id="1"), run(b, usage=free, id="2")).card.usage.cost_usd == 0.5


def test_shards_that_were_replayed_make_one_that_was():
    """Its origin is what the runs behind them would be if they were merged."""
    behind = [run(suite_of(name), id=f"behind {name}") for name in "ab"]
    early = build.STARTED_AT.replace(minute=0)
    shards = [
        run(
            suite_of(name),
            id=name,
            origin=Origin(how="replay", run=f"behind {name}", started_at=early.replace(minute=place)),
        )
        for place, name in enumerate("ab")
    ]
    assert merged(*shards).info.origin == Origin(how="replay", run=merged(*behind).info.id, started_at=early)
    again = run(suite_of("c"), id="c", origin=shards[0].run.origin)
    assert merged(shards[0], again).info.origin == shards[0].run.origin
    with pytest.raises(UsageError, match=r"different origins: replay \(shard0\); played \(shard1\)"):
        merged(shards[0], behind[1])


def test_shards_of_different_versions_are_warned_of():
    """Their numbers are all made anew by this one."""
    old = replace(run(suite_of("b"), id="2"), tool=build.Tool(version="0.0.9"))
    assert merged(run(suite_of("a"), id="1"), old).info.warnings == (
        "the shards are of different versions of ci-evals: 0.1.0 (shard0); 0.0.9 (shard1)",
    )


def test_trials_of_earlier_attempts_in_a_shard_are_warned_of():
    """The merged run does not know how many looks there were, and has the level of one."""
    pooled = (PooledRun(run="0", trials=3, started_at=build.STARTED_AT),)
    found = merged(run(suite_of("a"), id="1", pooled=pooled), run(suite_of("b"), id="2")).info
    (warning,) = found.warnings
    assert warning.startswith("trials of earlier attempts are in shard0: ")
    assert (found.pooled, found.reruns) == ((), None)


@each_row(
    ("info", "message"),
    [
        (
            {"git": Git(commit="2" * 40)},
            f"different commits: {'1' * 12} (shard0, shard1); {'2' * 12} (shard2)",
        ),
        ({"git": Git(repository="o/fork")}, "different repositories: o/r (shard0, shard1); o/fork (shard2)"),
        (
            {"config": {"provider": "anthropic"}},
            "different providers: openai (shard0, shard1); anthropic (shard2)",
        ),
        ({"config": {}}, "different providers: openai (shard0, shard1); its own (shard2)"),
        ({"judge_prompt": "x"}, "different prompts of the judge"),
        ({"user_prompt": "x"}, "different prompts of the simulated user"),
        ({"user_prompt": "x"}, "one version of ci-evals, and with the same `audit_user=` and auditModel."),
        ({"scoring": "2"}, "different rules of scoring"),
    ],
)
def test_results_of_other_options_are_refused(info, message):
    """With the files, and what to do."""
    git = Git(commit="1" * 40, repository="o/r")
    shards = [run(suite_of(name), id=name, git=git) for name in "ab"]
    other = run(suite_of("c"), id="c", **{name: info[name] for name in info if name in {"git", "config"}})
    digests = {field.name: info[field.name] for field in fields(Digests) if field.name in info}
    update = {"digests": replace(other.run.digests, **digests)}
    other = replace(other, run=replace(other.run, **update))
    with pytest.raises(UsageError) as refused:
        merged(*shards, other)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_test_in_two_shards_is_refused():
    """Named, with both files and the way out for two agents."""
    one = run(suite_of("a", *(a_test(str(i)) for i in range(5)), agent_id="x"), id="1")
    other = run(suite_of("a", *(a_test(str(i)) for i in range(1, 6)), agent_id="y"), id="2")
    with pytest.raises(UsageError) as refused:
        merged(one, other)
    (line,) = str(refused.value).splitlines()
    assert line.startswith(
        "tests of the suite 'a' (a.json) came from both shard0 and shard1: '1', '2', '3' and 1 more."
    )
    assert "`comment_key=`" in line


def test_tests_that_lost_their_names_to_a_secret_may_share_one_in_a_shard():
    """They are two tests there too."""
    both = a_test("***", line=1), a_test("***", (build.trial_result(findings=()),), line=2)
    found = merged(run(suite_of("a", *both, a_test("b", line=3)), id="1"))
    assert found.card.counts.tests == 3


@pytest.mark.parametrize("apart", [False, True])
def test_a_test_twice_in_a_shard_is_refused(apart):
    """Whether a suite holds it twice, or the suite appears twice."""
    one = suite_of("a", a_test("x"))
    suites = (one, one) if apart else (suite_of("a", a_test("x"), a_test("y"), a_test("x")),)
    with pytest.raises(UsageError, match=r"shard0 holds a test of the suite 'a' \(a.json\) twice: 'x'"):
        merged(run(*suites, id="1"))


@each_row(
    ("fields", "word"),
    [
        ({"agent_id": "agent-2"}, "agent"),
        ({"judge_model": "other"}, "judge"),
        ({"judge_panel": ("a", "b")}, "panel of judges"),
        ({"judge_votes": 3}, "number of votes"),
        ({"user_model": "other"}, "simulated user"),
        ({"embedding_model": "other"}, "embedding model"),
        ({"digest": "other"}, "text"),
        ({"min_score": 5.0}, "minScore"),
        ({"adapter": "demo"}, "adapter"),
    ],
)
def test_shards_that_share_a_suite_must_play_it_alike(fields, word):
    """One suite has one agent and one judge."""
    one, other = suite_of("a", a_test("1")), suite_of("a", a_test("2"), **fields)
    with pytest.raises(UsageError, match=f"does not have the same {word} in shard0 and shard1"):
        merged(run(one, id="1"), run(other, id="2"))


def test_more_results_than_shards_are_refused():
    """Some of them are not of this run."""
    shards = [run(suite_of(name), id=name) for name in "ab"]
    with pytest.raises(UsageError, match="`shards=1`, but there are 2 results: shard0, shard1"):
        merged(*shards, expected=1)


@pytest.mark.parametrize(
    ("here", "expected", "reason"),
    [
        (2, 3, "1 of 3 shards is missing: rerun its job"),
        (1, 3, "2 of 3 shards are missing: rerun their jobs"),
    ],
)
def test_a_missing_shard_makes_the_run_untrusted(here, expected, reason):
    """Whatever the others scored; it is the first reason."""
    shards = [run(suite_of(name), id=name) for name in "ab"[:here]]
    results = concluded(*shards, expected=expected, policy=Policy())
    assert results.gate.reasons == (reason,)
    assert (results.gate.passed, results.gate.exit_code) == (False, 3)
    assert (results.run.status, results.run.stopped_because) == ("stopped", reason)
    assert results.odds is None
    (warning,) = results.run.warnings
    assert warning == "All numbers cover only the shards that are here."
    whole = concluded(*shards, expected=here, policy=Policy())
    assert (whole.gate.exit_code, whole.run.warnings) == (0, ())


@pytest.mark.parametrize("status", ["stopped", "interrupted", "skipped"])
def test_a_shard_that_did_not_go_through_makes_the_run_untrusted(status):
    """The reason names it, after those that are missing."""
    broken = run(suite_of("b"), id="2", status=status, stopped_because="the key was refused")
    results = concluded(run(suite_of("a"), id="1"), broken, expected=3, policy=Policy())
    assert results.gate.exit_code == 3
    assert results.gate.reasons == (
        "1 of 3 shards is missing: rerun its job",
        f"the run of shard1 was {status}: the key was refused",
    )
    assert results.run.status == ("interrupted" if status == "interrupted" else "stopped")


def skipped(name):
    suite = suite_of(name, a_test(name, (), not_run=1))
    return run(suite, id=name, status="skipped", stopped_because="a fork's pull request has no secrets")


def test_shards_that_were_all_skipped_are_a_skipped_run():
    """It neither passes nor fails; with one missing it cannot be known."""
    results = concluded(skipped("a"), skipped("b"), expected=2)
    assert (results.run.status, results.gate.passed, results.gate.exit_code) == ("skipped", False, 0)
    assert results.run.stopped_because == "a fork's pull request has no secrets"
    assert results.counts.not_run == 2
    assert concluded(skipped("a"), expected=2).gate.exit_code == 3


def test_merged_results_can_be_merged_again():
    """A shard that was missing then is still missing."""
    a, b, c = (run(suite_of(name), id=name) for name in "abc")
    inner = concluded(a, b, expected=2)
    assert concluded(inner, c).suites == concluded(a, b, c).suites
    lacking = concluded(a, b, expected=3)
    assert concluded(lacking, c).gate.exit_code == 3


def test_a_shard_that_missed_its_own_gate_does_not_matter():
    """The gate of all decides."""
    failing = build.finding("failed")
    low = run(suite_of("a", a_test("1", (build.trial_result(findings=(build.finding(), failing)),))), id="1")
    low = replace(low, gate=build.decision(passed=False, exit_code=1))
    high = run(suite_of("b", a_test("2")), id="2")
    assert concluded(low, high, policy=Policy(min_score=75)).gate.exit_code == 0
    assert concluded(low, high, policy=Policy(min_score=76)).gate.exit_code == 1


def test_a_part_of_a_run_is_not_compared():
    """The tests of the other parts would look as if they had been removed; the checks say who compares."""
    part = run(suite_of("a", a_test("1")), shard=build.shard(1, 2))
    whole = run(suite_of("a", a_test("1"), a_test("2")))
    policy = Policy(max_drop=1, max_drops=DROPS, regression=Regression.ANY)
    results = conclude(scorecard_of_results(part), part.run, policy, RunEnding(), BaselineResults(whole))
    assert results.comparison is None
    fields = {check.name: check.note for check in results.gate.checks if check.note}
    assert set(fields) == {"max-drop", "max-drop suite:a", "regression"}
    assert set(fields.values()) == {"of shards the comparison is made by merge"}
    assert results.gate.passed
