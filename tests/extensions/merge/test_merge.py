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
THRESHOLDS = read_thresholds("category:tone=60, tag:slow=50, suite:b=90, test:a0=100, logic:L1=5")
COMPARED = {"max_drop": DROP, "max_drops": DROPS, "regression": Regression.SIGNIFICANT}
POLICY = Policy(min_score=70, thresholds=THRESHOLDS, max_errors=3, max_p95_latency=2, max_cost=5, **COMPARED)


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
    results = build.results(*suites, run=build.run_info(**{"digests": Digests(**digests)} | info))
    numbers = {field.name: getattr(card, field.name) for field in fields(card) if field.name != "suites"}
    return replace(results, **numbers)


def merged(*shards: Results, expected=None) -> Merged:
    return merge([ShardRun(f"shard{i}", one) for i, one in enumerate(shards)], expected=expected)


def conclude_merged(found: Merged, policy=POLICY, baseline=None) -> Results:
    return conclude(found.card, found.info, policy, found.ending, BaselineResults(baseline))


def concluded(*shards: Results, expected=None, policy=POLICY) -> Results:
    return conclude_merged(merged(*shards, expected=expected), policy)


def assert_equals_whole(found: Merged, whole: Results, baseline: Results | None) -> None:
    """Every number, check and p of merged shards is that of the undivided run."""
    expected = conclude(
        scorecard_of_results(whole), whole.run, POLICY, RunEnding(), BaselineResults(baseline)
    )
    assert conclude_merged(found, POLICY, baseline) == replace(expected, run=found.info)
    for name in ("suites", "models", "loops"):
        assert getattr(found.info.digests, name) == getattr(whole.run.digests, name)


def judged(outcome, **fields):
    cause = Cause.JUDGE_ERROR if outcome is Outcome.UNDECIDED else None
    return Finding(criterion="c", kind="judged", reason="r", outcome=outcome, cause=cause, **fields)


findings = st.builds(
    judged,
    st.sampled_from([Outcome.PASSED, Outcome.PASSED, Outcome.FAILED, Outcome.UNDECIDED]),
    weight=st.sampled_from([0.0, 0.1, 1.0, 3.0]),
    category=st.sampled_from([None, "tone", "safety"]),
    aui_logic=st.sampled_from([(), ("L1",), ("L1", "L2")]),
)
usages = st.builds(
    # Dollars that binary numbers hold exactly, so that they add up to the same in any order.
    lambda role, model, tokens: RoleUsage(role=role, model=model, calls=1, input_tokens=15_625 * tokens),
    st.sampled_from(["user", "judge"]),
    st.sampled_from(["known", "known", "known", "unknown"]),
    st.integers(1, 100),
)
trials = st.builds(
    TrialResult,
    index=st.just(1),
    duration_seconds=st.just(1),
    status=st.sampled_from([EndState.COMPLETED, EndState.COMPLETED, *EndState]),
    findings=st.lists(findings, max_size=3).map(tuple),
    turns=st.builds(
        lambda seconds, tokens: Turns((build.turn(latency_seconds=seconds, input_tokens=tokens),)),
        st.sampled_from([0.1, 0.7, 3.0]),
        st.sampled_from([None, 5]),
    ),
    usage=st.lists(usages, max_size=2).map(tuple),
)


@st.composite
def some_tests(draw, suite):
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
    floors, count = st.sampled_from([None, 80.0]), draw(st.integers(1, 3))
    return tuple(suite_of(name, *draw(some_tests(name)), min_score=draw(floors)) for name in "abc"[:count])


@st.composite
def splits(draw, suites):
    """Each test in one of up to three shards; a shard that has none is not there."""
    shards = draw(st.integers(1, 3))
    places = {(s.name, t.name): draw(st.integers(0, shards - 1)) for s in suites for t in s.tests}
    result = []
    for shard in range(shards):
        own = [
            replace(suite, tests=kept)
            for suite in suites
            if (kept := tuple(t for t in suite.tests if places[suite.name, t.name] == shard))
        ]
        if own:
            result.append(run(*own, id=f"shard {shard}"))
    return result


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(st.data())
def test_merged_parts_equal_the_whole_run(data):
    suites = data.draw(runs())
    baseline = data.draw(st.none() | runs().map(lambda base: run(*base, id="base")))
    result = merged(*data.draw(splits(suites)))
    # Which shard came first decides the order of suites, and nothing else.
    order = [suite.name for suite in result.card.suites]
    whole = run(*sorted(suites, key=lambda suite: order.index(suite.name)), id=result.info.id)
    assert_equals_whole(result, whole, baseline)


def plan_of(suites) -> Plan:
    planned = []
    for suite in suites:
        (whole,) = plans.make_plan(*({"name": test.name} for test in suite.tests), name=suite.name).suites
        digests = tuple(test.digest for test in suite.tests)
        lines = tuple(test.line for test in suite.tests)
        planned.append(replace(whole, file=suite.file, test_digests=digests, test_lines=lines))
    return Plan(suites=tuple(planned), loops=1)


def shards_of(suites, of, baseline=None) -> list[Results]:
    result = []
    for index in range(1, of + 1):
        part = sharding.take(plan_of(suites), sharding.ShardNumber(index, of), Redactor(), baseline)
        mine = {(suite.file, test.name) for suite in part.plan.suites for test in suite.tests}
        own = [
            replace(suite, tests=kept)
            for suite in suites
            if (kept := tuple(test for test in suite.tests if (suite.file, test.name) in mine))
        ]
        result.append(run(*own, id=f"shard {index}", shard=part.shard))
    return result


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(st.data())
def test_merged_shards_of_a_plan_equal_the_whole_run(data):
    suites = data.draw(runs())
    if data.draw(st.booleans(), label="the files have one line"):
        suites = [replace(one, tests=tuple(replace(test, line=1) for test in one.tests)) for one in suites]
    baseline = data.draw(st.none() | runs().map(lambda base: run(*base, id="base")))
    of = data.draw(st.integers(1, sum(len(suite.tests) for suite in suites)))
    result = merged(*data.draw(st.permutations(shards_of(suites, of, baseline))))
    assert_equals_whole(result, run(*suites, id=result.info.id), baseline)
    assert result.info.shard is None


def test_merged_suites_and_tests_keep_file_order_and_folders():
    first = run(suite_of("a", a_test("2", line=20), a_test("4", line=40)), id="1")
    others = suite_of("a", a_test("1", line=10), a_test("3", line=40))
    second = run(suite_of("b", a_test("x")), others, id="2")
    suites = merged(first, second).card.suites
    names = [(suite.name, [test.name for test in suite.tests]) for suite in suites]
    assert names == [("a", ["1", "2", "4", "3"]), ("b", ["x"])]
    suites = [suite_of("Refunds", a_test("a"), file=f"{place}.json", folder="Refunds/1") for place in "xy"]
    third = suite_of("refunds", a_test("a"), folder="refunds/2")
    result = merged(run(suites[0], id="1"), run(suites[1], id="2"), run(third, id="3"))
    assert [suite.folder for suite in result.card.suites] == ["Refunds/1", "Refunds-2/1", "refunds-3/2"]
    dotted = suite_of("a", a_test("2"), file="./a.json")
    result = merged(run(suite_of("a", a_test("1")), id="1"), run(dotted, id="2"))
    assert len(result.card.suites) == 1


def test_merged_run_spans_all_shards_and_has_shared_settings_and_every_warning():
    early = build.STARTED_AT.replace(hour=8)
    git = {"repository": "o/r", "commit": "c" * 40, "ref": "refs/pull/7/merge"}
    config, environment = {"provider": "openai", "loops": 3}, {"system": "Linux"}
    own = {"config": config | {"test": "x"}, "environment": environment | {"python": "3.13.1"}}
    own |= {"git": Git(**git, pull_request=7), "warnings": ("w1", "w2")}
    one = run(suite_of("a"), id="1", started_at=early, **own)
    own = {"config": config | {"test": "y"}, "environment": environment | {"python": "3.12.1"}}
    own |= {"git": Git(**git | {"ref": None}), "warnings": ("w2",)}
    other = run(suite_of("b"), id="2", **own)
    info = merged(one, other).info
    assert (info.started_at, info.finished_at) == (early, one.run.finished_at)
    assert info.duration_seconds == (one.run.finished_at - early).total_seconds()
    assert (info.config, info.git) == (config, Git(**git, pull_request=7))
    assert (info.environment, info.warnings) == (environment, ("w1", "w2"))
    assert info.status == "completed"
    assert info.id == merged(other, one).info.id != merged(one).info.id


def test_digests_of_merged_run_equal_those_of_one_run_where_known():
    a, b = suite_of("a", judge_model="m"), suite_of("b", judge_model="m")
    own = {"agents": "x", "loops": "l", "judge_prompt": "j", "user_prompt": "u", "scoring": "1"}
    one = run(a, id="1", digests=Digests(**own, suites="?", models="secret"))
    other = run(b, id="2", digests=Digests(**own | {"agents": "y"}, suites="?", models="secret"))
    result, swapped = merged(one, other).info.digests, merged(other, one).info.digests
    assert (result.loops, result.models) == ("l", "secret")
    assert result.agents == swapped.agents not in {"x", "y"}
    assert result.suites == of_tests(test.digest for suite in (a, b) for test in suite.tests)
    one, other = suite_of("a", embedding_model="m"), suite_of("b")
    result = merged(run(one, id="1"), run(other, id="2")).info.digests.models
    assert result == run(one, other).run.digests.models != run(suite_of("a"), other).run.digests.models
    assert of_models("openai", [("j", "u", None)]) == digest(["openai", [["j", "u"]]])


def test_vote_agreement_is_computed_over_all_shards():
    def voted(name, *outcomes):
        votes = [Vote(model="j", outcome=Outcome(outcome), reason="r") for outcome in outcomes]
        finding = build.finding(kind="judged", criterion=name, votes=votes)
        trials = (build.trial_result(findings=(finding,)),)
        return suite_of(name, a_test("1", trials), judge_model="j", judge_panel=("j", "k"), judge_votes=3)

    one, other = voted("a", "passed", "passed"), voted("b", "passed", "failed", "passed")
    whole, result = run(one, other), concluded(run(one, id="1"), run(other, id="2"))
    assert (result.vote_agreement, result.vote_agreement.whole.share.value) == (whole.vote_agreement, 0.5)
    assert result.run.digests.models == of_models("openai", [([["j", "k"], 3], None, None)] * 2)


def using(*by_role: RoleUsage, **fields) -> Usage:
    calls = {"calls": sum(one.calls for one in by_role if one.role != "agent")}
    return Usage(by_role=by_role, **calls | fields)


def test_usage_is_summed_and_cost_unknown_if_unknown_to_one_shard():
    judge = RoleUsage(role="judge", model="m", calls=2, input_tokens=10, output_tokens=4, cost_usd=0.25)
    agent = RoleUsage(role="agent", calls=3, input_tokens=7)
    user = RoleUsage(role="user", model="m", calls=1, input_tokens=1, cost_usd=0.5)
    one = using(judge, agent, tokens=Tokens(input=10, output=4), cost_usd=0.25, prices_as_of="2026-11-01")
    other = using(judge, user, tokens=Tokens(input=11, output=4), cost_usd=0.75, prices_as_of="2026-10-01")
    usage = merged(run(suite_of("a"), usage=one, id="1"), run(suite_of("b"), usage=other, id="2")).card.usage
    judges = replace(judge, calls=4, input_tokens=20, output_tokens=8, cost_usd=0.5)
    totals = {"tokens": Tokens(input=21, output=8), "cost_usd": 1.0, "prices_as_of": "2026-10-01"}
    assert usage == using(judges, user, agent, **totals)
    known = using(RoleUsage(role="judge", model="m", calls=1, cost_usd=0.5), cost_usd=0.5)
    unknown = using(RoleUsage(role="judge", model="new", calls=1), unpriced=("new",))
    free, a, b = Usage(), suite_of("a"), suite_of("b")
    usage = merged(run(a, usage=known, id="1"), run(b, usage=unknown, id="2")).card.usage
    assert (usage.cost_usd, usage.unpriced) == (None, ("new",))
    assert merged(run(a, usage=known, id="1"), run(b, usage=free, id="2")).card.usage.cost_usd == 0.5


def test_merged_replays_have_merged_run_as_origin():
    behind = [run(suite_of(name), id=f"behind {name}") for name in "ab"]
    early = build.STARTED_AT.replace(minute=0)
    starts = {"a": early, "b": early.replace(minute=1)}
    origins = {name: Origin(how="replay", run=f"behind {name}", started_at=at) for name, at in starts.items()}
    shards = [run(suite_of(name), id=name, origin=origin) for name, origin in origins.items()]
    assert merged(*shards).info.origin == Origin(how="replay", run=merged(*behind).info.id, started_at=early)
    again = run(suite_of("c"), id="c", origin=shards[0].run.origin)
    assert merged(shards[0], again).info.origin == shards[0].run.origin
    with pytest.raises(UsageError, match=r"different origins: replay \(shard0\); played \(shard1\)"):
        merged(shards[0], behind[1])


def test_different_versions_and_earlier_attempts_cause_warnings():
    old = replace(run(suite_of("b"), id="2"), tool=build.Tool(version="0.0.9"))
    warning = "the shards are of different versions of ci-evals: 0.1.0 (shard0); 0.0.9 (shard1)"
    assert merged(run(suite_of("a"), id="1"), old).info.warnings == (warning,)
    pooled = (PooledRun(run="0", trials=3, started_at=build.STARTED_AT),)
    result = merged(run(suite_of("a"), id="1", pooled=pooled), run(suite_of("b"), id="2")).info
    (warning,) = result.warnings
    assert warning.startswith("trials of earlier attempts are in shard0: ")
    assert (result.pooled, result.reruns) == ((), None)


@each_row(
    ("info", "message"),
    [
        ({"git": Git(commit="2" * 40)}, f"commits: {'1' * 12} (shard0, shard1); {'2' * 12} (shard2)"),
        ({"git": Git(repository="o/fork")}, "different repositories: o/r (shard0, shard1); o/fork (shard2)"),
        ({"config": {"provider": "anthropic"}}, "providers: openai (shard0, shard1); anthropic (shard2)"),
        ({"config": {}}, "different providers: openai (shard0, shard1); its own (shard2)"),
        ({"judge_prompt": "x"}, "different prompts of the judge"),
        ({"user_prompt": "x"}, "different prompts of the simulated user"),
        ({"user_prompt": "x"}, "one version of ci-evals, and with the same `audit_user=` and auditModel."),
        ({"scoring": "2"}, "different rules of scoring"),
    ],
)
def test_shards_with_different_options_are_refused(info, message):
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
def test_shards_with_different_settings_of_one_suite_are_refused(fields, word):
    one, other = suite_of("a", a_test("1")), suite_of("a", a_test("2"), **fields)
    with pytest.raises(UsageError, match=f"does not have the same {word} in shard0 and shard1"):
        merged(run(one, id="1"), run(other, id="2"))


def test_repeated_tests_and_extra_results_are_refused_unless_redacted():
    shards = [run(suite_of(name), id=name) for name in "ab"]
    with pytest.raises(UsageError, match="`shards=1`, but there are 2 results: shard0, shard1"):
        merged(*shards, expected=1)
    one = run(suite_of("a", *(a_test(str(i)) for i in range(5)), agent_id="x"), id="1")
    other = run(suite_of("a", *(a_test(str(i)) for i in range(1, 6)), agent_id="y"), id="2")
    with pytest.raises(UsageError) as refused:
        merged(one, other)
    (line,) = str(refused.value).splitlines()
    tests = "came from both shard0 and shard1: '1', '2', '3' and 1 more."
    assert line.startswith(f"tests of the suite 'a' (a.json) {tests}")
    assert "`comment_key=`" in line
    twice = suite_of("a", *map(a_test, ("x", "y", "x")))
    for suites in ((twice,), (suite_of("a", a_test("x")),) * 2):
        with pytest.raises(UsageError, match=r"shard0 holds a test of the suite 'a' \(a.json\) twice: 'x'"):
            merged(run(*suites, id="1"))
    both = a_test("***", line=1), a_test("***", (build.trial_result(findings=()),), line=2)
    result = merged(run(suite_of("a", *both, a_test("b", line=3)), id="1"))
    assert result.card.counts.tests == 3


@each_row(
    ("here", "expected", "reason"),
    [
        (2, 3, "1 of 3 shards is missing: rerun its job"),
        (1, 3, "2 of 3 shards are missing: rerun their jobs"),
    ],
)
def test_missing_shard_leaves_no_verdict(here, expected, reason):
    shards = [run(suite_of(name), id=name) for name in "ab"[:here]]
    results = concluded(*shards, expected=expected, policy=Policy())
    assert (results.gate.reasons, results.gate.passed, results.gate.exit_code) == ((reason,), False, 3)
    assert (results.run.status, results.run.stopped_because, results.odds) == ("stopped", reason, None)
    assert results.run.warnings == ("All numbers cover only the shards that are here.",)
    whole = concluded(*shards, expected=here, policy=Policy())
    assert (whole.gate.exit_code, whole.run.warnings) == (0, ())


@each_row("status", ["stopped", "interrupted", "skipped"])
def test_incomplete_shard_leaves_no_verdict(status):
    broken = run(suite_of("b"), id="2", status=status, stopped_because="the key was refused")
    results = concluded(run(suite_of("a"), id="1"), broken, expected=3, policy=Policy())
    missing = "1 of 3 shards is missing: rerun its job"
    reasons = (missing, f"the run of shard1 was {status}: the key was refused")
    assert (results.gate.exit_code, results.gate.reasons) == (3, reasons)
    assert results.run.status == ("interrupted" if status == "interrupted" else "stopped")


def skipped(name):
    suite = suite_of(name, a_test(name, (), not_run=1))
    return run(suite, id=name, status="skipped", stopped_because="a fork's pull request has no secrets")


def test_merged_run_is_skipped_only_if_all_shards_are_skipped():
    results = concluded(skipped("a"), skipped("b"), expected=2)
    assert (results.run.status, results.gate.passed, results.gate.exit_code) == ("skipped", False, 0)
    assert results.run.stopped_because == "a fork's pull request has no secrets"
    assert (results.counts.not_run, concluded(skipped("a"), expected=2).gate.exit_code) == (2, 3)


def test_merged_results_can_be_merged_again_with_missing_shards_kept():
    a, b, c = (run(suite_of(name), id=name) for name in "abc")
    inner = concluded(a, b, expected=2)
    assert concluded(inner, c).suites == concluded(a, b, c).suites
    lacking = concluded(a, b, expected=3)
    assert concluded(lacking, c).gate.exit_code == 3


def test_gate_decides_on_merged_run_and_compares_no_shard():
    failing = build.finding("failed")
    low = run(suite_of("a", a_test("1", (build.trial_result(findings=(build.finding(), failing)),))), id="1")
    low = replace(low, gate=build.decision(passed=False, exit_code=1))
    high = run(suite_of("b", a_test("2")), id="2")
    assert concluded(low, high, policy=Policy(min_score=75)).gate.exit_code == 0
    assert concluded(low, high, policy=Policy(min_score=76)).gate.exit_code == 1
    part = run(suite_of("a", a_test("1")), shard=build.shard(1, 2))
    whole = run(suite_of("a", a_test("1"), a_test("2")))
    policy = Policy(max_drop=1, max_drops=DROPS, regression=Regression.ANY)
    results = conclude(scorecard_of_results(part), part.run, policy, RunEnding(), BaselineResults(whole))
    assert results.comparison is None
    fields = {check.name: check.note for check in results.gate.checks if check.note}
    assert set(fields) == {"max-drop", "max-drop suite:a", "regression"}
    assert set(fields.values()) == {"of shards the comparison is made by merge"}
    assert results.gate.passed


def shard(index, of=3, *, tests=None, names=None, file="evals/refunds.json", **fields) -> Results:
    """A shard with one test, or those that are named, of a suite."""
    names = names or [f"test {index}"]
    suite = build.suite_result("Refunds", *map(build.test_result, names), file=file)
    fields = {"suites": ("evals/refunds.json",)} | fields
    part = build.shard(index, of, tests=tests or (index,), **fields)
    return build.results(suite, run=build.run_info(id=f"run {index}", shard=part))


def test_complete_shards_merge_and_expected_number_must_match():
    results = concluded(shard(2), shard(3), shard(1), policy=Policy())
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
    results = concluded(*(shard(index, of, suites=suites) for index in present), policy=Policy())
    assert (results.gate.exit_code, results.gate.reasons) == (3, (reason,))
    assert results.run.stopped_because == reason
    notes = ("All numbers cover only the shards that are here.", "No results of evals/orders.json are here.")
    assert results.run.warnings[:2] == notes


def test_interrupted_shard_of_a_plan_leaves_no_verdict():
    cut = shard(2, 2)
    results = concluded(
        shard(1, 2), replace(cut, run=replace(cut.run, status="interrupted")), policy=Policy()
    )
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
