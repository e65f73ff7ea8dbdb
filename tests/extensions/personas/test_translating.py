"""`personas translate`: what it asks a model, what it writes, and what it keeps."""

import json
import shutil
from pathlib import Path

import commands
import pytest
import world
import yaml
from each_row import each_row
from fakes import ScriptedLLM
from seeded_judges import prompt_block

from ci_evals.cli.app import invoke
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import LLMAnswerError, SuiteError, UsageError
from ci_evals.extensions.personas.fixed_lines import FixedLine
from ci_evals.extensions.personas.translator import Question, translate
from ci_evals.library.suites import load_suite

HELLO, THANKS = "Hello, I want my money back.", "Thank you, that is all."
PRICES = {"models": {"translator-1": {"input": 1000, "output": 1000}}}


def a_test(name: str = "Refund", **fields) -> dict:
    return {
        "name": name,
        "guidelines": "You want a refund.",
        "turns": [{"user": HELLO}, {"user": "auto"}, {"user": THANKS}],
        "evaluations": [{"strict": "not_escalated", "criterion": "No human"}],
    } | fields


def write_suite(*tests: dict, file: str = "shop.yaml", **fields) -> None:
    suite = {"name": "Shop", "adapter": "python:shop:agent", "languages": ["de"]}
    suite |= {"tests": [*(tests or (a_test(),))]} | fields
    Path(file).write_text(yaml.safe_dump(suite, sort_keys=False))


def lock(file: str = "shop.lock.yaml") -> dict[str, dict[str, str]]:
    """The translations in a lock file, by language and line."""
    data = yaml.safe_load(Path(file).read_text())["translations"]
    return {code: {entry["line"]: entry["text"] for entry in entries} for code, entries in data.items()}


def in_other_words(asked) -> str:
    """Answers with each line and the language before it."""
    texts = {line["number"]: line["text"] for line in prompt_block(asked.text, "conversation")}
    language = prompt_block(asked.text, "language")
    entries = [
        {"number": number, "text": f"[{language}] {texts[number]}"}
        for number in prompt_block(asked.text, "wanted")
    ]
    return json.dumps({"translations": entries})


@pytest.fixture
def models(tmp_path, monkeypatch):
    """A server of models, and an empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    with world.llm(in_other_words) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", served.openai_url)
        yield served


def run(models, *options: str, suites=("shop.yaml",), **environ: str) -> None:
    """Translate in this process."""
    context = RunContext({"LLM_API_KEY": models.key, "OPENAI_BASE_URL": models.openai_url} | environ)
    arguments = ["personas", "translate", *suites, "--provider=openai", "--model=translator-1", *options]
    invoke(arguments, context)


def test_missing_lines_are_translated_and_the_suite_can_be_read(models, capsys):
    write_suite(languages=["de", "pt-BR"])
    with pytest.raises(SuiteError, match=r"run `ci-evals personas translate shop\.yaml`"):
        load_suite("shop.yaml")
    run(models)
    assert lock() == {
        code: {line: f"[{code}] {line}" for line in (HELLO, THANKS)} for code in ("de", "pt-BR")
    }
    entry = yaml.safe_load(Path("shop.lock.yaml").read_text())["translations"]["de"][0]
    assert entry["model"] == "translator-1"
    assert len(entry["made"]) == len("2026-11-29")
    names = [test.name for test in load_suite("shop.yaml").suite.tests]
    assert names == ["Refund", "Refund (de)", "Refund (pt-BR)"]
    shown = capsys.readouterr()
    assert "shop.lock.yaml: 4 lines translated, 0 kept, 0 removed" in shown.out
    assert f"  de: {HELLO} → [de] {HELLO}" in shown.out
    assert "The model was asked 2 times: 52 tokens" in shown.err


def test_nothing_is_asked_if_no_line_is_missing(models, capsys):
    write_suite()
    run(models)
    before = Path("shop.lock.yaml").read_bytes()
    asked = len(models.asked)
    run(models, LLM_API_KEY="")
    assert len(models.asked) == asked
    assert Path("shop.lock.yaml").read_bytes() == before
    assert "shop.lock.yaml: nothing to translate" in capsys.readouterr().out


def test_only_changed_lines_are_translated_again(models, capsys):
    """A correction by hand stays, and a line that is gone goes."""
    write_suite()
    run(models)
    corrected = Path("shop.lock.yaml").read_text().replace(f"[de] {THANKS}", "Danke!")
    Path("shop.lock.yaml").write_text(corrected)
    models.asked.clear()
    write_suite(a_test(turns=[{"user": "I want a new one."}, {"user": THANKS}]))
    run(models)
    (asked,) = models.asked
    assert prompt_block(asked.text, "wanted") == [1]
    assert [line["text"] for line in prompt_block(asked.text, "conversation")] == [
        "I want a new one.",
        THANKS,
    ]
    assert lock()["de"] == {"I want a new one.": "[de] I want a new one.", THANKS: "Danke!"}
    assert "1 line translated, 1 kept, 1 removed" in capsys.readouterr().out


def test_languages_and_lines_that_nothing_needs_are_removed_without_a_model(models, capsys):
    write_suite(languages=["de", "fr"])
    run(models)
    write_suite(a_test(turns=[{"user": HELLO}]))
    run(models, LLM_API_KEY="")
    assert lock() == {"de": {HELLO: f"[de] {HELLO}"}}
    assert "0 lines translated, 1 kept, 3 removed" in capsys.readouterr().out


def test_line_of_several_tests_is_translated_once(models):
    write_suite(a_test(), a_test("Other", turns=[{"user": THANKS}, {"user": "And now?"}, {"user": "4812"}]))
    run(models)
    assert [prompt_block(asked.text, "wanted") for asked in models.asked] in ([[1, 3], [2]], [[2], [1, 3]])
    assert [*lock()["de"]] == [HELLO, THANKS, "And now?"]


def test_variables_are_sent_by_their_names(models):
    line = "My number is ${NUMBER}, I want {{canary.code}}."
    write_suite(a_test(turns=[{"user": line}], canaries={"code": "code"}))
    run(models, NUMBER="4812-4812")
    assert all("4812-4812" not in asked.text for asked in models.asked)
    assert lock()["de"] == {line: f"[de] {line}"}


def test_secret_in_a_line_is_not_sent(models):
    write_suite(a_test(turns=[{"user": "My key is sk-very-secret-4812."}]))
    with pytest.raises(UsageError, match="a line of the test 'Refund' holds a secret of the environment"):
        run(models, MY_API_KEY="sk-very-secret-4812")
    assert models.asked == []


@each_row(
    ("answer", "fault"),
    [
        ([{"number": 1, "text": "Hallo"}], f"the model left out '{THANKS}'"),
        ([{"number": 1, "text": " "}, {"number": 3, "text": "Danke"}], "has no visible character"),
        (
            [{"number": 1, "text": HELLO}, {"number": 3, "text": "Danke"}],
            f"the model left '{HELLO}' as it is",
        ),
        (
            [{"number": 1, "text": "auto"}, {"number": 3, "text": "Danke"}],
            "would be a message of the simulated user",
        ),
        ([{"number": 2, "text": "x"}], "the model translated line 2, which was not asked for"),
        ([{"number": 1, "text": "a"}, {"number": 1, "text": "b"}], f"the model translated '{HELLO}' twice"),
        (
            [{"number": 1, "text": "${KEY}"}, {"number": 3, "text": "b"}],
            "has '${KEY}', which the line does not have",
        ),
        ("none", "the model's answer cannot be read"),
    ],
)
async def test_answer_of_no_use_is_asked_for_again_and_then_refused(answer, fault):
    text = json.dumps({"translations": answer})
    conversation = [FixedLine(HELLO, 0, "user"), FixedLine(THANKS, 2, "user")]
    llm = ScriptedLLM([text])
    with pytest.raises(LLMAnswerError) as refused:
        await translate(llm, Question("Refund", "de", conversation, (HELLO, THANKS)), "1")
    assert fault in str(refused.value)
    assert len(llm.prompts) == 2


async def test_short_line_may_be_the_same_in_another_language():
    text = json.dumps({"translations": [{"number": 1, "text": "OK, Berlin."}]})
    question = Question("Trip", "de", [FixedLine("OK, Berlin.", 0, "user")], ("OK, Berlin.",))
    assert await translate(ScriptedLLM([text]), question, "1") == {"OK, Berlin.": "OK, Berlin."}


def test_suite_with_a_line_that_was_not_translated_keeps_its_lock_file(models, capsys):
    """Another suite, whose lines all were, gets its own."""
    write_suite(a_test(turns=[{"user": "Please leave this as it is."}]), a_test("Other"))
    write_suite(file="other.yaml")
    before = "translations:\n  de:\n  - {line: Old., text: Alt.}\n"
    Path("shop.lock.yaml").write_text(before)

    def stubborn(asked) -> str:
        return in_other_words(asked).replace("[de] Please", "Please")

    models.answer = stubborn
    with pytest.raises(SystemExit) as ended:
        run(models, suites=("shop.yaml", "other.yaml"))
    assert ended.value.code == 3
    assert Path("shop.lock.yaml").read_text() == before
    assert [*lock("other.lock.yaml")["de"]] == [HELLO, THANKS]
    shown = capsys.readouterr().err
    assert "Refund (de): the model left 'Please leave this as it is.' as it is (asked twice)" in shown
    assert "Not written, since translations are missing: shop.lock.yaml" in shown
    assert "Traceback" not in shown


def test_refused_key_writes_nothing(models, capsys):
    write_suite()
    models.always = world.UNAUTHORIZED
    with pytest.raises(SystemExit) as ended:
        run(models)
    assert ended.value.code == 3
    assert not Path("shop.lock.yaml").exists()
    assert "Not written, since translations are missing: shop.lock.yaml" in capsys.readouterr().err


def test_limit_of_cost_ends_it_before_the_next_question(models, capsys):
    Path("prices.yaml").write_text(yaml.safe_dump(PRICES))
    write_suite(*(a_test(f"T{n}", turns=[{"user": f"Line {n} of the test."}]) for n in range(20)))
    with pytest.raises(SystemExit) as ended:
        run(models, "--prices=prices.yaml", "--max-cost=0.1")
    assert ended.value.code == 3
    assert 0 < len(models.asked) < 20
    assert not Path("shop.lock.yaml").exists()
    shown = capsys.readouterr().err
    assert "to stay within $0.1" in shown
    assert "tokens, $0." in shown


def test_limit_of_cost_needs_a_price(models):
    write_suite()
    with pytest.raises(UsageError, match="there is no price for translator-1"):
        run(models, "--max-cost=1")
    assert models.asked == []


def test_no_model_is_one_sentence(models):
    write_suite()
    with pytest.raises(
        UsageError, match=r"^`provider=offline`: no model can translate; set another provider: "
    ):
        run(models, "--provider=offline")
    with pytest.raises(
        UsageError, match=r"^no key for the model that translates \(openai\): set LLM_API_KEY"
    ):
        run(models, LLM_API_KEY="")


def test_suite_without_languages_is_refused(models):
    write_suite(languages=[])
    with pytest.raises(
        UsageError, match=r"^shop.yaml: nothing to translate. Add `languages: \[de\]` to a suite"
    ):
        run(models)
    write_suite(file="german.yaml")
    run(models, suites=(".",))
    assert not Path("shop.lock.yaml").exists()
    assert Path("german.lock.yaml").exists()


def test_lock_file_that_cannot_be_read_is_not_written_over(models):
    write_suite()
    Path("shop.lock.yaml").write_text("translations: 7\n")
    with pytest.raises(SuiteError, match="must be an object, found 7"):
        run(models)
    assert Path("shop.lock.yaml").read_text() == "translations: 7\n"
    assert models.asked == []


def test_suites_that_would_share_a_lock_file_are_refused(models):
    write_suite()
    shutil.copy("shop.yaml", "shop.yml")
    with pytest.raises(UsageError, match=r"would share the lock file shop\.lock\.yaml\. Rename one of them"):
        run(models)


def test_suite_with_more_lines_than_a_lock_file_may_hold_is_refused(models):
    """Else the file would be written, and could not be read."""
    write_suite(*(a_test(f"T{n}", turns=[{"user": f"{n} {'word ' * 10_000}"}]) for n in range(51)))
    with pytest.raises(
        UsageError,
        match=r"its translations would need some 5\.1 MB, and a lock file should have at most 5 MB",
    ):
        run(models)
    assert models.asked == []


def test_translations_longer_than_their_lines_can_be_read(models):
    """A line in Hindi has three times the bytes; who has paid the model must get the file."""

    def in_hindi(asked) -> str:
        return in_other_words(asked).replace("word", "शब्दों")

    models.answer = in_hindi
    write_suite(*(a_test(f"T{n}", turns=[{"user": f"{n} {'word ' * 5000}"}]) for n in range(20)))
    run(models)
    assert Path("shop.lock.yaml").stat().st_size > 1_500_000
    assert len(load_suite("shop.yaml").suite.tests) == 40


def run_while_saving(models, text: str) -> None:
    """Translate while somebody saves another lock file."""

    def meanwhile(asked) -> str:
        Path("shop.lock.yaml").write_text(text)
        return in_other_words(asked)

    models.answer = meanwhile
    run(models)


def test_correction_that_is_saved_while_the_model_is_asked_stays(models, capsys):
    write_suite()
    run(models)
    capsys.readouterr()
    write_suite(a_test(turns=[{"user": HELLO}, {"user": "And now?"}]))
    run_while_saving(
        models, Path("shop.lock.yaml").read_text().replace(f"[de] {HELLO}", "Guten Tag, mein Geld!")
    )
    assert lock()["de"] == {HELLO: "Guten Tag, mein Geld!", "And now?": "[de] And now?"}
    assert "1 line translated, 1 kept, 1 removed" in capsys.readouterr().out


@pytest.mark.parametrize("saved", ["translations: {}\n", "translations: 7\n"])
def test_lock_file_that_lost_translations_while_the_model_was_asked_is_not_written(saved, models, capsys):
    write_suite()
    run(models)
    write_suite(a_test(turns=[{"user": HELLO}, {"user": "And now?"}]))
    with pytest.raises(
        (UsageError, SuiteError), match=r"lost its translation while the model was asked|found 7"
    ):
        run_while_saving(models, saved)
    assert Path("shop.lock.yaml").read_text() == saved
    assert "  de: And now? → [de] And now?" in capsys.readouterr().out


def test_safety_pack_is_translated_too(models):
    write_suite(extends="safety:data", **{"with": {"secretFields": ["notes"]}}, tests=[])
    suite = yaml.safe_load(Path("shop.yaml").read_text())
    del suite["tests"]
    Path("shop.yaml").write_text(yaml.safe_dump(suite))
    with pytest.raises(SuiteError, match="the lock file"):
        load_suite("shop.yaml")
    run(models)
    tests = load_suite("shop.yaml").suite.tests
    pairs = [*zip(tests[::2], tests[1::2], strict=True)]
    assert len(pairs) > 2
    for plain, german in pairs:
        assert (german.name, german.cluster) == (f"{plain.name} (de)", plain.cluster)
        assert german.turns[0].user == f"[de] {plain.turns[0].user}"
        assert german.canaries == plain.canaries


def test_broken_suite_is_refused_with_its_place(models):
    write_suite(a_test(guideline="x"))
    with pytest.raises(SuiteError, match=r"shop\.yaml:\d+:\d+: tests\[0\]\.guideline: unknown key"):
        run(models)


def test_text_of_a_model_is_shown_without_control_characters(models, capsys):
    write_suite(a_test(turns=[{"user": HELLO}]))
    models.answer = lambda _: json.dumps(
        {"translations": [{"number": 1, "text": "Hallo\x1b[31m\n::error::x"}]}
    )
    run(models)
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\n::error::" not in shown
    assert load_suite("shop.yaml").suite.tests[1].turns[0].user == "Hallo\x1b[31m\n::error::x"


@pytest.mark.slow
def test_command_translates(models):
    write_suite()
    done = commands.ci_evals(
        "personas", "translate", "shop.yaml", "--model=m", cwd=Path.cwd(), env=models.env
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("shop.lock.yaml: 2 lines translated, 0 kept, 0 removed")
    listed = commands.ci_evals("plan", "shop.yaml", "--provider=offline", cwd=Path.cwd())
    assert "Refund (de)" in listed.stdout
