"""The keys `personas` and `personaMatrix` of a suite, and the suites of docs/personas.md."""

import json

import pytest
from doc_pages import blocks, code, page, table
from each_row import each_row
from jsonschema import Draft202012Validator
from refund_suites import chosen, digests, refund_test

from ci_evals.domain.errors import SuiteError
from ci_evals.extensions.personas.traits import TRAITS
from ci_evals.extensions.validate.quality import weaknesses
from ci_evals.gate.selectors import SelectorKind, read_thresholds
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import LoadedSuite, load
from ci_evals.planning.selection import Selection, plan
from ci_evals.planning.suite_keys import schema_with_added_keys
from ci_evals.planning.workload import of_plan

RUDE = {"traits": ["hostile"], "note": "A lawyer."}
PERSONAS = {"rushed": {"traits": ["impatient", "terse"]}, "rude": RUDE}


def auto_test(name: str = "Refund", **fields) -> dict:
    return refund_test(name, **{"turns": [{"user": "auto"}]} | fields)


def suite_of(*tests: dict, **fields) -> dict:
    return {"name": "Shop", "adapter": "python:shop:agent", "personas": PERSONAS, "tests": [*tests]} | fields


def read(suite: dict) -> LoadedSuite:
    return load(json.dumps(suite, indent=1), "shop.json", Reading())


def names(suite: dict) -> list[str]:
    return [test.name for test in read(suite).suite.tests]


def problems(suite: dict) -> list[str]:
    with pytest.raises(SuiteError) as refused:
        read(suite)
    return [f"{problem.path}: {problem.message}" for problem in refused.value.problems]


def digests_of(suite: dict, **environ: str) -> dict[str, str]:
    return digests(load(json.dumps(suite), "shop.json", Reading(environ)))


def test_personas_and_matrix_add_tests_that_name_or_tag_selects():
    suite = suite_of(auto_test(personas=["rushed", "rude"]), auto_test("Other"))
    assert names(suite) == ["Refund", "Refund (rushed)", "Refund (rude)", "Other"]
    suite = suite_of(auto_test(personas=["rude"]), auto_test("Other"), personaMatrix=True)
    refund, other = (f"{name} (rushed)" for name in ("Refund", "Other"))
    assert names(suite) == ["Refund", "Refund (rude)", refund, "Other", other, "Other (rude)"]
    loaded = read(suite_of(auto_test(), auto_test("Other"), personaMatrix=True))
    assert chosen(loaded, "Refund (rude)") == ["Refund (rude)"]
    assert chosen(loaded, "Refund") == ["Refund"]
    assert chosen(loaded, tags="persona:rude") == ["Refund (rude)", "Other (rude)"]


def test_persona_sets_guidelines_language_cluster_tag_and_audit():
    plain, rushed, rude = read(suite_of(auto_test(personas=["rushed", "rude"]))).suite.tests
    assert plain.guidelines == "You want a refund."
    assert rushed.guidelines.startswith("You want a refund.\n\nHow you act")
    for name, trait in TRAITS.items():
        assert (trait.prompt in rushed.guidelines) is (name in {"impatient", "terse"})
    assert rude.guidelines.endswith("\n\nA lawyer.")
    tests = read(suite_of(auto_test(personas=["rude"], tags=["money"]), auto_test("Other"))).suite.tests
    assert [test.cluster for test in tests] == ["Shop: Refund", "Shop: Refund", None]
    assert [test.tags for test in tests] == [("money",), ("money", "persona:rude"), ()]
    tests = read(suite_of(auto_test(personas=["rude"], cluster="money"))).suite.tests
    assert {test.cluster for test in tests} == {"money"}
    loaded = read(suite_of(auto_test(personas=["rushed", "rude"])))
    assert [test.audit_user for test in loaded.suite.tests] == [False, False, True]
    assert of_plan(plan([loaded], Selection(), 3)).wanted_auditor_calls == 3
    suite = suite_of(auto_test(personas=["hans"]), personas={"hans": {"language": "de"}})
    _, german = read(suite).suite.tests
    assert 'in the language with the code "de"' in german.guidelines
    assert german.tags == ("persona:hans", "language:de")
    with_canary = auto_test(canaries={"code": "code"}, userInfo={"code": "{{canary.code}}"})
    assert names(suite_of(with_canary, **SPY)) == ["Refund", "Refund (spy)"]


def test_persona_and_secret_change_only_the_digests_of_their_tests():
    before = digests_of(suite_of(auto_test(personas=["rushed", "rude"])))
    changed = PERSONAS | {"rude": {"traits": ["hostile"]}}
    after = digests_of(suite_of(auto_test(personas=["rushed", "rude"]), personas=changed))
    assert {name for name in before if before[name] != after[name]} == {"Refund (rude)"}
    assert digests_of(suite_of(auto_test()))["Refund"] == before["Refund"]
    both = [(name, {"code": f"${{{name}}}"}) for name in ("ONE", "TWO")]
    suites = {
        name: suite_of(auto_test(userInfo=info, personas=["rude"]), auto_test("Other")) for name, info in both
    }
    one, two = (digests_of(suite, **{name: "secret-12345"}) for name, suite in suites.items())
    assert {name for name in one if one[name] != two[name]} == {"Refund", "Refund (rude)"}


SPY = {"personas": {"spy": {"note": "You know the code {{canary.code}}."}}, "personaMatrix": True}
TYPO = {"personas": {"rushed": {"traits": ["impatint"]}}}
NO_TRAIT, EMPTY = {"personas": {"rude": {"trait": []}}}, {"personas": {"a": {}}}
NOBODY = {"personas": {}, "personaMatrix": True}
OF_TEST = "tests[0].personas"
MANY = {f"p{number}": {"traits": ["terse"]} for number in range(101)}
NO_CODE = "is not the code of a language, such as de or pt-BR"
WRONG_CODES = ("German", "d", "de_AT", "")


@each_row(
    ("test", "suite", "problem"),
    [
        ({}, TYPO, "personas.rushed.traits[0]: 'impatint' is not a trait; did you mean 'impatient'?"),
        (
            {"personas": ["rushd"]},
            {},
            f"{OF_TEST}[0]: 'rushd' is not a persona of this suite; did you mean 'rushed'?",
        ),
        ({"persona": ["rude"]}, {}, "tests[0].persona: unknown key; did you mean 'personas'?"),
        ({}, {"personasMatrix": True}, "personasMatrix: unknown key; did you mean 'personaMatrix'?"),
        ({}, NO_TRAIT, "personas.rude.trait: unknown key; did you mean 'traits'?"),
        ({}, EMPTY, "personas.a: has no 'traits', no 'language' and no 'note', so it would change nothing"),
        ({}, NOBODY, "personaMatrix: needs 'personas', which this suite does not have"),
        ({}, SPY, "personas.spy.note: refers to the canary 'code', which 'Refund' does not have"),
        ({}, {"personas": MANY}, "personas: may have at most 100 items"),
        ({"personas": [*MANY]}, {}, "tests[0].personas: may have at most 100 items"),
        ({}, {"personas": {"a": {"traits": ["terse"] * 9}}}, "personas.a.traits: may have at most 8 items"),
        *(
            ({}, {"personas": {"a": {"language": code}}}, f"personas.a.language: {code!r} {NO_CODE}")
            for code in WRONG_CODES
        ),
    ],
)
def test_invalid_persona_or_key_is_refused_with_its_place(test, suite, problem):
    assert problems(suite_of(auto_test(**test), **suite)) == [problem]


def test_test_named_like_a_persona_variant_is_refused():
    (problem,) = problems(suite_of(auto_test(personas=["rude"]), auto_test("Refund (rude)")))
    assert problem.startswith(
        "tests[1].name: 'Refund (rude)' is the name of 'Refund' with the persona 'rude'; "
    )


@each_row(
    "name", ["a (b)", "", "a, b", " rude", "rude ", "a\x1b[31m", "a\u202eb", "a\u2028b", "a,b", "x" * 41]
)
def test_persona_name_that_options_or_reports_cannot_show_is_refused(name):
    (problem,) = problems(suite_of(auto_test(), personas={name: {"traits": ["terse"]}}, personaMatrix=True))
    assert "cannot be a persona's name: use up to 40 characters" in problem


def test_persona_on_fixed_messages_is_refused_or_skipped():
    fixed = auto_test(turns=[{"user": "hi"}], maxTurns=1)
    (problem,) = problems(suite_of(fixed | {"personas": ["rude"]}))
    assert problem.startswith("tests[0].personas: all messages of this test are fixed, so a persona would ")
    loaded = read(suite_of(fixed, auto_test("Other"), personaMatrix=True))
    assert [test.name for test in loaded.suite.tests] == ["Refund", "Other", "Other (rushed)", "Other (rude)"]
    assert "It is played without personas." in str(loaded.warnings[0])
    fixed = auto_test(turns=[{"user": "Hello"}, {"user": "auto"}])
    personas = {"hans": {"language": "de"}, "rushed": {"traits": ["terse"]}}
    (problem,) = problems(suite_of(fixed | {"personas": ["hans"]}, personas=personas))
    reason = "has fixed lines, which 'hans' would not say in the language de"
    assert problem.startswith(f"tests[0].personas[0]: {reason}")
    loaded = read(suite_of(fixed, personas=personas, personaMatrix=True))
    assert [test.name for test in loaded.suite.tests] == ["Refund", "Refund (rushed)"]
    assert "It is played without this persona." in str(loaded.warnings[0])


def test_problem_of_a_persona_points_to_its_line_and_column():
    suite = suite_of(auto_test(personas=["rushd"]))
    with pytest.raises(SuiteError) as refused:
        read(suite)
    (problem,) = refused.value.problems
    line = json.dumps(suite, indent=1).splitlines()[problem.line - 1]
    assert line[problem.column - 1 :] == '"rushd"'


def test_unused_persona_causes_warning():
    (warning,) = read(suite_of(auto_test(personas=["rude"]))).warnings
    assert "no test is played with this persona" in str(warning)


def test_persona_variants_have_the_line_of_the_written_test():
    loaded = read(suite_of(auto_test("First"), auto_test(personas=["rude"])))
    assert loaded.test_lines[1] == loaded.test_lines[2] != loaded.test_lines[0]
    at = [loaded.document.problem(("tests", index, "name"), "").line for index in (1, 2)]
    assert at[0] == at[1]


@each_row("tag", ["persona:rude", "persona:other", "language:de", "persona:"])
@each_row("fields", [{"personas": ["rude"]}, {}])
def test_reserved_tag_prefix_is_refused(fields, tag):
    """Scores and floors would count the test as it is written among those of the persona."""
    tests = [auto_test(personas=["rude", "rushed"]), auto_test("Other", tags=["money", tag], **fields)]
    message = f"{tag!r} is a tag of tests with personas or languages"
    assert problems(suite_of(*tests)) == [f"tests[1].tags[1]: {message}; use another"]
    suite = suite_of(auto_test(cluster="orders", tags=[tag]))
    del suite["personas"]
    (problem,) = problems(suite)
    assert problem.startswith(f"tests[0].tags[0]: {message}")


def test_editor_schema_has_personas():
    schema = Draft202012Validator(schema_with_added_keys())
    assert schema.is_valid(suite_of(auto_test(personas=["rude"]), personaMatrix=True))
    assert not schema.is_valid(suite_of(auto_test(), personas={"rude": {"traits": ["impatint"]}}))
    assert not schema.is_valid(suite_of(auto_test(personas="rude")))


PAGE = page("personas.md")


def test_docs_name_traits_threshold_and_the_tests_that_their_suite_runs():
    example, *_ = blocks("yaml", PAGE)
    loaded = load(example, "shop.yaml", Reading())
    assert [str(problem) for problem in weaknesses(loaded)] == []
    (planned,) = plan([loaded], Selection(), 1).suites
    names = ["Refund", "Refund (rushed)", "Refund (fraudster)", "Address", "Address (careless)"]
    assert [test.name for test in planned.tests] == names
    titles = {code(name): title for name, title in table("trait", PAGE)}
    assert titles == {trait.name: trait.title for trait in TRAITS.values()}
    assert "--thresholds=tag:persona:fraudster=100" in PAGE
    (limit,) = read_thresholds("tag:persona:fraudster=100")
    result = (limit.selector.kind, limit.selector.name, limit.limit)
    assert result == (SelectorKind.TAG, "persona:fraudster", 100)


def test_docs_suite_with_languages_reads_its_lock_file():
    _, example, lock = blocks("yaml", PAGE)
    reading = Reading(read_beside={"shop.lock.yaml": lock}.__getitem__)
    loaded = load(example, "shop.yaml", reading)
    assert [str(problem) for problem in (*weaknesses(loaded), *loaded.warnings)] == []
    tests = loaded.suite.tests
    names = ["Refund", "Refund (de)", "Refund (pt-BR)", "Address of somebody else"]
    assert [test.name for test in tests] == names
    for test, words in zip(tests[1:3], ("kaputt", "quebrado"), strict=True):
        assert words in test.turns[0].user
        assert test.tags == ("orders", test.name.replace("Refund (", "language:").rstrip(")"))
    # The page: three personas and two languages play each test six times.
    personas = "personaMatrix: true\npersonas: {a: {traits: [terse]}, b: {traits: [typos]}, c: {note: x}}\n"
    tests = load(personas + example, "shop.yaml", reading).suite.tests
    assert len([test for test in tests if test.name.startswith("Refund")]) == 6
