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
FRIENDLY = {"criterion": "friendly"}
FAIL = WeakenedMode.FAIL


def a_test(subject, *evaluations, **fields):
    evaluations = evaluations or (SAYS_DONE,)
    defaults = {"guidelines": "g", "turns": [{"user": f"about {subject}"}], "evaluations": list(evaluations)}
    return defaults | {"name": subject} | fields


def a_suite(*tests, name="Shop", file=None, **fields):
    loaded = load_suite({"name": name, "tests": list(tests), "maxTurns": 1, **fields})
    return replace(loaded, file=file or f"{name}.yaml")


def run_of(*suites, selection=None, policy=None):
    """A run of these suites, of which nothing was played: what it records of them is all that matters."""
    definitions = plan(suites, selection or Selection(), 1).definitions if suites else None
    config = {to_camel(name): limit for name, limit in (policy or Policy()).recorded().items()}
    return build.results(run=build.run_info(definitions=definitions, config=config))


def found(base, head):
    """What the run requires less: kind, test or suite, criterion or option, and both values."""
    compared = compare(run_of(*head), run_of(*base), Policy())
    assert compared.unknown is None
    return [
        (item.kind, item.test or item.suite, item.criterion, item.before, item.now) for item in compared.items
    ]


A, B = a_test("a"), a_test("b")
QUARANTINE = {"quarantine": {"reason": "flaky", "until": "2999-01-01"}}


def test_the_same_suites_are_not_weakened():
    assert found([a_suite(A, B)], [a_suite(A, B)]) == []


@pytest.mark.parametrize(
    ("before", "now", "kind", "values"),
    [
        ({"critical": True}, {}, "test_not_critical", (None, None)),
        ({}, {"mayEscalate": True}, "test_may_escalate", (None, None)),
        ({}, QUARANTINE, "test_quarantined", (None, None)),
        ({"minScore": 90}, {"minScore": 80.5}, "min_score_lowered", ("90", "80.5")),
        ({"minScore": 90}, {}, "min_score_lowered", ("90", None)),
    ],
)
def test_a_test_that_requires_less(before, now, kind, values):
    """By its own keys; the other way round it requires more."""
    weak, strong = a_suite(a_test("a", **now)), a_suite(a_test("a", **before))
    assert found([strong], [weak]) == [(kind, "a", None, *values)]
    assert found([weak], [strong]) == []


def test_criteria_that_are_gone_reworded_or_lighter():
    """The words of a judged criterion are what is asked; those of a strict check are only its name."""
    heavy = FRIENDLY | {"weight": 2}
    base = [a_suite(a_test("a", SILENT, SAYS_DONE, heavy))]
    gone = ("criterion_removed", "a", "friendly", None, None)
    assert found(base, [a_suite(a_test("a", SILENT, SAYS_DONE))]) == [gone]
    reworded = FRIENDLY | {"criterion": "rather friendly", "weight": 2}
    assert found(base, [a_suite(a_test("a", SILENT, SAYS_DONE, reworded))]) == [gone]
    lighter = [a_suite(a_test("a", SILENT, SAYS_DONE, FRIENDLY))]
    assert found(base, lighter) == [("weight_lowered", "a", "friendly", "2", "1")]
    renamed = SAYS_DONE | {"criterion": "claims it"}
    assert found(base, [a_suite(a_test("a", SILENT, renamed, heavy))]) == []
    looser = SAYS_DONE | {"text": "d"}
    assert found(base, [a_suite(a_test("a", SILENT, looser, heavy))]) == [
        ("criterion_removed", "a", "says so", None, None)
    ]


def test_of_two_criteria_that_are_alike_one_is_gone():
    """The one that is left is the heavier one."""
    light, heavy = FRIENDLY, FRIENDLY | {"weight": 3}
    base = [a_suite(a_test("a", light, heavy))]
    assert found(base, [a_suite(a_test("a", heavy))]) == [("criterion_removed", "a", "friendly", None, None)]
    assert found(base, [a_suite(a_test("a", light))]) == [
        ("weight_lowered", "a", "friendly", "3", "1"),
        ("criterion_removed", "a", "friendly", None, None),
    ]


def test_a_renamed_test_is_the_same_and_may_still_require_less():
    """It has the same turns and evaluations. One test is the counterpart of one other alone."""
    renamed = A | {"name": "z"}
    assert found([a_suite(A, B)], [a_suite(renamed, B)]) == []
    assert found([a_suite(A | {"critical": True}, B)], [a_suite(renamed, B)]) == [
        ("test_not_critical", "a", None, None, None)
    ]
    copy = A | {"name": "copy"}
    assert found([a_suite(A, copy, B)], [a_suite(renamed, B)]) == [("test_removed", "copy", None, None, None)]
    other = a_test("z")
    assert found([a_suite(A, B)], [a_suite(other, B)]) == [("test_removed", "a", None, None, None)]
    assert found([a_suite(A, copy)], [a_suite(copy)]) == [("test_removed", "a", None, None, None)]


def test_a_suite_that_is_renamed_moved_or_split_is_not_gone():
    base = [a_suite(A, B, minScore=90)]
    for head in (
        [a_suite(A, B, name="Store", file="Shop.yaml", minScore=90)],
        [a_suite(A, B, file="other/Shop.yaml", minScore=90)],
        [a_suite(A, B, name="Store", file="store.yaml", minScore=90)],
        [a_suite(A, name="One", minScore=90), a_suite(B, name="Two", minScore=95)],
    ):
        assert found(base, head) == []
    lower = [a_suite(A, name="One", minScore=90), a_suite(B, name="Two", minScore=70)]
    assert found(base, lower) == [("min_score_lowered", "Shop", None, "90", "70")]


def test_a_suite_that_is_gone_is_one_thing():
    """Not all of its tests."""
    base = [a_suite(A, B), a_suite(a_test("c"), name="Tax")]
    assert found(base, [a_suite(A, B)]) == [("suite_removed", "Tax", None, None, None)]


def test_suites_of_one_name_are_told_apart_by_file():
    """Of one name and file by their order."""
    one, two = a_suite(A, file="1.yaml"), a_suite(A, B, file="2.yaml")
    assert found([one, two], [two, one]) == []
    assert found([one, two], [one, a_suite(A, file="2.yaml")]) == [("test_removed", "b", None, None, None)]
    assert found([one, one], [one, one]) == []
    assert found([one, one], [one]) == [("suite_removed", "Shop", None, None, None)]


def test_what_a_run_does_not_select_is_not_weakened():
    head = run_of(a_suite(A, B), selection=Selection(names=("a",)))
    assert compare(head, run_of(a_suite(A, B)), Policy()).items == ()


@each_row(
    ("before", "now", "option"),
    [
        ({"min_score": 85}, {"min_score": 80}, ("min-score", "85", "80")),
        ({"max_drop": "2"}, {"max_drop": "5"}, ("max-drop", "2", "5")),
        ({"max_drop": "2"}, {}, ("max-drop", "2", None)),
        ({"max_errors": 0}, {"max_errors": 3}, ("max-errors", "0", "3")),
        ({"regression": Regression.ANY}, {}, ("regression", "any", "off")),
        ({"weakened": WeakenedMode.FAIL}, {}, ("weakened", "fail", "warn")),
        ({"thresholds": "tag:x=90"}, {"thresholds": "tag:x=80"}, ("thresholds tag:x", "90", "80")),
        ({"thresholds": "tag:x=90"}, {"thresholds": "tag:y=90"}, ("thresholds tag:x", "90", None)),
        ({"max_drop": "suite:Shop=3"}, {"max_drop": "suite:Shop=4"}, ("max-drop suite:Shop", "3", "4")),
    ],
)
def test_looser_limits_count_too(before, now, option):
    """By what the baseline has recorded. Limits that another one has too are no less."""
    strict, loose = Policy.from_options(before), Policy.from_options(now)
    suite = a_suite(A)
    items = compare(run_of(suite), run_of(suite, policy=strict), loose).items
    assert [(item.kind, item.option, item.before, item.now) for item in items] == [
        ("limit_loosened", *option)
    ]
    assert compare(run_of(suite), run_of(suite, policy=strict), strict).items == ()


@pytest.mark.parametrize("limit", [{"thresholds": "tag:safety=100"}, {"max_drop": "tag:safety=0"}])
def test_a_test_does_not_leave_a_part_with_its_own_limit_unseen(limit):
    """Its tag would guard it no longer. Tags without a limit may come and go."""
    policy = Policy.from_options(limit)
    base = run_of(a_suite(a_test("a", tags=["safety", "slow"])), policy=policy)
    (item,) = compare(run_of(a_suite(a_test("a"))), base, policy).items
    assert (item.kind, item.test, item.option) == ("test_left_part", "a", "tag:safety")
    assert compare(run_of(a_suite(a_test("a", tags=["safety"]))), base, policy).items == ()


@pytest.mark.parametrize(
    ("limit", "head"),
    [
        ("suite:Shop", [a_suite(B), a_suite(A, name="Other")]),
        ("test:a", [a_suite(A | {"name": "c"}, B | {"name": "a"}), a_suite(B, name="Other")]),
        ("test:a", [a_suite(A | {"name": "c"}, B), a_suite(a_test("d", name="a"), name="Other")]),
    ],
)
def test_neither_by_moving_nor_by_taking_a_name(limit, head):
    """A limit of one suite or test goes with what it guarded, not with the name."""
    policy = Policy.from_options({"thresholds": f"{limit}=95"})
    base = run_of(a_suite(A, B), policy=policy)
    (item,) = compare(run_of(*head), base, policy).items
    assert (item.kind, item.test, item.option) == ("test_left_part", "a", limit)
    assert compare(run_of(a_suite(A, B)), base, policy).items == ()


PATHS = ["agent.py", "prompts/**"]


@pytest.mark.parametrize(
    ("before", "now", "narrowed"),
    [
        (None, PATHS, True),
        (PATHS, PATHS[1:], True),
        (PATHS, ["agent.md", *PATHS[1:]], True),
        (PATHS, PATHS[::-1], False),
        (PATHS, ["more", *PATHS], False),
        (PATHS, None, False),
    ],
)
def test_a_test_does_not_depend_on_fewer_paths_unseen(before, now, narrowed):
    """The paths are its own, or those of its suite."""
    for whole in (False, True):

        def suite(paths, whole=whole):
            when = {"when": {"paths": paths}} if paths else {}
            return a_suite(A, **when) if whole else a_suite(A | when)

        expected = [("test_when_narrowed", "a", None, None, None)] if narrowed else []
        assert found([suite(before)], [suite(now)]) == expected


def test_of_saved_runs_both_gates_are_the_recorded_ones():
    """`compare` has a gate of its own, which was neither run's."""
    base, lower = (run_of(a_suite(A), policy=Policy(min_score=score)) for score in (90, 70))
    items = compare(lower, base, Policy(), saved=True).items
    assert [(item.option, item.before, item.now) for item in items] == [("min-score", "90", "70")]
    assert compare(base, base, Policy(), saved=True).items == ()
    unknown = replace(lower, run=replace(lower.run, config={}))
    assert "this run does not record its min-score" in compare(unknown, base, Policy(), saved=True).unknown


def test_the_base_agent_is_no_baseline_for_that():
    """It plays the suites of this run."""
    base, head = run_of(a_suite(A, B)), run_of(a_suite(A))
    head = replace(
        head, suites=base.suites, arms=(build.arm("base", head), build.arm("head", head, gated=True))
    )
    assert head.base_side is not None
    assert weakened_since(head, Policy(), BaselineResults()) is None
    assert len(weakened_since(head, Policy(), BaselineResults(base)).items) == 1


IN_TEST = "“t” of the suite “S”"


@each_row(
    ("kind", "fields", "sentence"),
    [
        ("suite_removed", {"suite": "S"}, "Gone: the suite “S”."),
        ("test_removed", {"suite": "S", "test": "t"}, f"Gone: {IN_TEST}."),
        ("criterion_removed", {"suite": "S", "test": "t", "criterion": "c"}, f"Gone: “c” in {IN_TEST}."),
        ("test_quarantined", {"suite": "S", "test": "t"}, f"In quarantine: {IN_TEST}."),
        ("test_not_critical", {"suite": "S", "test": "t"}, f"No longer critical: {IN_TEST}."),
        ("test_may_escalate", {"suite": "S", "test": "t"}, f"Allows a hand-over (mayEscalate): {IN_TEST}."),
        (
            "test_when_narrowed",
            {"suite": "S", "test": "t"},
            f"Depends on fewer paths (when): {IN_TEST}.",
        ),
        (
            "test_lost_trait",
            {"suite": "S", "test": "t", "before": "hostile, terse", "now": "terse"},
            f"Traits of the user of {IN_TEST}: hostile, terse before, terse now.",
        ),
        ("test_left_part", {"suite": "S", "test": "t", "option": "tag:x"}, f"No longer in tag:x: {IN_TEST}."),
        (
            "weight_lowered",
            {"suite": "S", "test": "t", "criterion": "c", "before": "2", "now": "1"},
            f"Weight of “c” in {IN_TEST}: 2 before, 1 now.",
        ),
        (
            "min_score_lowered",
            {"suite": "S", "before": "90"},
            "minScore of the suite “S”: 90 before, none now.",
        ),
        ("limit_loosened", {"option": "max-drop", "before": "2", "now": "5"}, "max-drop: 2 before, 5 now."),
    ],
)
def test_each_is_named_in_a_sentence(kind, fields, sentence):
    """Below one that says how many there are."""
    item = Weakening(kind=WeakeningKind(kind), **fields)
    found = story.of_run(build.results(weakened=Weakened(branch="main", items=(item, item), code="c")))
    assert found.heading.startswith("2 ")
    assert found.items == (sentence, sentence)


def test_a_long_list_is_cut_and_says_so():
    items = tuple(
        Weakening(kind=WeakeningKind.TEST_REMOVED, suite="S", test=str(number)) for number in range(30)
    )
    found = story.of_run(build.results(weakened=Weakened(branch="main", items=items, code="c")))
    assert found.heading == "30 tests of main are gone."
    assert (len(found.items), found.items[-1]) == (21, "10 more are in `weakened` of _results.json.")


def test_what_the_baseline_does_not_record_is_not_known():
    """Neither of suites nor of limits, and not what this run does not record."""
    suite, unknown = a_suite(A), run_of()
    assert "does not record what its suites" in compare(run_of(suite), unknown, Policy()).unknown
    assert compare(unknown, run_of(suite), Policy()).unknown == (
        "this run does not record what its suites require"
    )
    base = run_of(suite)
    without = replace(base, run=replace(base.run, config=base.run.config | {"minScore": None}))
    assert compare(run_of(suite), without, Policy()).unknown == "the baseline does not record its min-score"


NOW = datetime(2026, 11, 28, tzinfo=UTC)


def test_an_approval_is_of_exactly_what_its_code_names():
    base, head, worse = (run_of(a_suite(*tests)) for tests in ((A, B, a_test("c")), (A, B), (A,)))
    code = compare(head, base, Policy()).code
    approvals = [Approval(by="ann", at=NOW, code=code)]
    assert compare(head, base, Policy(), approvals).approval == approvals[0]
    assert compare(worse, base, Policy(), approvals).approval is None
    assert compare(base, base, Policy(), approvals).approval is None


SORRY, BYE = (SAYS_DONE | {"text": text} for text in ("sorry", "bye"))


@pytest.mark.parametrize(
    ("base", "one", "other"),
    [
        pytest.param([SILENT, FRIENDLY], [SILENT], [SILENT, FRIENDLY | {"criterion": "rude"}], id="reworded"),
        pytest.param([SORRY, BYE], [SORRY], [BYE], id="same words"),
        pytest.param([SORRY, FRIENDLY], [FRIENDLY], [FRIENDLY, BYE], id="another check"),
    ],
)
def test_a_code_is_of_what_a_test_requires_instead(base, one, other):
    """The list is the same, whichever criterion is gone and whatever replaces it."""
    base, one, other = (run_of(a_suite(a_test("a", *criteria))) for criteria in (base, one, other))
    first, second = compare(one, base, Policy()), compare(other, base, Policy())
    assert first.items == second.items
    assert first.code != second.code


def test_a_test_that_is_replaced_has_another_code_than_one_that_is_gone():
    base, gone, replaced = (run_of(a_suite(*tests)) for tests in ((A, B), (A,), (A, a_test("z"))))
    first, second = compare(gone, base, Policy()), compare(replaced, base, Policy())
    assert first.items == second.items
    assert first.code != second.code


def test_a_code_is_of_all_that_is_required_before_and_now():
    """Of all suites and compared limits of both runs: what was approved may be gone a second time."""
    base, head = [a_suite(A, B)], [a_suite(B)]
    softer = a_test("b", turns=[{"user": "say done"}])
    codes = [
        compare(run_of(*now), run_of(*before, policy=then), policy).code
        for before, now, then, policy in (
            (base, head, Policy(), Policy()),
            (base, [a_suite(B, a_test("c"))], Policy(), Policy()),
            (base, [a_suite(softer)], Policy(), Policy()),
            ([a_suite(a_test("a", FRIENDLY), B)], head, Policy(), Policy()),
            (base, head, Policy(), Policy(min_score=90)),
            (base, head, Policy(min_score=60), Policy(min_score=90)),
        )
    ]
    assert None not in codes
    assert len(set(codes)) == len(codes)
    assert {len(code) for code in codes} == {40}


def test_a_code_does_not_depend_on_the_order_of_suites_nor_on_the_way_through_a_file():
    """Shards are merged in another order, and read."""
    one, two = a_suite(A, name="One"), a_suite(B, name="Two", minScore=90)
    base, lower = run_of(one, two), a_suite(B, name="Two", minScore=80)
    head = run_of(one, lower)
    code = compare(head, base, Policy()).code
    assert code == compare(run_of(lower, one), run_of(two, one), Policy()).code
    read = [dataclass_json.from_json(Results, dataclass_json.to_json(run)) for run in (head, base)]
    assert code == compare(*read, Policy()).code


async def played(*tests, baseline=None, **policy):
    return await run_suite(lambda _: "done", a_suite(*tests), baseline=baseline, policy=Policy(**policy))


async def test_a_run_lists_it_and_fails_by_it_only_if_it_is_asked_to():
    """By default it is a warning."""
    base = await played(A, B)
    warned, failed, off = [
        await played(A, baseline=base, weakened=mode) for mode in (WeakenedMode.WARN, FAIL, WeakenedMode.OFF)
    ]
    assert (warned.gate.exit_code, failed.gate.exit_code, off.gate.exit_code) == (0, 1, 0)
    assert (warned.weakened.items, off.weakened) == (failed.weakened.items, None)
    assert story.of_run(warned).sentences == (
        "1 test of the baseline is gone.",
        "Gone: “b” of the suite “Shop”.",
    )
    same = await played(A, B, baseline=base, weakened=FAIL)
    assert (same.gate.exit_code, story.of_run(same)) == (0, None)


async def test_without_knowing_there_is_no_verdict():
    """A baseline of an earlier version records no definitions. Without any baseline it is not checked."""
    base = await played(A)
    old = replace(base, run=replace(base.run, definitions=None))
    unknown = await played(A, baseline=old, weakened=FAIL)
    assert (unknown.gate.exit_code, unknown.gate.passed) == (3, False)
    assert "run it again on its branch" in unknown.gate.reasons[0]
    assert (await played(A, baseline=old)).gate.exit_code == 0
    (check,) = [c for c in (await played(A, weakened=FAIL)).gate.checks if c.kind == "weakened"]
    assert (check.passed, check.blocks_verdict) == (None, False)


async def test_a_baseline_that_may_have_been_missed_leaves_no_verdict():
    """A fault of the search must not open the gate."""
    results = await played(A)
    for may_have, code in ((False, 0), (True, 3)):
        given = GateInput(results, may_have_baseline=may_have, no_baseline_reason="GitHub did not answer")
        assert decide(given, Policy(weakened=FAIL), RunEnding()).exit_code == code


def test_it_does_not_apply_to_results_of_other_tools():
    """They do not say what their tests require; the check says that."""
    results = build.results(build.suite_result("S", build.test_result("t"), adapter="results:junit"))
    assert weakened_since(results, Policy(weakened=FAIL), BaselineResults(results)) is None
    (check,) = [
        check for check in checks_of(GateInput(results), Policy(weakened=FAIL)) if check.kind == "weakened"
    ]
    assert (check.passed, check.note) == (None, "results of other tools do not say what their tests require")


HOSTILE = {"traits": ["hostile", "terse"], "language": "de"}


@pytest.mark.parametrize(
    ("now", "user"),
    [
        ({"note": "Be nice."}, None),
        ({"traits": ["terse"], "language": "de"}, "terse, language de"),
        ({"traits": ["hostile", "terse"], "language": "fr"}, "hostile, terse, language fr"),
        ({"traits": ["hostile", "terse"]}, "hostile, terse"),
    ],
)
def test_a_persona_does_not_lose_a_trait_unseen(now, user):
    """Under its name it may be any user. The test without it is the same."""
    asked = a_test("a", turns=[{"user": "auto"}], personas=["p"])
    before, after = (a_suite(asked, personas={"p": persona}) for persona in (HOSTILE, now))
    lost = ("test_lost_trait", "a (p)", None, "hostile, terse, language de", user)
    assert found([before], [after]) == [lost]


def test_a_persona_may_get_a_trait():
    """It is a harder user then. Other words about it require no less that anybody could say."""
    asked = a_test("a", turns=[{"user": "auto"}], personas=["p"])
    harder = {"traits": ["impatient", "terse", "hostile"], "language": "de", "note": "Lives in Bonn."}
    before, after = (a_suite(asked, personas={"p": persona}) for persona in (HOSTILE, harder))
    assert found([before], [after]) == []


@pytest.mark.parametrize("now", [{"languages": ["de"]}, {"languages": []}])
def test_language_that_is_removed_is_a_removed_test(now):
    """Of the suite, or of one test."""
    test = a_test("a", turns=[{"user": "auto"}])
    before = a_suite(test, languages=["de", "fr"])
    removed = [
        (WeakeningKind.TEST_REMOVED, f"a ({code})", None, None, None)
        for code in ("de", "fr")
        if code not in now["languages"]
    ]
    assert found([before], [a_suite(test, **now)]) == removed
    assert found([before], [a_suite(test | now, languages=["de", "fr"])]) == removed


def test_tests_that_were_independent_must_not_become_one():
    """A drop of one test is never significant, however many it stands for."""
    together = [a_test(name, cluster="all") for name in "ab"]
    assert found([a_suite(A, B)], [a_suite(*together)]) == [
        (WeakeningKind.TEST_JOINED_CLUSTER, name, None, None, None) for name in "ab"
    ]
    assert found([a_suite(*together)], [a_suite(*together)]) == []
    assert found([a_suite(*together)], [a_suite(A, B)]) == []
    renamed = [a_test(name, cluster="both") for name in "ab"]
    assert found([a_suite(*together)], [a_suite(*renamed)]) == []


def test_a_test_may_be_in_a_cluster_with_new_ones():
    """As a test is that gets personas."""
    assert found([a_suite(A)], [a_suite(a_test("a", cluster="x"), a_test("c", cluster="x"))]) == []
