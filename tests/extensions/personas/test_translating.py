"""`personas translate`: what it asks a model, what it writes, and what it keeps."""

import json
import re
import shutil
from pathlib import Path

import commands
import pytest
import world
import yaml
from each_row import each_row
from fakes import ScriptedLLM
from refund_suites import HELLO, THANKS, refund_test
from seeded_judges import prompt_block

from ci_evals.cli.app import invoke
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import LLMAnswerError, SuiteError, UsageError
from ci_evals.extensions.personas.fixed_lines import FixedLine
from ci_evals.extensions.personas.translator import Question, translate
from ci_evals.library.suites import load_suite

PRICES = {"models": {"translator-1": {"input": 1000, "output": 1000}}}


def write_suite(*tests: dict, file: str = "shop.yaml", **fields) -> None:
    suite = {"name": "Shop", "adapter": "python:shop:agent", "languages": ["de"]}
    suite |= {"tests": [*(tests or (refund_test(),))]} | fields
    Path(file).write_text(yaml.safe_dump(suite, sort_keys=False))


def translations_in(file: str = "shop.lock.yaml") -> dict[str, dict[str, str]]:
    data = yaml.safe_load(Path(file).read_text())["translations"]
    return {code: {entry["line"]: entry["text"] for entry in entries} for code, entries in data.items()}


def bracketed_translation(question) -> str:
    texts = {line["number"]: line["text"] for line in prompt_block(question.text, "conversation")}
    language = prompt_block(question.text, "language")
    wanted = prompt_block(question.text, "wanted")
    entries = [{"number": number, "text": f"[{language}] {texts[number]}"} for number in wanted]
    return json.dumps({"translations": entries})


@pytest.fixture
def models(tmp_path, monkeypatch):
    """A server of models, and an empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    with world.llm(bracketed_translation) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", served.openai_url)
        yield served


def run(models, *options: str, suites=("shop.yaml",), **environ: str) -> None:
    context = RunContext({"LLM_API_KEY": models.key, "OPENAI_BASE_URL": models.openai_url} | environ)
    arguments = ["personas", "translate", *suites, "--provider=openai", "--model=translator-1", *options]
    invoke(arguments, context)


def refusal(models, *options: str, error: type[UsageError] = UsageError, **environ: str) -> str:
    with pytest.raises(error) as refused:
        run(models, *options, **environ)
    return str(refused.value)


def test_translate_adds_missing_lines_and_shows_them_without_control_characters(models, capsys):
    write_suite(languages=["de", "pt-BR"])
    with pytest.raises(SuiteError, match=r"run `ci-evals personas translate shop\.yaml`"):
        load_suite("shop.yaml")
    run(models)
    expected = {code: {line: f"[{code}] {line}" for line in (HELLO, THANKS)} for code in ("de", "pt-BR")}
    assert translations_in() == expected
    entry = yaml.safe_load(Path("shop.lock.yaml").read_text())["translations"]["de"][0]
    assert (entry["model"], len(entry["made"])) == ("translator-1", len("2026-11-29"))
    names = [test.name for test in load_suite("shop.yaml").suite.tests]
    assert names == ["Refund", "Refund (de)", "Refund (pt-BR)"]
    shown = capsys.readouterr()
    assert "shop.lock.yaml: 4 lines translated, 0 kept, 0 removed" in shown.out
    assert f"  de: {HELLO} → [de] {HELLO}" in shown.out
    assert "The model was asked 2 times: 52 tokens" in shown.err
    write_suite(refund_test(turns=[{"user": HELLO}]), file="other.yaml")
    answer = json.dumps({"translations": [{"number": 1, "text": "Hallo\x1b[31m\n::error::x"}]})
    models.answer = lambda _: answer
    run(models, suites=("other.yaml",))
    shown = capsys.readouterr().out
    assert ("\x1b" in shown, "\n::error::" in shown) == (False, False)
    assert load_suite("other.yaml").suite.tests[1].turns[0].user == "Hallo\x1b[31m\n::error::x"


def test_no_model_is_asked_if_no_line_is_missing(models, capsys):
    write_suite()
    run(models)
    before = Path("shop.lock.yaml").read_bytes()
    question = len(models.asked)
    run(models, LLM_API_KEY="")
    assert (len(models.asked), Path("shop.lock.yaml").read_bytes()) == (question, before)
    assert "shop.lock.yaml: nothing to translate" in capsys.readouterr().out
    write_suite(languages=["de", "fr"])
    run(models)
    write_suite(refund_test(turns=[{"user": HELLO}]))
    run(models, LLM_API_KEY="")
    assert translations_in() == {"de": {HELLO: f"[de] {HELLO}"}}
    assert "0 lines translated, 1 kept, 3 removed" in capsys.readouterr().out


def test_only_changed_lines_are_translated_and_corrections_kept(models, capsys):
    write_suite()
    run(models)
    corrected = Path("shop.lock.yaml").read_text().replace(f"[de] {THANKS}", "Danke!")
    Path("shop.lock.yaml").write_text(corrected)
    models.asked.clear()
    write_suite(refund_test(turns=[{"user": "I want a new one."}, {"user": THANKS}]))
    run(models)
    (question,) = models.asked
    assert prompt_block(question.text, "wanted") == [1]
    texts = [line["text"] for line in prompt_block(question.text, "conversation")]
    assert texts == ["I want a new one.", THANKS]
    assert translations_in()["de"] == {"I want a new one.": "[de] I want a new one.", THANKS: "Danke!"}
    assert "1 line translated, 1 kept, 1 removed" in capsys.readouterr().out


def test_shared_lines_are_sent_once_and_variables_by_name(models):
    turns = [{"user": text} for text in (THANKS, "And now?", "4812")]
    write_suite(refund_test(), refund_test("Other", turns=turns))
    run(models)
    assert sorted(prompt_block(question.text, "wanted") for question in models.asked) == [[1, 3], [2]]
    assert [*translations_in()["de"]] == [HELLO, THANKS, "And now?"]
    line = "My number is ${NUMBER}, I want {{canary.code}}."
    write_suite(refund_test(turns=[{"user": line}], canaries={"code": "code"}))
    run(models, NUMBER="4812-4812")
    assert all("4812-4812" not in question.text for question in models.asked)
    assert translations_in()["de"] == {line: f"[de] {line}"}


def test_unusable_suite_or_options_are_refused_before_model_is_asked(models):
    write_suite()
    assert "there is no price for translator-1" in refusal(models, "--max-cost=1")
    message = refusal(models, "--provider=offline")
    assert message.startswith("`provider=offline`: no model can translate; set another provider: ")
    message = refusal(models, LLM_API_KEY="")
    assert message.startswith("no key for the model that translates (openai): set LLM_API_KEY")
    shutil.copy("shop.yaml", "shop.yml")
    assert "would share the lock file shop.lock.yaml. Rename one of them" in refusal(models)
    Path("shop.yml").unlink()
    write_suite(refund_test(guideline="x"))
    message = refusal(models, error=SuiteError)
    assert re.search(r"shop\.yaml:\d+:\d+: tests\[0\]\.guideline: unknown key", message)
    write_suite(refund_test(turns=[{"user": "My key is sk-very-secret-4812."}]))
    message = refusal(models, MY_API_KEY="sk-very-secret-4812")
    assert "a line of the test 'Refund' holds a secret of the environment" in message
    write_suite(*(refund_test(f"T{n}", turns=[{"user": f"{n} {'word ' * 10_000}"}]) for n in range(51)))
    message = "its translations would need some 5.1 MB, and a lock file should have at most 5 MB"
    assert message in refusal(models)
    write_suite(languages=[])
    assert refusal(models).startswith("shop.yaml: nothing to translate. Add `languages: [de]` to a suite")
    write_suite()
    Path("shop.lock.yaml").write_text("translations: 7\n")
    assert "must be an object, found 7" in refusal(models, error=SuiteError)
    assert (Path("shop.lock.yaml").read_text(), models.asked) == ("translations: 7\n", [])


def both(first: str) -> list[dict]:
    return [{"number": 1, "text": first}, {"number": 3, "text": "Danke"}]


@each_row(
    ("answer", "fault"),
    [
        ([{"number": 1, "text": "Hallo"}], f"the model left out '{THANKS}'"),
        (both(" "), "has no visible character"),
        (both(HELLO), f"the model left '{HELLO}' as it is"),
        (both("auto"), "would be a message of the simulated user"),
        ([{"number": 2, "text": "x"}], "the model translated line 2, which was not asked for"),
        ([{"number": 1, "text": "a"}, {"number": 1, "text": "b"}], f"the model translated '{HELLO}' twice"),
        (both("${KEY}"), "has '${KEY}', which the line does not have"),
        ("none", "the model's answer cannot be read"),
    ],
)
async def test_unusable_answer_is_requested_again_once_then_refused(answer, fault):
    conversation = [FixedLine(HELLO, 0, "user"), FixedLine(THANKS, 2, "user")]
    llm = ScriptedLLM([json.dumps({"translations": answer})])
    with pytest.raises(LLMAnswerError) as refused:
        await translate(llm, Question("Refund", "de", conversation, (HELLO, THANKS)), "1")
    assert (fault in str(refused.value), len(llm.prompts)) == (True, 2)


async def test_translation_equal_to_short_line_is_accepted():
    text = json.dumps({"translations": [{"number": 1, "text": "OK, Berlin."}]})
    question = Question("Trip", "de", [FixedLine("OK, Berlin.", 0, "user")], ("OK, Berlin.",))
    assert await translate(ScriptedLLM([text]), question, "1") == {"OK, Berlin.": "OK, Berlin."}


def test_suite_with_untranslated_line_keeps_its_lock_file(models, capsys):
    write_suite(refund_test(turns=[{"user": "Please leave this as it is."}]), refund_test("Other"))
    write_suite(file="other.yaml")
    before = "translations:\n  de:\n  - {line: Old., text: Alt.}\n"
    Path("shop.lock.yaml").write_text(before)

    models.answer = lambda question: bracketed_translation(question).replace("[de] Please", "Please")
    with pytest.raises(SystemExit) as ended:
        run(models, suites=("shop.yaml", "other.yaml"))
    assert (ended.value.code, Path("shop.lock.yaml").read_text()) == (3, before)
    assert [*translations_in("other.lock.yaml")["de"]] == [HELLO, THANKS]
    shown = capsys.readouterr().err
    assert "Refund (de): the model left 'Please leave this as it is.' as it is (asked twice)" in shown
    assert "Not written, since translations are missing: shop.lock.yaml" in shown
    assert "Traceback" not in shown


def test_lock_file_is_not_written_after_max_cost_or_rejected_key(models, capsys):
    Path("prices.yaml").write_text(yaml.safe_dump(PRICES))
    write_suite(*(refund_test(f"T{n}", turns=[{"user": f"Line {n} of the test."}]) for n in range(20)))
    with pytest.raises(SystemExit) as ended:
        run(models, "--prices=prices.yaml", "--max-cost=0.1")
    assert ended.value.code == 3
    assert 0 < len(models.asked) < 20
    assert not Path("shop.lock.yaml").exists()
    shown = capsys.readouterr().err
    assert "to stay within $0.1" in shown
    assert "tokens, $0." in shown
    write_suite()
    models.always = world.UNAUTHORIZED
    with pytest.raises(SystemExit) as ended:
        run(models)
    assert ended.value.code == 3
    assert not Path("shop.lock.yaml").exists()
    assert "Not written, since translations are missing: shop.lock.yaml" in capsys.readouterr().err


def test_suite_without_languages_is_not_translated(models):
    write_suite(languages=[])
    write_suite(file="german.yaml")
    run(models, suites=(".",))
    assert [path.name for path in Path().glob("*.lock.yaml")] == ["german.lock.yaml"]


@pytest.mark.slow  # it computes
def test_lock_file_of_over_a_megabyte_can_be_read_back(models):
    models.answer = lambda question: bracketed_translation(question).replace("word", "शब्दों")
    write_suite(*(refund_test(f"T{n}", turns=[{"user": f"{n} {'word ' * 5000}"}]) for n in range(20)))
    run(models)
    assert Path("shop.lock.yaml").stat().st_size > 1_500_000
    assert len(load_suite("shop.yaml").suite.tests) == 40


def run_while_saving(models, text: str) -> None:

    def meanwhile(question) -> str:
        Path("shop.lock.yaml").write_text(text)
        return bracketed_translation(question)

    models.answer = meanwhile
    run(models)


def test_correction_saved_during_translation_is_kept(models, capsys):
    write_suite()
    run(models)
    capsys.readouterr()
    write_suite(refund_test(turns=[{"user": HELLO}, {"user": "And now?"}]))
    corrected = Path("shop.lock.yaml").read_text().replace(f"[de] {HELLO}", "Guten Tag, mein Geld!")
    run_while_saving(models, corrected)
    assert translations_in()["de"] == {HELLO: "Guten Tag, mein Geld!", "And now?": "[de] And now?"}
    assert "1 line translated, 1 kept, 1 removed" in capsys.readouterr().out


@pytest.mark.parametrize("saved", ["translations: {}\n", "translations: 7\n"])
def test_lock_file_that_lost_lines_during_translation_is_not_overwritten(saved, models, capsys):
    write_suite()
    run(models)
    write_suite(refund_test(turns=[{"user": HELLO}, {"user": "And now?"}]))
    message = r"lost its translation while the model was asked|found 7"
    with pytest.raises((UsageError, SuiteError), match=message):
        run_while_saving(models, saved)
    assert Path("shop.lock.yaml").read_text() == saved
    assert "  de: And now? → [de] And now?" in capsys.readouterr().out


def test_safety_pack_is_translated(models):
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
        assert (german.turns[0].user, german.canaries) == (f"[de] {plain.turns[0].user}", plain.canaries)


@pytest.mark.slow
def test_translate_command_writes_lock_file(models):
    write_suite()
    arguments = ("personas", "translate", "shop.yaml", "--model=m")
    done = commands.ci_evals(*arguments, cwd=Path.cwd(), env=models.env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("shop.lock.yaml: 2 lines translated, 0 kept, 0 removed")
    listed = commands.ci_evals("plan", "shop.yaml", "--provider=offline", cwd=Path.cwd())
    assert "Refund (de)" in listed.stdout
