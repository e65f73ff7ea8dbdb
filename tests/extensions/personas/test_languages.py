"""The key `languages`: each test also in other languages, with translations from the suite's lock file."""

import json
from pathlib import Path

import pytest
import yaml
from each_row import each_row
from jsonschema import Draft202012Validator

from ci_evals.adapters.suites import sources
from ci_evals.domain.errors import SuiteError, UsageError
from ci_evals.library.suites import load_suite
from ci_evals.planning.parse import LoadedSuite
from ci_evals.planning.selection import Selection, plan
from ci_evals.planning.suite_keys import schema_with_added_keys
from ci_evals.scoring.comparison.weakened import weakenings

HELLO, THANKS = "Hello, I want my money back.", "Thank you, that is all."
GERMAN = {HELLO: "Hallo, ich möchte mein Geld zurück.", THANKS: "Danke, das ist alles."}
RUN = "run `ci-evals personas translate shop.yaml`"


def a_test(name: str = "Refund", **fields) -> dict:
    return {
        "name": name,
        "guidelines": "You want a refund.",
        "turns": [{"user": HELLO}, {"user": "auto"}, {"user": THANKS}],
        "evaluations": [{"strict": "not_escalated", "criterion": "No human"}],
    } | fields


def a_suite(*tests: dict, **fields) -> dict:
    return {
        "name": "Shop",
        "adapter": "python:shop:agent",
        "maxTurns": 3,
        "languages": ["de"],
        "tests": [*(tests or (a_test(),))],
    } | fields


def a_lock(**languages: dict[str, str]) -> dict:
    return {
        "translations": {
            code: [{"line": line, "text": text} for line, text in texts.items()]
            for code, texts in languages.items()
        }
    }


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Reads a suite beside its lock file."""
    monkeypatch.chdir(tmp_path)

    def reading(suite: dict, lock: dict | str | None = None, **environ: str) -> LoadedSuite:
        Path("shop.yaml").write_text(yaml.safe_dump(suite, sort_keys=False, allow_unicode=True))
        if lock is not None:
            text = lock if isinstance(lock, str) else yaml.safe_dump(lock, allow_unicode=True)
            Path("shop.lock.yaml").write_text(text)
        return load_suite("shop.yaml", environ=environ)

    return reading


@pytest.fixture
def problems(read):
    """The problems of a suite that is refused."""

    def found(suite: dict, lock: dict | str | None = None, **environ: str) -> list[str]:
        with pytest.raises(SuiteError) as refused:
            read(suite, lock, **environ)
        return [f"{problem.file}: {problem.path}: {problem.message}" for problem in refused.value.problems]

    return found


def digests(loaded: LoadedSuite) -> dict[str, str]:
    (planned,) = plan([loaded], Selection(), 1).suites
    return dict(zip([test.name for test in planned.tests], planned.test_digests, strict=True))


def lines(test) -> list[str]:
    return [turn.user for turn in test.turns]


def test_each_test_is_played_in_each_language_with_its_lines_translated(read):
    plain, german = read(a_suite(), a_lock(de=GERMAN)).suite.tests
    assert (plain.name, german.name) == ("Refund", "Refund (de)")
    assert lines(plain) == [HELLO, "auto", THANKS]
    assert lines(german) == [GERMAN[HELLO], "auto", GERMAN[THANKS]]
    assert (plain.tags, german.tags) == ((), ("language:de",))
    assert plain.cluster == german.cluster == "Shop: Refund"
    assert german.evaluations == plain.evaluations


def test_simulated_user_writes_in_the_language(read):
    fixed = a_test("Fixed", turns=[{"user": HELLO}], maxTurns=1)
    free = a_test("Free", turns=[{"user": "auto"}])
    tests = {test.name: test for test in read(a_suite(fixed, free), a_lock(de=GERMAN | {})).suite.tests}
    assert tests["Fixed (de)"].guidelines == tests["Fixed"].guidelines
    assert 'in the language with the code "de"' in tests["Free (de)"].guidelines
    assert lines(tests["Free (de)"]) == ["auto"]


def test_test_without_fixed_lines_needs_no_lock_file(read):
    loaded = read(a_suite(a_test(turns=[{"user": "auto"}])))
    assert [test.name for test in loaded.suite.tests] == ["Refund", "Refund (de)"]
    assert loaded.warnings == ()


def test_history_is_translated_too(read):
    turns = [{"user": HELLO}, {"assistant": "Which order is it?"}, {"user": "4812"}]
    texts = {HELLO: GERMAN[HELLO], "Which order is it?": "Um welche Bestellung geht es?"}
    _, german = read(a_suite(a_test(turns=turns)), a_lock(de=texts)).suite.tests
    assert german.history == [
        {"role": "user", "content": GERMAN[HELLO]},
        {"role": "assistant", "content": "Um welche Bestellung geht es?"},
    ]
    assert [turn.user for turn in german.planned_turns] == ["4812"]


def test_languages_of_a_test_replace_those_of_the_suite(read):
    french = dict(zip(GERMAN, ["Bonjour.", "Merci beaucoup."], strict=True))
    suite = a_suite(a_test(languages=["fr"]), a_test("Other", languages=[]), a_test("Third"))
    loaded = read(suite, a_lock(de=GERMAN, fr=french))
    assert [test.name for test in loaded.suite.tests] == [
        *("Refund", "Refund (fr)", "Other"),
        *("Third", "Third (de)"),
    ]
    assert [test.cluster for test in loaded.suite.tests][2] is None


def test_personas_and_languages_do_not_multiply(read):
    personas = {"rude": {"traits": ["hostile"]}}
    suite = a_suite(personas=personas, personaMatrix=True)
    loaded = read(suite, a_lock(de=GERMAN))
    assert [test.name for test in loaded.suite.tests] == ["Refund", "Refund (rude)", "Refund (de)"]
    assert {test.cluster for test in loaded.suite.tests} == {"Shop: Refund"}


def test_persona_with_a_language_of_the_suite_says_the_translated_lines(read, problems):
    personas = {"hans": {"language": "de", "traits": ["terse"]}}
    suite = a_suite(a_test(personas=["hans"]), personas=personas)
    hans = read(suite, a_lock(de=GERMAN)).suite.tests[1]
    assert hans.name == "Refund (hans)"
    assert lines(hans) == [GERMAN[HELLO], "auto", GERMAN[THANKS]]
    assert hans.tags == ("persona:hans", "language:de")
    (refused,) = problems(suite | {"languages": ["fr"]}, a_lock(fr=dict.fromkeys(GERMAN, "Salut")))
    assert "add de to 'languages' of the suite" in refused


def test_missing_translation_is_an_error_at_its_line(read):
    with pytest.raises(SuiteError) as refused:
        read(a_suite(languages=["de", "fr"]), a_lock(de=GERMAN, fr={HELLO: "Bonjour."}))
    (problem,) = refused.value.problems
    assert problem.message == f"'{THANKS}' has no translation into fr; {RUN}"
    line = Path("shop.yaml").read_text().splitlines()[problem.line - 1]
    assert line[problem.column - 1 :] == THANKS


def test_changed_line_is_an_error_until_it_is_translated(problems):
    changed = a_test(turns=[{"user": "Hello, I want a new one."}, {"user": THANKS}])
    assert problems(a_suite(changed), a_lock(de=GERMAN)) == [
        f"shop.yaml: tests[0].turns[0].user: 'Hello, I want a new one.' has no translation into de; {RUN}"
    ]


def test_missing_lock_file_is_one_error(problems):
    (problem,) = problems(a_suite(a_test(), a_test("Other")))
    assert problem == (
        "shop.yaml: languages: the lock file 'shop.lock.yaml' cannot be read: No such file or directory; "
        + RUN
    )


def test_translation_is_part_of_the_digest_of_its_test_alone(read):
    before = digests(read(a_suite(), a_lock(de=GERMAN)))
    after = digests(read(a_suite(), a_lock(de=GERMAN | {HELLO: "Guten Tag, ich will mein Geld."})))
    assert {name for name in before if before[name] != after[name]} == {"Refund (de)"}
    alone = digests(read(a_suite(languages=[])))
    assert alone == {"Refund": before["Refund"]}


def test_one_language_is_selected_by_name_or_tag(read):
    loaded = read(a_suite(a_test(), a_test("Other")), a_lock(de=GERMAN))

    def chosen(names: str | None, tags: str | None) -> list[str]:
        (planned,) = plan([loaded], Selection.of(names, tags), 1).suites
        return [test.name for test in planned.tests]

    assert chosen("Refund (de)", None) == ["Refund (de)"]
    assert chosen("Refund", None) == ["Refund"]
    assert chosen(None, "language:de") == ["Refund (de)", "Other (de)"]


def test_variables_and_canaries_stand_in_translations_by_their_names(read):
    line = "My number is ${NUMBER}, the code is {{canary.code}}."
    test = a_test(
        turns=[{"user": line}],
        canaries={"code": "code"},
        evaluations=[{"criterion": "c", "strict": "not_disclosed", "text": "{{canary.code}}"}],
    )
    german = "Der Code ist {{canary.code}}, meine Nummer ist ${NUMBER}."
    loaded = read(a_suite(test), a_lock(de={line: german}), NUMBER="secret-4812")
    assert lines(loaded.suite.tests[1])[0] == ("Der Code ist {{canary.code}}, meine Nummer ist secret-4812.")
    assert loaded.secrets == {"secret-4812"}


@each_row(
    ("line", "text", "fault"),
    [
        ("It is ${NUMBER}.", "Es ist 4812.", "has lost '${NUMBER}'"),
        ("It is {{order}}.", "Es ist {{Order}}.", "has lost '{{order}}'"),
        ("It is here.", "Es ist ${API_KEY}.", "has '${API_KEY}', which the line does not have"),
        ("It is ${A}.", "Es ist ${A} ${A}.", "has '${A}', which the line does not have"),
        ("It is ${A}.", "Es ist $${A}.", "has lost '${A}'"),
        ("It is here.", "auto", "would be a message of the simulated user (auto)"),
        ("It is here.", "\u200b", "has no visible character"),
    ],
)
def test_translation_that_cannot_stand_for_its_line_is_refused(line, text, fault, problems):
    """Else a lock file could read variables of the environment that no line of the suite names."""
    (problem,) = problems(a_suite(a_test(turns=[{"user": line}])), a_lock(de={line: text}), NUMBER="1", A="1")
    assert problem.startswith("shop.lock.yaml: translations.de[0].text: ")
    assert fault in problem


@each_row(
    ("text", "fault"),
    [
        ("${A:-auto}", "would be a message of the simulated user (auto)"),
        ("${A:- }", "has no visible character"),
    ],
)
def test_default_of_a_variable_makes_no_other_message_of_a_translation(text, fault, problems, read):
    line = f"Hello, my friend {text}"
    suite = a_suite(a_test(turns=[{"user": line}], maxTurns=1))
    assert problems(suite, a_lock(de={line: text})) == [
        f"shop.yaml: tests[0].turns[0].user: its translation into de {fault}; correct it in shop.lock.yaml"
    ]
    german = read(suite, a_lock(de={line: text}), A="Ida").suite.tests[1]
    assert lines(german) == ["Ida"]


def test_line_without_words_is_sent_as_it_is(read):
    """`personas translate` would remove its translation, and so change the test."""
    test = a_test(turns=[{"user": HELLO}, {"user": "4812"}])
    loaded = read(a_suite(test), a_lock(de={HELLO: GERMAN[HELLO], "4812": "9999"}))
    assert lines(loaded.suite.tests[1]) == [GERMAN[HELLO], "4812"]
    assert "1 translation that no test needs" in str(loaded.warnings[0])


def test_translations_with_secrets_differ_by_the_names_of_their_variables(read):
    line = "Take ${ONE} and ${TWO}, please."
    secrets = {"ONE": "secret-11111", "TWO": "secret-22222"}

    def digest_of(text: str) -> tuple[str, str]:
        found = digests(read(a_suite(a_test(turns=[{"user": line}])), a_lock(de={line: text}), **secrets))
        return found["Refund"], found["Refund (de)"]

    plain, german = digest_of("Nimm ${ONE} und ${TWO}, bitte.")
    same, swapped = digest_of("Nimm ${TWO} und ${ONE}, bitte.")
    assert plain == same
    assert german != swapped
    assert digest_of("Nimm ${ONE} und ${TWO}, bitte.") == (plain, german)


@each_row(
    ("lock", "fault"),
    [
        ("[]", "must be an object, found []"),
        ("translations: 7", "translations: must be an object, found 7"),
        ("translations: {de: [{line: 7, text: x}]}", "translations.de[0].line: must be a string, found 7"),
        ("translations: {de: [{line: x}]}", "translations.de[0].text: is missing"),
        ("translations: {de: [{line: x, text: y, txet: z}]}", "unknown key; did you mean 'text'?"),
        ("translations: {German: []}", "'German' is not the code of a language"),
        ("translations: {de: [{line: x, text: y}, {line: x, text: z}]}", "'x' has two translations"),
        ("translations: {de: [{line: x, text: y, made: often}]}", "made: must be a day such as"),
        ("translations: [", "not YAML"),
        ("a: &a [x, x]\nb: *c", "not YAML: found undefined alias"),
        ("# " + 20_000_001 * "x", "cannot be read: it is larger than 20 MB"),
    ],
)
def test_broken_lock_file_is_one_error(lock, fault, problems):
    (problem,) = problems(a_suite(), lock)
    assert problem.startswith("shop.")
    assert fault in problem


def test_lock_file_that_grows_by_its_aliases_is_one_error(problems):
    grown = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    grown += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    (problem,) = problems(a_suite(), "\n".join(grown))
    assert "too large because of aliases" in problem


def test_lock_file_with_many_faults_shows_some(problems):
    many = {f"line {number} ${{X}}": "lost" for number in range(1000)}
    assert len(problems(a_suite(), a_lock(de=many))) == 10


def test_lock_file_of_another_suite_lacks_the_lines(problems):
    other = {"Something else": "Etwas anderes"}
    assert [problem.split("' has ")[1] for problem in problems(a_suite(), a_lock(de=other))] == [
        f"no translation into de; {RUN}"
    ] * 2


def test_unneeded_translations_are_warned_of(read):
    lock = a_lock(de=GERMAN | {"An old line.": "Eine alte Zeile."}, fr=GERMAN)
    (warning,) = read(a_suite(), lock).warnings
    assert f"shop.lock.yaml has 3 translations that no test needs; {RUN}" in str(warning)


def test_line_that_was_not_translated_is_warned_of_in_its_lock_file(read):
    lock = a_lock(de={HELLO: f" {HELLO.upper()}", THANKS: GERMAN[THANKS]})
    loaded = read(a_suite(), lock)
    (warning,) = loaded.warnings
    assert (warning.file, warning.path) == ("shop.lock.yaml", "translations.de[0].text")
    assert f"the translation of '{HELLO}' has the same words" in warning.message
    line = Path("shop.lock.yaml").read_text().splitlines()[warning.line - 1]
    assert HELLO.upper() in line
    assert read(a_suite(a_test(turns=[{"user": "OK, Berlin."}])), a_lock(de={"OK, Berlin.": "OK, Berlin."}))


@pytest.mark.parametrize(
    ("line", "text"),
    [(HELLO, HELLO), (HELLO, HELLO.lower()), ("OK, Berlin.", "OK, Berlin. "), ("4812", "9999")],
)
def test_test_that_a_language_does_not_change_is_not_played_in_it(line, text, read):
    """Else reports would count a test in German that nobody played in German."""
    fixed = a_test(turns=[{"user": line}], maxTurns=1)
    lock = a_lock(de={line: text})
    loaded = read(a_suite(fixed), lock)
    assert [(test.name, test.tags) for test in loaded.suite.tests] == [("Refund", ())]
    assert loaded.users == {}
    (said,) = [warning for warning in loaded.warnings if warning.path == "tests[0]"]
    assert said.message.startswith("has the same messages in de. It is not played in this language")


def test_language_whose_translations_became_the_lines_themselves_weakens_the_suite(read):
    fixed = a_test(turns=[{"user": HELLO}], maxTurns=1)

    def planned(text: str):
        return plan([read(a_suite(fixed), a_lock(de={HELLO: text}))], Selection(), 1).definitions

    before, after = planned(GERMAN[HELLO]), planned(HELLO)
    (lost,) = weakenings(before, after)
    assert "Refund (de)" in str(lost)
    assert not [*weakenings(before, planned("Guten Tag."))]


@each_row(
    ("languages", "fault"),
    [
        (["German"], "languages[0]: 'German' is not the code of a language, such as de or pt-BR"),
        (["de", "de"], "languages[1]: 'de' is given twice; remove one"),
        ("de", "languages: must be a list"),
    ],
)
def test_languages_are_codes_each_given_once(languages, fault, problems):
    (problem,) = problems(a_suite(languages=languages), a_lock(de=GERMAN))
    assert fault in problem


def test_name_of_another_test_is_no_name_of_a_pair(problems):
    (problem,) = problems(a_suite(a_test(), a_test("Refund (de)", languages=[])), a_lock(de=GERMAN))
    assert "tests[1].name: 'Refund (de)' is the name of 'Refund' with the language 'de'" in problem
    personas = {"de": {"traits": ["terse"]}}
    (problem,) = problems(a_suite(personas=personas, personaMatrix=True), a_lock(de=GERMAN))
    assert "'Refund (de)' is the name of 'Refund' with the language 'de'" in problem


@each_row(
    ("check", "fault"),
    [
        ({"strict": "contains", "text": "refunded"}, "can fail there for no reason"),
        ({"strict": "regex", "pattern": "refund(ed)?"}, "can fail there for no reason"),
        ({"strict": "answer_matches", "expected": "Berlin"}, "can fail there for no reason"),
        ({"strict": "not_contains", "text": "cannot", "turn": "any"}, "can pass there whatever is said"),
        ({"strict": "not_regex", "pattern": "never", "turn": "any"}, "can pass there whatever is said"),
        ({"strict": "contains", "text": "4812"}, None),
        ({"strict": "regex", "pattern": r"\d+\s\p{Lu}"}, None),
        ({"strict": "answer_matches", "expected": "12", "match": "numeric"}, None),
        ({"strict": "tool_called", "toolName": "start_refund"}, None),
    ],
)
def test_checks_of_words_are_warned_of(check, fault, read):
    test = a_test(evaluations=[{"criterion": "c", **check}])
    warnings = read(a_suite(test), a_lock(de=GERMAN)).warnings
    named = [warning for warning in map(str, warnings) if "a reply in de may" in warning]
    assert len(named) == (fault is not None)
    assert all("tests[0].evaluations[0]" in warning and fault in warning for warning in named)
    plain = read(a_suite(test | {"languages": []}), a_lock(de={})).warnings
    assert not [warning for warning in map(str, plain) if "a reply in" in warning]


def test_lock_file_is_no_suite(read):
    read(a_suite(), a_lock(de=GERMAN))
    Path("shop.lock.yaml").write_text("# Translations\ntranslations:\n  de: []\n")
    assert [source.file for source in sources(".")] == ["shop.yaml"]
    assert [source.file for source in sources("*.yaml")] == ["shop.yaml"]
    with pytest.raises(UsageError, match=r"holds no suite: shop\.lock\.yaml has the translations of a suite"):
        sources("shop.lock.yaml")


@each_row(
    "text",
    [
        "name: Shop\ntests: []\ntranslations: 1\n",
        "name: Shop\n",
        "translations: 1\n'tests' : []\n",
        "{\ntranslations: 1,\n  tests: []}\n",
        "translations: 1\nextends: safety:data\n",
        "? tests\n: []\ntranslations: 1\n",
        "translations: 1\n&a tests: []\n",
        'translations: 1\n"te\\x73ts": []\n',
        'x-note: "a\ntranslations:\nb"\n? tests\n: []\n',
        "x-a: &a {tests: []}\ntranslations: 1\n<<: *a\n",
        "translations: [\n",
    ],
)
def test_suite_with_the_name_of_a_lock_file_is_not_left_out(text, tmp_path):
    (tmp_path / "door.lock.yaml").write_text(text)
    (source,) = sources(str(tmp_path))
    assert source.path.name == "door.lock.yaml"


def test_suite_from_data_has_no_lock_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("(suite).lock.yaml").write_text(yaml.safe_dump(a_lock(de=GERMAN)))
    with pytest.raises(SuiteError) as refused:
        load_suite(a_suite())
    (problem,) = refused.value.problems
    assert problem.path == "languages"
    assert problem.message == (
        "this suite was not read from a file, so it has no lock file with translations; save it as a file"
    )


def test_schema_for_editors_has_the_key():
    schema = Draft202012Validator(schema_with_added_keys())
    assert schema.is_valid(json.loads(json.dumps(a_suite(a_test(languages=["pt-BR"])))))
    assert not schema.is_valid(a_suite(languages=["German"]))
