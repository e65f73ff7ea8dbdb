"""Where suites and gate require less than in the baseline, seen in what runs record of them."""

from dataclasses import replace
from datetime import UTC, datetime

import builders as build
import pytest
from each_row import each_row
from pydantic.alias_generators import to_camel

from ci_evals import load_suite, run_suite
from ci_evals.domain.choices import Regression, WeakenedMode
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.weakened import Approval, Weakened, Weakening, WeakeningKind
from ci_evals.domain.run_ending import RunEnding
from ci_evals.gate.checks import checks_of
from ci_evals.gate.decision import decide
from ci_evals.gate.gate_input import GateInput
from ci_evals.gate.policy import Policy
from ci_evals.gate.weakened import compare
from ci_evals.job.conclude import BaselineResults, weakened_since
from ci_evals.planning.selection import Selection, plan
from ci_evals.reports.story import weakened as story
from ci_evals.support import dataclass_json

SILENT = {"criterion": "no hand-over", "strict": "not_escalated"}
SAYS_DONE = {"criterion": "says so", "strict": "contains", "text": "done"}
FRIENDLY, NAMES = {"criterion": "friendly"}, ("a", "friendly")
FAIL = WeakenedMode.FAIL


def a_test(subject, *evaluations, **fields):
    defaults = {"name": subject, "guidelines": "g", "turns": [{"user": f"about {subject}"}]}
    return defaults | {"evaluations": list(evaluations or (SAYS_DONE,))} | fields


def a_suite(*tests, name="Shop", file=None, **fields):
    loaded = load_suite({"name": name, "tests": list(tests), "maxTurns": 1, **fields})
    return replace(loaded, file=file or f"{name}.yaml")


def run_of(*suites, selection=None, policy=None):
    """A run of these suites, of which nothing was played: what it records of them is all that matters."""
    definitions = plan(suites, selection or Selection(), 1).definitions if suites else None
    config = {to_camel(name): limit for name, limit in (policy or Policy()).recorded().items()}
    return build.results(run=build.run_info(definitions=definitions, config=config))


def weakenings(base, head):
    """Each way in which the run requires less: kind, test or suite, criterion or option, and both values."""
    compared = compare(run_of(*head), run_of(*base), Policy())
    assert compared.unknown is None
    return [(it.kind, it.test or it.suite, it.criterion, it.before, it.now) for it in compared.items]


def gone(kind, name, criterion=None):
    return (kind, name, criterion, None, None)


A, B = a_test("a"), a_test("b")
QUARANTINE = {"quarantine": {"reason": "flaky", "until": "2999-01-01"}}


def test_removed_reworded_or_lighter_criteria_are_listed():
    """The words of a judged criterion are what is asked; those of a strict check are only its name."""
    heavy = FRIENDLY | {"weight": 2}
    removed, lighter = gone("criterion_removed", *NAMES), ("weight_lowered", *NAMES, "2", "1")
    base = [a_suite(a_test("a", SILENT, SAYS_DONE, heavy))]
    for criteria, expected in [
        ([SILENT, SAYS_DONE], [removed]),
        ([SILENT, SAYS_DONE, FRIENDLY | {"criterion": "rather friendly", "weight": 2}], [removed]),
        ([SILENT, SAYS_DONE, FRIENDLY], [lighter]),
        ([SILENT, SAYS_DONE | {"criterion": "claims it"}, heavy], []),
        ([SILENT, SAYS_DONE | {"text": "d"}, heavy], [gone("criterion_removed", "a", "says so")]),
    ]:
        assert weakenings(base, [a_suite(a_test("a", *criteria))]) == expected
    # Of two that are alike, the one that is left is the heavier one.
    base = [a_suite(a_test("a", FRIENDLY, heavy))]
    assert weakenings(base, [a_suite(a_test("a", heavy))]) == [removed]
    assert weakenings(base, [a_suite(a_test("a", FRIENDLY))]) == [lighter, removed]


def test_renamed_test_is_compared_and_not_listed_as_removed():
    """It has the same turns and evaluations. One test is the counterpart of one other alone."""
    renamed, copy = A | {"name": "z"}, A | {"name": "copy"}
    for base, head, expected in [
        ([A, B], [renamed, B], []),
        ([A | {"critical": True}, B], [renamed, B], [gone("test_not_critical", "a")]),
        ([A, copy, B], [renamed, B], [gone("test_removed", "copy")]),
        ([A, B], [a_test("z"), B], [gone("test_removed", "a")]),
        ([A, copy], [copy], [gone("test_removed", "a")]),
    ]:
        assert weakenings([a_suite(*base)], [a_suite(*head)]) == expected


def test_removed_suite_is_listed_once_but_no_renamed_moved_or_split_suite():
    base = [a_suite(A, B, minScore=90)]
    for head in (
        [a_suite(A, B, name="Store", file="Shop.yaml", minScore=90)],
        [a_suite(A, B, file="other/Shop.yaml", minScore=90)],
        [a_suite(A, B, name="Store", file="store.yaml", minScore=90)],
        [a_suite(A, name="One", minScore=90), a_suite(B, name="Two", minScore=95)],
    ):
        assert weakenings(base, head) == []
    lower = [a_suite(A, name="One", minScore=90), a_suite(B, name="Two", minScore=70)]
    assert weakenings(base, lower) == [("min_score_lowered", "Shop", None, "90", "70")]
    # Not all tests of a removed suite are listed. Suites of one name are told apart by files, or by order.
    tax = a_suite(a_test("c"), name="Tax")
    assert weakenings([a_suite(A, B), tax], [a_suite(A, B)]) == [gone("suite_removed", "Tax")]
    one, two = a_suite(A, file="1.yaml"), a_suite(A, B, file="2.yaml")
    assert weakenings([one, two], [two, one]) == []
    assert weakenings([one, two], [one, a_suite(A, file="2.yaml")]) == [gone("test_removed", "b")]
    assert weakenings([one, one], [one, one]) == []
    assert weakenings([one, one], [one]) == [gone("suite_removed", "Shop")]
    head = run_of(a_suite(A, B), selection=Selection(names=("a",)))
    assert compare(head, run_of(a_suite(A, B)), Policy()).items == ()


def test_loosened_gate_limit_is_listed_as_weakening():
    """By what the baseline has recorded."""
    for before, now, option in (
        ({"min_score": 85}, {"min_score": 80}, ("min-score", "85", "80")),
        ({"max_drop": "2"}, {"max_drop": "5"}, ("max-drop", "2", "5")),
        ({"max_drop": "2"}, {}, ("max-drop", "2", None)),
        ({"max_errors": 0}, {"max_errors": 3}, ("max-errors", "0", "3")),
        ({"regression": Regression.ANY}, {}, ("regression", "any", "off")),
        ({"weakened": WeakenedMode.FAIL}, {}, ("weakened", "fail", "warn")),
        ({"thresholds": "tag:x=90"}, {"thresholds": "tag:x=80"}, ("thresholds tag:x", "90", "80")),
        ({"thresholds": "tag:x=90"}, {"thresholds": "tag:y=90"}, ("thresholds tag:x", "90", None)),
        ({"max_drop": "suite:Shop=3"}, {"max_drop": "suite:Shop=4"}, ("max-drop suite:Shop", "3", "4")),
    ):
        strict, loose = Policy.from_options(before), Policy.from_options(now)
        suite = a_suite(A)
        items = compare(run_of(suite), run_of(suite, policy=strict), loose).items
        (item,) = items
        assert (item.kind, item.option, item.before, item.now) == ("limit_loosened", *option)
        assert compare(run_of(suite), run_of(suite, policy=strict), strict).items == ()


def test_test_that_leaves_a_limit_by_its_tag_name_or_suite_is_listed():
    """Its tag or name would guard it no longer. Tags without a limit may come and go; a limit of one suite or
    test goes with what it guarded, not with the name."""
    for limit in ({"thresholds": "tag:safety=100"}, {"max_drop": "tag:safety=0"}):
        policy = Policy.from_options(limit)
        base = run_of(a_suite(a_test("a", tags=["safety", "slow"])), policy=policy)
        (item,) = compare(run_of(a_suite(a_test("a"))), base, policy).items
        assert (item.kind, item.test, item.option) == ("test_left_part", "a", "tag:safety")
        assert compare(run_of(a_suite(a_test("a", tags=["safety"]))), base, policy).items == ()
    for limit, head in (
        ("suite:Shop", [a_suite(B), a_suite(A, name="Other")]),
        ("test:a", [a_suite(A | {"name": "c"}, B | {"name": "a"}), a_suite(B, name="Other")]),
        ("test:a", [a_suite(A | {"name": "c"}, B), a_suite(a_test("d", name="a"), name="Other")]),
    ):
        policy = Policy.from_options({"thresholds": f"{limit}=95"})
        base = run_of(a_suite(A, B), policy=policy)
        (item,) = compare(run_of(*head), base, policy).items
        assert (item.kind, item.test, item.option) == ("test_left_part", "a", limit)
        assert compare(run_of(a_suite(A, B)), base, policy).items == ()


PATHS = ["agent.py", "prompts/**"]


def test_relaxed_settings_and_fewer_paths_of_a_test_are_listed():
    """By its own keys; the other way round it requires more. Paths are its own, or those of its suite."""
    for before, now, kind, values in (
        ({"critical": True}, {}, "test_not_critical", (None, None)),
        ({}, {"mayEscalate": True}, "test_may_escalate", (None, None)),
        ({}, QUARANTINE, "test_quarantined", (None, None)),
        ({"minScore": 90}, {"minScore": 80.5}, "min_score_lowered", ("90", "80.5")),
        ({"minScore": 90}, {}, "min_score_lowered", ("90", None)),
    ):
        weak, strong = a_suite(a_test("a", **now)), a_suite(a_test("a", **before))
        assert weakenings([strong], [weak]) == [(kind, "a", None, *values)]
        assert weakenings([weak], [strong]) == []
        assert weakenings([strong], [strong]) == []
    for before, now, narrowed in (
        *[(None, PATHS, True), (PATHS, PATHS[1:], True), (PATHS, ["agent.md", *PATHS[1:]], True)],
        *[(PATHS, PATHS[::-1], False), (PATHS, ["more", *PATHS], False), (PATHS, None, False)],
    ):
        whens = [{"when": {"paths": paths}} if paths else {} for paths in (before, now)]
        expected = [gone("test_when_narrowed", "a")] if narrowed else []
        for suites in ([[a_suite(A, **when)] for when in whens], [[a_suite(A | when)] for when in whens]):
            assert weakenings(*suites) == expected


def test_saved_runs_are_compared_by_their_recorded_limits():
    """`compare` has a gate of its own, which was neither run's."""
    base, lower = (run_of(a_suite(A), policy=Policy(min_score=score)) for score in (90, 70))
    items = compare(lower, base, Policy(), saved=True).items
    assert [(item.option, item.before, item.now) for item in items] == [("min-score", "90", "70")]
    assert compare(base, base, Policy(), saved=True).items == ()
    unknown = replace(lower, run=replace(lower.run, config={}))
    assert "this run does not record its min-score" in compare(unknown, base, Policy(), saved=True).unknown
    # It plays the suites of this run.
    base, head = run_of(a_suite(A, B)), run_of(a_suite(A))
    arms = (build.arm("base", head), build.arm("head", head, gated=True))
    head = replace(head, suites=base.suites, arms=arms)
    assert head.base_side is not None
    assert weakened_since(head, Policy(), BaselineResults()) is None
    assert len(weakened_since(head, Policy(), BaselineResults(base)).items) == 1


TEST = {"suite": "S", "test": "t"}
CRITERION = TEST | {"criterion": "c"}
TRAITS = TEST | {"before": "hostile, terse", "now": "terse"}
LIGHTER = CRITERION | {"before": "2", "now": "1"}
LOWER, LIMIT = {"suite": "S", "before": "90"}, {"option": "max-drop", "before": "2", "now": "5"}
T = "“t” of the suite “S”"


@each_row(("kind", "fields", "sentence"), [
    ("suite_removed", {"suite": "S"}, "Gone: the suite “S”."),
    ("test_removed", TEST, f"Gone: {T}."),
    ("criterion_removed", CRITERION, f"Gone: “c” in {T}."),
    ("test_quarantined", TEST, f"In quarantine: {T}."),
    ("test_not_critical", TEST, f"No longer critical: {T}."),
    ("test_may_escalate", TEST, f"Allows a hand-over (mayEscalate): {T}."),
    ("test_when_narrowed", TEST, f"Depends on fewer paths (when): {T}."),
    ("test_lost_trait", TRAITS, f"Traits of the user of {T}: hostile, terse before, terse now."),
    ("test_left_part", TEST | {"option": "tag:x"}, f"No longer in tag:x: {T}."),
    ("weight_lowered", LIGHTER, f"Weight of “c” in {T}: 2 before, 1 now."),
    ("min_score_lowered", LOWER, "minScore of the suite “S”: 90 before, none now."),
    ("limit_loosened", LIMIT, "max-drop: 2 before, 5 now."),
])  # fmt: skip
def test_each_kind_of_weakening_has_a_sentence(kind, fields, sentence):
    """Below one that says how many there are."""
    item = Weakening(kind=WeakeningKind(kind), **fields)
    section = story.of_run(build.results(weakened=Weakened(branch="main", items=(item, item), code="c")))
    assert section.heading.startswith("2 ")
    assert section.items == (sentence, sentence)


def test_list_of_weakenings_is_limited_to_twenty():
    kind = WeakeningKind.TEST_REMOVED
    items = tuple(Weakening(kind=kind, suite="S", test=str(number)) for number in range(30))
    section = story.of_run(build.results(weakened=Weakened(branch="main", items=items, code="c")))
    assert section.heading == "30 tests of main are gone."
    assert (len(section.items), section.items[-1]) == (21, "10 more are in `weakened` of _results.json.")


NOW = datetime(2026, 11, 28, tzinfo=UTC)


def test_approval_applies_only_to_weakenings_with_same_code():
    base, head, worse = (run_of(a_suite(*tests)) for tests in ((A, B, a_test("c")), (A, B), (A,)))
    code = compare(head, base, Policy()).code
    approvals = [Approval(by="ann", at=NOW, code=code)]
    assert compare(head, base, Policy(), approvals).approval == approvals[0]
    assert compare(worse, base, Policy(), approvals).approval is None
    assert compare(base, base, Policy(), approvals).approval is None


SORRY, BYE = (SAYS_DONE | {"text": text} for text in ("sorry", "bye"))
RUDE = FRIENDLY | {"criterion": "rude"}


@pytest.mark.parametrize(("base", "one", "other"), [
    pytest.param([SILENT, FRIENDLY], [SILENT], [SILENT, RUDE], id="reworded"),
    pytest.param([SORRY, BYE], [SORRY], [BYE], id="same words"),
    pytest.param([SORRY, FRIENDLY], [FRIENDLY], [FRIENDLY, BYE], id="another check"),
    pytest.param(None, [], [a_test("z")], id="replaced test"),
])  # fmt: skip
def test_approval_code_depends_on_replacement_of_removed_requirement(base, one, other):
    """The list is the same, whichever criterion or test is gone and whatever replaces it."""
    if base is None:
        tests = [[A, B], [A, *one], [A, *other]]
    else:
        tests = [[a_test("a", *criteria)] for criteria in (base, one, other)]
    base, one, other = (run_of(a_suite(*listed)) for listed in tests)
    first, second = compare(one, base, Policy()), compare(other, base, Policy())
    assert first.items == second.items
    assert first.code != second.code


def test_approval_code_depends_on_all_requirements_but_not_their_order():
    """The same requirement can be removed twice, with other replacements."""
    base, head, default = [a_suite(A, B)], [a_suite(B)], Policy()
    softer = a_test("b", turns=[{"user": "say done"}])
    codes = [
        compare(run_of(*now), run_of(*before, policy=then), policy).code
        for before, now, then, policy in (
            (base, head, default, default),
            (base, [a_suite(B, a_test("c"))], default, default),
            (base, [a_suite(softer)], default, default),
            ([a_suite(a_test("a", FRIENDLY), B)], head, default, default),
            (base, head, default, Policy(min_score=90)),
            (base, head, Policy(min_score=60), Policy(min_score=90)),
        )
    ]
    assert None not in codes
    assert len(set(codes)) == len(codes)
    assert {len(code) for code in codes} == {40}
    # Shards are merged in another order, and read.
    one, two = a_suite(A, name="One"), a_suite(B, name="Two", minScore=90)
    base, lower = run_of(one, two), a_suite(B, name="Two", minScore=80)
    head = run_of(one, lower)
    code = compare(head, base, Policy()).code
    assert code == compare(run_of(lower, one), run_of(two, one), Policy()).code
    read = [dataclass_json.from_json(Results, dataclass_json.to_json(run)) for run in (head, base)]
    assert code == compare(*read, Policy()).code


async def run_of_tests(*tests, baseline=None, **policy):
    return await run_suite(lambda _: "done", a_suite(*tests), baseline=baseline, policy=Policy(**policy))


async def test_weakened_run_fails_only_in_mode_fail():
    base = await run_of_tests(A, B)
    modes = (WeakenedMode.WARN, FAIL, WeakenedMode.OFF)
    warned, failed, off = [await run_of_tests(A, baseline=base, weakened=mode) for mode in modes]
    assert (warned.gate.exit_code, failed.gate.exit_code, off.gate.exit_code) == (0, 1, 0)
    assert (warned.weakened.items, off.weakened) == (failed.weakened.items, None)
    sentences = ("1 test of the baseline is gone.", "Gone: “b” of the suite “Shop”.")
    assert story.of_run(warned).sentences == sentences
    same = await run_of_tests(A, B, baseline=base, weakened=FAIL)
    assert (same.gate.exit_code, story.of_run(same)) == (0, None)


def weakened_check(checks):
    (check,) = [check for check in checks if check.kind == "weakened"]
    return check


async def test_baseline_without_definitions_leaves_no_verdict_if_weakened_is_fail():
    """A baseline of an earlier version records no definitions. Without any baseline it is not checked."""
    base = await run_of_tests(A)
    old = replace(base, run=replace(base.run, definitions=None))
    unknown = await run_of_tests(A, baseline=old, weakened=FAIL)
    assert (unknown.gate.exit_code, unknown.gate.passed) == (3, False)
    assert "run it again on its branch" in unknown.gate.reasons[0]
    assert (await run_of_tests(A, baseline=old)).gate.exit_code == 0
    check = weakened_check((await run_of_tests(A, weakened=FAIL)).gate.checks)
    assert (check.passed, check.blocks_verdict) == (None, False)
    # A fault of the search for a baseline must not open the gate.
    for may_have, code in ((False, 0), (True, 3)):
        given = GateInput(base, may_have_baseline=may_have, no_baseline_reason="GitHub did not answer")
        assert decide(given, Policy(weakened=FAIL), RunEnding()).exit_code == code


def test_weakening_is_unknown_without_records_and_unchecked_for_other_tools():
    suite, unknown = a_suite(A), run_of()
    base = run_of(suite)
    assert "does not record what its suites" in compare(base, unknown, Policy()).unknown
    why = "this run does not record what its suites require"
    assert compare(unknown, base, Policy()).unknown == why
    without = replace(base, run=replace(base.run, config=base.run.config | {"minScore": None}))
    assert compare(base, without, Policy()).unknown == "the baseline does not record its min-score"
    results = build.results(build.suite_result("S", build.test_result("t"), adapter="results:junit"))
    assert weakened_since(results, Policy(weakened=FAIL), BaselineResults(results)) is None
    check = weakened_check(checks_of(GateInput(results), Policy(weakened=FAIL)))
    assert (check.passed, check.note) == (None, "results of other tools do not say what their tests require")


HOSTILE = {"traits": ["hostile", "terse"], "language": "de"}
HARDER = {"traits": ["impatient", "terse", "hostile"], "language": "de", "note": "Lives in Bonn."}
SAME = object()


def test_persona_that_loses_a_trait_or_language_is_listed():
    """Under its name it may be any user. Other words about it require no less that anybody could say."""
    asked = a_test("a", turns=[{"user": "auto"}], personas=["p"])
    for now, user in (
        *(({"note": "Be nice."}, None), ({"traits": ["terse"], "language": "de"}, "terse, language de")),
        ({"traits": ["hostile", "terse"], "language": "fr"}, "hostile, terse, language fr"),
        *(({"traits": ["hostile", "terse"]}, "hostile, terse"), (HARDER, SAME)),
    ):
        before, after = (a_suite(asked, personas={"p": persona}) for persona in (HOSTILE, now))
        lost = ("test_lost_trait", "a (p)", None, "hostile, terse, language de", user)
        assert weakenings([before], [after]) == ([] if user is SAME else [lost])


def test_removed_language_is_listed_as_removed_tests():
    """Languages of the suite, or of one test."""
    for now in ({"languages": ["de"]}, {"languages": []}):
        test = a_test("a", turns=[{"user": "auto"}])
        before = a_suite(test, languages=["de", "fr"])
        languages = {"de", "fr"} - set(now["languages"])
        removed = [gone("test_removed", f"a ({code})") for code in sorted(languages)]
        assert weakenings([before], [a_suite(test, **now)]) == removed
        assert weakenings([before], [a_suite(test | now, languages=["de", "fr"])]) == removed


def test_old_test_that_joins_a_cluster_with_others_is_listed():
    """A drop of one test is never significant, however many it stands for."""
    together, renamed = ([a_test(name, cluster=cluster) for name in "ab"] for cluster in ("all", "both"))
    joined = [gone("test_joined_cluster", name) for name in "ab"]
    assert weakenings([a_suite(A, B)], [a_suite(*together)]) == joined
    for base, head in [(together, together), (together, [A, B]), (together, renamed)]:
        assert weakenings([a_suite(*base)], [a_suite(*head)]) == []
    assert weakenings([a_suite(A)], [a_suite(a_test("a", cluster="x"), a_test("c", cluster="x"))]) == []
