"""The keys `personas` and `personaMatrix` of a suite."""

import json

import pytest
from jsonschema import Draft202012Validator

from ci_evals.domain.errors import SuiteError
from ci_evals.extensions.personas.traits import TRAITS
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import LoadedSuite, load
from ci_evals.planning.selection import Selection, plan
from ci_evals.planning.suite_keys import schema_with_added_keys
from ci_evals.planning.workload import of_plan

PERSONAS = {
    "rushed": {"traits": ["impatient", "terse"]},
    "rude": {"traits": ["hostile"], "note": "A lawyer."},
}


def a_test(name: str = "Refund", **fields) -> dict:
    return {
        "name": name,
        "guidelines": "You want a refund.",
        "turns": [{"user": "auto"}],
        "evaluations": [{"strict": "not_escalated", "criterion": "No human"}],
    } | fields


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


def digests(suite: dict) -> dict[str, str]:
    (planned,) = plan([read(suite)], Selection(), 1).suites
    return dict(zip([test.name for test in planned.tests], planned.test_digests, strict=True))


def test_each_persona_is_a_test_of_its_own_beside_the_test_as_written():
    suite = suite_of(a_test(personas=["rushed", "rude"]), a_test("Other"))
    assert names(suite) == ["Refund", "Refund (rushed)", "Refund (rude)", "Other"]


def test_matrix_plays_each_test_with_each_persona_once():
    suite = suite_of(a_test(personas=["rude"]), a_test("Other"), personaMatrix=True)
    assert names(suite) == [
        *("Refund", "Refund (rude)", "Refund (rushed)"),
        *("Other", "Other (rushed)", "Other (rude)"),
    ]


def test_persona_adds_its_traits_and_note_to_the_guidelines():
    plain, rushed, rude = read(suite_of(a_test(personas=["rushed", "rude"]))).suite.tests
    assert plain.guidelines == "You want a refund."
    assert rushed.guidelines.startswith("You want a refund.\n\nHow you act")
    for name, trait in TRAITS.items():
        assert (trait.prompt in rushed.guidelines) is (name in {"impatient", "terse"})
    assert rude.guidelines.endswith("\n\nA lawyer.")


def test_tests_of_one_task_share_cluster_and_name_their_persona_in_a_tag():
    tests = read(suite_of(a_test(personas=["rude"], tags=["money"]), a_test("Other"))).suite.tests
    assert [test.cluster for test in tests] == ["Shop: Refund", "Shop: Refund", None]
    assert [test.tags for test in tests] == [("money",), ("money", "persona:rude"), ()]


def test_cluster_that_the_author_names_stays():
    tests = read(suite_of(a_test(personas=["rude"], cluster="money"))).suite.tests
    assert {test.cluster for test in tests} == {"money"}


def test_only_hostile_personas_are_audited_by_default():
    loaded = read(suite_of(a_test(personas=["rushed", "rude"])))
    assert [test.audit_user for test in loaded.suite.tests] == [False, False, True]
    assert of_plan(plan([loaded], Selection(), 3)).wanted_auditor_calls == 3


def test_persona_changes_the_digest_of_its_own_tests_alone():
    before = digests(suite_of(a_test(personas=["rushed", "rude"])))
    changed = PERSONAS | {"rude": {"traits": ["hostile"]}}
    after = digests(suite_of(a_test(personas=["rushed", "rude"]), personas=changed))
    assert {name for name in before if before[name] != after[name]} == {"Refund (rude)"}
    assert digests(suite_of(a_test()))["Refund"] == before["Refund"]


def test_one_persona_is_selected_by_name_or_tag():
    loaded = read(suite_of(a_test(), a_test("Other"), personaMatrix=True))

    def chosen(names: str | None, tags: str | None) -> list[str]:
        (planned,) = plan([loaded], Selection.of(names, tags), 1).suites
        return [test.name for test in planned.tests]

    assert chosen("Refund (rude)", None) == ["Refund (rude)"]
    assert chosen("Refund", None) == ["Refund"]
    assert chosen(None, "persona:rude") == ["Refund (rude)", "Other (rude)"]


def test_unknown_names_have_a_suggestion_and_a_place():
    wrong = suite_of(a_test(personas=["rushd"]), personas={"rushed": {"traits": ["impatint"]}})
    assert problems(wrong) == [
        "personas.rushed.traits[0]: 'impatint' is not a trait; did you mean 'impatient'?"
    ]
    assert problems(suite_of(a_test(personas=["rushd"]))) == [
        "tests[0].personas[0]: 'rushd' is not a persona of this suite; did you mean 'rushed'?"
    ]
    with pytest.raises(SuiteError) as refused:
        read(suite_of(a_test(personas=["rushd"])))
    (problem,) = refused.value.problems
    line = json.dumps(suite_of(a_test(personas=["rushd"])), indent=1).splitlines()[problem.line - 1]
    assert line[problem.column - 1 :] == '"rushd"'


def test_misspelled_keys_have_a_suggestion():
    assert problems(suite_of(a_test(persona=["rude"]))) == [
        "tests[0].persona: unknown key; did you mean 'personas'?"
    ]
    assert problems(suite_of(a_test(), personasMatrix=True)) == [
        "personasMatrix: unknown key; did you mean 'personaMatrix'?"
    ]
    assert problems(suite_of(a_test(), personas={"rude": {"trait": ["hostile"]}})) == [
        "personas.rude.trait: unknown key; did you mean 'traits'?"
    ]


def test_name_of_another_test_is_no_name_of_a_pair():
    (problem,) = problems(suite_of(a_test(personas=["rude"]), a_test("Refund (rude)")))
    assert problem.startswith(
        "tests[1].name: 'Refund (rude)' is the name of 'Refund' with the persona 'rude'; "
    )


@pytest.mark.parametrize(
    ("personas", "problem"),
    [
        ({"a (b)": {"traits": ["terse"]}}, "cannot be a persona's name"),
        ({"": {"traits": ["terse"]}}, "cannot be a persona's name"),
        ({"a, b": {"traits": ["terse"]}}, "cannot be a persona's name"),
        ({"x" * 41: {"traits": ["terse"]}}, "cannot be a persona's name"),
        ({"calm": {}}, "has no 'traits', no 'language' and no 'note', so it would change nothing"),
        ({}, "personaMatrix: needs 'personas', which this suite does not have"),
    ],
)
def test_persona_that_cannot_be_played_is_refused(personas, problem):
    (found,) = problems(suite_of(a_test(), personas=personas, personaMatrix=True))
    assert problem in found


def test_persona_needs_a_message_to_write():
    fixed = a_test(turns=[{"user": "hi"}], maxTurns=1)
    (problem,) = problems(suite_of(fixed | {"personas": ["rude"]}))
    assert problem.startswith("tests[0].personas: all messages of this test are fixed, so a persona would ")
    loaded = read(suite_of(fixed, a_test("Other"), personaMatrix=True))
    assert [test.name for test in loaded.suite.tests] == ["Refund", "Other", "Other (rushed)", "Other (rude)"]
    assert "It is played without personas." in str(loaded.warnings[0])


def test_persona_that_no_test_names_is_warned_of():
    (warning,) = read(suite_of(a_test(personas=["rude"]))).warnings
    assert "no test is played with this persona" in str(warning)


def test_tests_of_personas_point_at_the_test_in_the_file():
    loaded = read(suite_of(a_test("First"), a_test(personas=["rude"])))
    assert loaded.test_lines[1] == loaded.test_lines[2] != loaded.test_lines[0]
    at = [loaded.document.problem(("tests", index, "name"), "").line for index in (1, 2)]
    assert at[0] == at[1]


def test_a_secret_in_a_test_changes_the_digest_of_each_of_its_pairs():
    def read_with(variable: str) -> dict[str, str]:
        suite = suite_of(a_test(userInfo={"code": f"${{{variable}}}"}, personas=["rude"]), a_test("Other"))
        loaded = load(json.dumps(suite), "shop.json", Reading({"ONE": "secret-12345", "TWO": "secret-12345"}))
        (planned,) = plan([loaded], Selection(), 1).suites
        return dict(zip([test.name for test in planned.tests], planned.test_digests, strict=True))

    one, two = read_with("ONE"), read_with("TWO")
    assert {name for name in one if one[name] != two[name]} == {"Refund", "Refund (rude)"}


@pytest.mark.parametrize("name", [" rude", "rude ", "a\x1b[31m", "a\u202eb", "a\u2028b", "a,b", "x" * 41])
def test_name_that_options_or_reports_could_not_show_is_refused(name):
    (problem,) = problems(suite_of(a_test(), personas={name: {"traits": ["terse"]}}, personaMatrix=True))
    assert "cannot be a persona's name: use up to 40 characters" in problem


@pytest.mark.parametrize("tag", ["persona:rude", "persona:other", "language:de", "persona:"])
@pytest.mark.parametrize("fields", [{"personas": ["rude"]}, {}])
def test_tag_of_a_test_is_no_persona(fields, tag):
    """Scores and floors would count the test as it is written among those of the persona."""
    tests = [a_test(personas=["rude", "rushed"]), a_test("Other", tags=["money", tag], **fields)]
    assert problems(suite_of(*tests)) == [
        f"tests[1].tags[1]: {tag!r} is a tag of tests with personas or languages; use another"
    ]


def test_suite_without_personas_has_no_tag_of_one_either():
    """A floor on the tag is about all suites of a run."""
    suite = suite_of(a_test(cluster="orders", tags=["language:zz"]))
    del suite["personas"]
    (problem,) = problems(suite)
    assert problem.startswith("tests[0].tags[0]: 'language:zz' is a tag of tests with personas or languages")


def test_note_refers_to_canaries_that_each_of_its_tests_has():
    personas = {"spy": {"note": "You know the code {{canary.code}}."}}
    assert problems(suite_of(a_test(), personas=personas, personaMatrix=True)) == [
        "personas.spy.note: refers to the canary 'code', which 'Refund' does not have"
    ]
    with_canary = a_test(canaries={"code": "code"}, userInfo={"code": "{{canary.code}}"})
    assert names(suite_of(with_canary, personas=personas, personaMatrix=True)) == ["Refund", "Refund (spy)"]


def test_lists_without_an_end_are_refused_before_they_are_looked_through():
    many = {f"p{number}": {"traits": ["terse"]} for number in range(101)}
    assert problems(suite_of(a_test(), personas=many)) == ["personas: may have at most 100 items"]
    assert problems(suite_of(a_test(personas=[*many]))) == ["tests[0].personas: may have at most 100 items"]
    assert problems(suite_of(a_test(), personas={"a": {"traits": ["terse"] * 9}})) == [
        "personas.a.traits: may have at most 8 items"
    ]


def test_schema_for_editors_has_the_keys():
    schema = Draft202012Validator(schema_with_added_keys())
    assert schema.is_valid(suite_of(a_test(personas=["rude"]), personaMatrix=True))
    assert not schema.is_valid(suite_of(a_test(), personas={"rude": {"traits": ["impatint"]}}))
    assert not schema.is_valid(suite_of(a_test(personas="rude")))


def test_persona_with_a_language_writes_in_it():
    suite = suite_of(a_test(personas=["hans"]), personas={"hans": {"language": "de"}})
    _, german = read(suite).suite.tests
    assert 'in the language with the code "de"' in german.guidelines
    assert german.tags == ("persona:hans", "language:de")


def test_fixed_lines_are_never_sent_in_another_language_than_the_persona_s():
    fixed = a_test(turns=[{"user": "Hello"}, {"user": "auto"}])
    personas = {"hans": {"language": "de"}, "rushed": {"traits": ["terse"]}}
    (problem,) = problems(suite_of(fixed | {"personas": ["hans"]}, personas=personas))
    assert problem.startswith(
        "tests[0].personas[0]: has fixed lines, which 'hans' would not say in the language de"
    )
    loaded = read(suite_of(fixed, personas=personas, personaMatrix=True))
    assert [test.name for test in loaded.suite.tests] == ["Refund", "Refund (rushed)"]
    assert "It is played without this persona." in str(loaded.warnings[0])


@pytest.mark.parametrize("code", ["German", "d", "de_AT", ""])
def test_language_is_a_code(code):
    (problem,) = problems(suite_of(a_test(), personas={"hans": {"language": code}}, personaMatrix=True))
    assert problem == f"personas.hans.language: {code!r} is not the code of a language, such as de or pt-BR"
