"""The key `languages`: each test also in other languages, with translations from the suite's lock file."""

import json
from pathlib import Path

import pytest
import yaml
from each_row import each_row
from jsonschema import Draft202012Validator
from refund_suites import HELLO, THANKS, chosen, digests, refund_test

from ci_evals.adapters.suites import sources
from ci_evals.domain.errors import SuiteError, UsageError
from ci_evals.library.suites import load_suite
from ci_evals.planning.parse import LoadedSuite
from ci_evals.planning.selection import Selection, plan
from ci_evals.planning.suite_keys import schema_with_added_keys
from ci_evals.scoring.comparison.weakened import weakenings

GERMAN = {HELLO: "Hallo, ich möchte mein Geld zurück.", THANKS: "Danke, das ist alles."}
RUN = "run `ci-evals personas translate shop.yaml`"


def shop_suite(*tests: dict, **fields) -> dict:
    suite = {"name": "Shop", "adapter": "python:shop:agent", "maxTurns": 3, "languages": ["de"]}
    return suite | {"tests": [*(tests or (refund_test(),))]} | fields


def lock_with(**languages: dict[str, str]) -> dict:
    def entries(texts: dict[str, str]) -> list[dict[str, str]]:
        return [{"line": line, "text": text} for line, text in texts.items()]

    translations = {code: entries(texts) for code, texts in languages.items()}
    return {"translations": translations}


@pytest.fixture
def read(tmp_path, monkeypatch):
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
    def found(suite: dict, lock: dict | str | None = None, **environ: str) -> list[str]:
        with pytest.raises(SuiteError) as refused:
            read(suite, lock, **environ)
        return [f"{problem.file}: {problem.path}: {problem.message}" for problem in refused.value.problems]

    return found


def names(loaded: LoadedSuite) -> list[str]:
    return [test.name for test in loaded.suite.tests]


def lines(test) -> list[str]:
    return [turn.user for turn in test.turns]


def test_messages_and_history_are_translated_in_each_language(read):
    plain, german = read(shop_suite(), lock_with(de=GERMAN)).suite.tests
    assert (plain.name, german.name, lines(plain)) == ("Refund", "Refund (de)", [HELLO, "auto", THANKS])
    assert lines(german) == [GERMAN[HELLO], "auto", GERMAN[THANKS]]
    assert (plain.tags, german.tags) == ((), ("language:de",))
    assert plain.cluster == german.cluster == "Shop: Refund"
    assert german.evaluations == plain.evaluations
    turns = [{"user": HELLO}, {"assistant": "Which order is it?"}, {"user": "4812"}]
    texts = {HELLO: GERMAN[HELLO], "Which order is it?": "Um welche Bestellung geht es?"}
    _, german = read(shop_suite(refund_test(turns=turns)), lock_with(de=texts)).suite.tests
    reply = {"role": "assistant", "content": "Um welche Bestellung geht es?"}
    assert german.history == [{"role": "user", "content": GERMAN[HELLO]}, reply]
    assert [turn.user for turn in german.planned_turns] == ["4812"]


def test_simulated_user_and_personas_speak_the_language(read, problems):
    fixed = refund_test("Fixed", turns=[{"user": HELLO}], maxTurns=1)
    free = refund_test("Free", turns=[{"user": "auto"}])
    tests = {test.name: test for test in read(shop_suite(fixed, free), lock_with(de=GERMAN)).suite.tests}
    assert tests["Fixed (de)"].guidelines == tests["Fixed"].guidelines
    assert 'in the language with the code "de"' in tests["Free (de)"].guidelines
    assert lines(tests["Free (de)"]) == ["auto"]
    Path("shop.lock.yaml").unlink()
    loaded = read(shop_suite(free))
    assert (names(loaded), loaded.warnings) == (["Free", "Free (de)"], ())
    personas = {"hans": {"language": "de", "traits": ["terse"]}}
    suite = shop_suite(refund_test(personas=["hans"]), personas=personas)
    hans = read(suite, lock_with(de=GERMAN)).suite.tests[1]
    assert (hans.name, lines(hans)) == ("Refund (hans)", [GERMAN[HELLO], "auto", GERMAN[THANKS]])
    assert hans.tags == ("persona:hans", "language:de")
    (refused,) = problems(suite | {"languages": ["fr"]}, lock_with(fr=dict.fromkeys(GERMAN, "Salut")))
    assert "add de to 'languages' of the suite" in refused


def test_languages_of_a_test_replace_languages_of_the_suite(read):
    french = dict(zip(GERMAN, ["Bonjour.", "Merci beaucoup."], strict=True))
    other = refund_test("Other", languages=[])
    suite = shop_suite(refund_test(languages=["fr"]), other, refund_test("Third"))
    loaded = read(suite, lock_with(de=GERMAN, fr=french))
    assert names(loaded) == ["Refund", "Refund (fr)", "Other", "Third", "Third (de)"]
    assert loaded.suite.tests[2].cluster is None


def test_languages_and_personas_are_variants_of_one_cluster(read):
    personas = {"rude": {"traits": ["hostile"]}}
    suite = shop_suite(personas=personas, personaMatrix=True)
    loaded = read(suite, lock_with(de=GERMAN))
    assert names(loaded) == ["Refund", "Refund (rude)", "Refund (de)"]
    assert {test.cluster for test in loaded.suite.tests} == {"Shop: Refund"}


def test_language_variant_is_selected_by_name_or_tag(read):
    loaded = read(shop_suite(refund_test(), refund_test("Other")), lock_with(de=GERMAN))
    assert chosen(loaded, "Refund (de)") == ["Refund (de)"]
    assert chosen(loaded, "Refund") == ["Refund"]
    assert chosen(loaded, tags="language:de") == ["Refund (de)", "Other (de)"]


def test_missing_lock_file_or_translation_is_a_problem(problems, read):
    (problem,) = problems(shop_suite(refund_test(), refund_test("Other")))
    reason = "the lock file 'shop.lock.yaml' cannot be read: No such file or directory"
    assert problem == f"shop.yaml: languages: {reason}; {RUN}"
    with pytest.raises(SuiteError) as refused:
        read(shop_suite(languages=["de", "fr"]), lock_with(de=GERMAN, fr={HELLO: "Bonjour."}))
    (problem,) = refused.value.problems
    assert problem.message == f"'{THANKS}' has no translation into fr; {RUN}"
    line = Path("shop.yaml").read_text().splitlines()[problem.line - 1]
    assert line[problem.column - 1 :] == THANKS
    changed = refund_test(turns=[{"user": "Hello, I want a new one."}, {"user": THANKS}])
    assert problems(shop_suite(changed), lock_with(de=GERMAN)) == [
        f"shop.yaml: tests[0].turns[0].user: 'Hello, I want a new one.' has no translation into de; {RUN}"
    ]
    other = problems(shop_suite(), lock_with(de={"Something else": "Etwas anderes"}))
    assert [problem.split("' has ")[1] for problem in other] == [f"no translation into de; {RUN}"] * 2


def test_digest_depends_on_translation_and_variable_names(read):
    before = digests(read(shop_suite(), lock_with(de=GERMAN)))
    after = digests(read(shop_suite(), lock_with(de=GERMAN | {HELLO: "Guten Tag, ich will mein Geld."})))
    assert {name for name in before if before[name] != after[name]} == {"Refund (de)"}
    alone = digests(read(shop_suite(languages=[])))
    assert alone == {"Refund": before["Refund"]}
    line = "Take ${ONE} and ${TWO}, please."
    secrets = {"ONE": "secret-11111", "TWO": "secret-22222"}

    def digest_of(text: str) -> tuple[str, str]:
        suite = shop_suite(refund_test(turns=[{"user": line}]))
        result = digests(read(suite, lock_with(de={line: text}), **secrets))
        return result["Refund"], result["Refund (de)"]

    plain, german = digest_of("Nimm ${ONE} und ${TWO}, bitte.")
    same, swapped = digest_of("Nimm ${TWO} und ${ONE}, bitte.")
    assert plain == same
    assert german != swapped
    assert digest_of("Nimm ${ONE} und ${TWO}, bitte.") == (plain, german)


def test_variables_and_canaries_are_resolved_in_translations(read):
    line = "My number is ${NUMBER}, the code is {{canary.code}}."
    check = {"criterion": "c", "strict": "not_disclosed", "text": "{{canary.code}}"}
    test = refund_test(turns=[{"user": line}], canaries={"code": "code"}, evaluations=[check])
    german = "Der Code ist {{canary.code}}, meine Nummer ist ${NUMBER}."
    loaded = read(shop_suite(test), lock_with(de={line: german}), NUMBER="secret-4812")
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
def test_translation_with_other_variables_or_no_text_is_refused(line, text, fault, problems):
    """Else a lock file could read variables of the environment that no line of the suite names."""
    suite = shop_suite(refund_test(turns=[{"user": line}]))
    (problem,) = problems(suite, lock_with(de={line: text}), NUMBER="1", A="1")
    assert problem.startswith("shop.lock.yaml: translations.de[0].text: ")
    assert fault in problem


def test_variable_default_cannot_make_translation_auto_or_blank(problems, read):
    for text, fault in (
        ("${A:-auto}", "would be a message of the simulated user (auto)"),
        ("${A:- }", "has no visible character"),
    ):
        line = f"Hello, my friend {text}"
        suite = shop_suite(refund_test(turns=[{"user": line}], maxTurns=1))
        (problem,) = problems(suite, lock_with(de={line: text}))
        reason = f"its translation into de {fault}; correct it in shop.lock.yaml"
        assert problem == f"shop.yaml: tests[0].turns[0].user: {reason}"
        german = read(suite, lock_with(de={line: text}), A="Ida").suite.tests[1]
        assert lines(german) == ["Ida"]


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
def test_malformed_lock_file_is_reported_as_one_problem(lock, fault, problems):
    (problem,) = problems(shop_suite(), lock)
    assert problem.startswith("shop.")
    assert fault in problem


def test_problems_of_lock_file_are_limited(problems):
    grown = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    grown += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    (problem,) = problems(shop_suite(), "\n".join(grown))
    assert "too large because of aliases" in problem
    many = {f"line {number} ${{X}}": "lost" for number in range(1000)}
    assert len(problems(shop_suite(), lock_with(de=many))) == 10


def test_needless_or_missing_translations_cause_warnings(read):
    lock = lock_with(de=GERMAN | {"An old line.": "Eine alte Zeile."}, fr=GERMAN)
    (warning,) = read(shop_suite(), lock).warnings
    assert f"shop.lock.yaml has 3 translations that no test needs; {RUN}" in str(warning)
    test = refund_test(turns=[{"user": HELLO}, {"user": "4812"}])
    loaded = read(shop_suite(test), lock_with(de={HELLO: GERMAN[HELLO], "4812": "9999"}))
    assert lines(loaded.suite.tests[1]) == [GERMAN[HELLO], "4812"]
    assert "1 translation that no test needs" in str(loaded.warnings[0])
    lock = lock_with(de={HELLO: f" {HELLO.upper()}", THANKS: GERMAN[THANKS]})
    loaded = read(shop_suite(), lock)
    (warning,) = loaded.warnings
    assert (warning.file, warning.path) == ("shop.lock.yaml", "translations.de[0].text")
    assert f"the translation of '{HELLO}' has the same words" in warning.message
    line = Path("shop.lock.yaml").read_text().splitlines()[warning.line - 1]
    assert HELLO.upper() in line
    same = "OK, Berlin."
    assert read(shop_suite(refund_test(turns=[{"user": same}])), lock_with(de={same: same}))


@each_row(
    ("line", "text"),
    [(HELLO, HELLO), (HELLO, HELLO.lower()), ("OK, Berlin.", "OK, Berlin. "), ("4812", "9999")],
)
def test_test_with_unchanged_translation_is_not_played_and_warned_of(line, text, read):
    """Else reports would count a test in German that nobody played in German."""
    fixed = refund_test(turns=[{"user": line}], maxTurns=1)
    lock = lock_with(de={line: text})
    loaded = read(shop_suite(fixed), lock)
    assert ([(test.name, test.tags) for test in loaded.suite.tests], loaded.users) == ([("Refund", ())], {})
    (warning,) = [warning for warning in loaded.warnings if warning.path == "tests[0]"]
    assert warning.message.startswith("has the same messages in de. It is not played in this language")


def test_translation_replaced_by_original_line_counts_as_weakening(read):
    fixed = refund_test(turns=[{"user": HELLO}], maxTurns=1)

    def planned(text: str):
        return plan([read(shop_suite(fixed), lock_with(de={HELLO: text}))], Selection(), 1).definitions

    before, after = planned(GERMAN[HELLO]), planned(HELLO)
    (lost,) = weakenings(before, after)
    assert "Refund (de)" in str(lost)
    assert not [*weakenings(before, planned("Guten Tag."))]


def test_invalid_or_repeated_language_and_test_named_like_a_variant_are_refused(problems):
    for languages, fault in (
        (["German"], "languages[0]: 'German' is not the code of a language, such as de or pt-BR"),
        (["de", "de"], "languages[1]: 'de' is given twice; remove one"),
        ("de", "languages: must be a list"),
    ):
        (problem,) = problems(shop_suite(languages=languages), lock_with(de=GERMAN))
        assert fault in problem
    suite = shop_suite(refund_test(), refund_test("Refund (de)", languages=[]))
    (problem,) = problems(suite, lock_with(de=GERMAN))
    assert "tests[1].name: 'Refund (de)' is the name of 'Refund' with the language 'de'" in problem
    personas = {"de": {"traits": ["terse"]}}
    (problem,) = problems(shop_suite(personas=personas, personaMatrix=True), lock_with(de=GERMAN))
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
def test_word_checks_cause_warning_in_other_languages(check, fault, read):
    test = refund_test(evaluations=[{"criterion": "c", **check}])
    warnings = read(shop_suite(test), lock_with(de=GERMAN)).warnings
    named = [warning for warning in map(str, warnings) if "a reply in de may" in warning]
    assert len(named) == (fault is not None)
    assert all("tests[0].evaluations[0]" in warning and fault in warning for warning in named)
    plain = read(shop_suite(test | {"languages": []}), lock_with(de={})).warnings
    assert not [warning for warning in map(str, plain) if "a reply in" in warning]


def test_lock_file_is_not_read_as_suite_and_needs_suite_from_file(read):
    read(shop_suite(), lock_with(de=GERMAN))
    Path("shop.lock.yaml").write_text("# Translations\ntranslations:\n  de: []\n")
    for pattern in (".", "*.yaml"):
        assert [source.file for source in sources(pattern)] == ["shop.yaml"]
    with pytest.raises(UsageError, match=r"holds no suite: shop\.lock\.yaml has the translations of a suite"):
        sources("shop.lock.yaml")
    Path("(suite).lock.yaml").write_text(yaml.safe_dump(lock_with(de=GERMAN)))
    with pytest.raises(SuiteError) as refused:
        load_suite(shop_suite())
    (problem,) = refused.value.problems
    assert problem.path == "languages"
    reason = "this suite was not read from a file, so it has no lock file with translations"
    assert problem.message == f"{reason}; save it as a file"


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
def test_suite_named_like_a_lock_file_is_still_found(text, tmp_path):
    (tmp_path / "door.lock.yaml").write_text(text)
    (source,) = sources(str(tmp_path))
    assert source.path.name == "door.lock.yaml"


def test_editor_schema_has_languages():
    schema = Draft202012Validator(schema_with_added_keys())
    assert schema.is_valid(json.loads(json.dumps(shop_suite(refund_test(languages=["pt-BR"])))))
    assert not schema.is_valid(shop_suite(languages=["German"]))
