"""Pages of the documentation: what they show is valid, and what they list is there."""

import json
import re
import shlex
from dataclasses import fields
from itertools import product
from pathlib import Path

import builders as build
import pytest
import typer
import yaml
from commands import ci_evals
from doc_pages import ROOT, blocks, code, page, table
from plans import make_plan
from pydantic.alias_generators import to_camel

from ci_evals.adapters.models.anthropic_llm import AnthropicLLM
from ci_evals.adapters.models.openai_llm import AzureOpenAILLM, OpenAILLM
from ci_evals.agent_registry import AGENT_KINDS
from ci_evals.cli.app import app
from ci_evals.cli.environment_secrets import secret_variables
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.run_command import RunSettings
from ci_evals.domain.checks.evaluation import PASS_AT, Graded
from ci_evals.domain.results.process import ProcessSummary, Times
from ci_evals.domain.results.usage import Tokens, Usage
from ci_evals.domain.transcript import Integration
from ci_evals.domain.verdict import DimensionGrade, Grade
from ci_evals.extension_registry import providers
from ci_evals.extensions.http.options import HttpOptions, HttpReply
from ci_evals.extensions.http.wire import Reader
from ci_evals.extensions.importers.conversations.formats import CONVERSATION_FORMATS
from ci_evals.extensions.importers.formats import IMPORTERS
from ci_evals.extensions.importers.imported import suite_text
from ci_evals.extensions.importers.importing import import_suite
from ci_evals.extensions.importers.settings import ImportSettings
from ci_evals.extensions.importers.table import COLUMNS, USER_INFO
from ci_evals.extensions.model_programs import claude_code_llm, copilot_llm
from ci_evals.extensions.validate.quality import weaknesses
from ci_evals.planning.agent_choice import AgentChoice, choose
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.model_family import family
from ci_evals.planning.parse import load
from ci_evals.scoring import process
from ci_evals.scoring.scores import ScoreRule
from ci_evals.support import dataclass_json
from ci_evals.support.redaction import Redactor

FRAMEWORK_PAGES = {
    name: (ROOT / f"docs/{name}.md").read_text() for name in ("langgraph", "ag-ui", "a2a", "adk", "rasa")
}


@pytest.mark.parametrize("name", FRAMEWORK_PAGES)
def test_framework_page_lists_every_option_and_shows_valid_suite(name):
    described = {code(option) for option, _ in table("option", FRAMEWORK_PAGES[name])}
    assert described == {field.alias for field in AGENT_KINDS[name].options_form.model_fields.values()}
    (text, *_) = blocks("yaml", FRAMEWORK_PAGES[name])
    suite = choose(load(text, "s.yaml", Reading()), AgentChoice()).suite
    assert suite.adapter == name
    assert any(one.strict == "tool_called" and one.args for test in suite.tests for one in test.evaluations)


def test_responses_page_shows_suite_that_names_the_api():
    (text, *_) = blocks("yaml", page("responses.md"))
    loaded = load(text, "s.yaml", Reading({"AGENT_KEY": "k"}))
    assert choose(loaded, AgentChoice()).suite.adapter_options == {"api": "responses"}


PATHS_PAGE = page("http-paths.md")
ARGUMENTS = {"amount": 42}
ANSWERS = {
    "OpenAI Responses": lambda *calls: {
        "output": [
            *(
                {"type": "function_call", "call_id": "c1", "name": n, "arguments": '{"amount": 42}'}
                for n in calls
            ),
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done"}]},
        ]
    },
    "Anthropic Messages": lambda *calls: {
        "content": [
            {"type": "text", "text": "Done"},
            *({"type": "tool_use", "id": "c1", "name": name, "input": ARGUMENTS} for name in calls),
        ]
    },
    "Gemini": lambda *calls: {"candidates": [{"content": {"parts": google_parts(calls)}}]},
    "Google ADK, `/run`": lambda *calls: [{"content": {"parts": [part]}} for part in google_parts(calls)],
    "AI SDK, steps": lambda *calls: {"text": "Done", "steps": [{"content": ai_sdk_parts(calls)}]},
    "pydantic-ai, new messages": lambda *calls: [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi"}]},
        {
            "kind": "response",
            "parts": [
                {"part_kind": "text", "content": "Done"},
                *({"part_kind": "tool-call", "tool_name": name, "args": ARGUMENTS} for name in calls),
            ],
        },
    ],
}


def google_parts(calls):
    return [*({"functionCall": {"name": name, "args": ARGUMENTS}} for name in calls), {"text": "Done"}]


def ai_sdk_parts(calls):
    called = {"type": "tool-call", "toolCallId": "c", "input": ARGUMENTS}
    return [{"type": "text", "text": "Done"}, *({**called, "toolName": name} for name in calls)]


@pytest.mark.parametrize(("name", "text", "calls"), table("answer of", PATHS_PAGE))
def test_documented_path_finds_calls_and_their_absence(name, text, calls):
    reader = Reader(HttpReply(text=code(text), toolCalls=code(calls)))
    called = reader.reply(ANSWERS[name]("refund"), 0.1, Redactor())
    assert called.agent == "Done"
    assert [(call.name, call.arguments) for call in called.tool_calls] == [("refund", ARGUMENTS)]
    assert reader.reply(ANSWERS[name](), 0.1, Redactor()).tool_calls == ()


def test_path_table_distinguishes_no_calls_from_unknown_and_example_is_valid():
    rows = [
        ("$.output[?@.type == 'function_call']", {"output": [{"type": "message"}]}),
        ("$.output[?@.type == 'function_call']", {}),
        ("$.parts[*].functionCall", {"parts": [{"text": "Hi"}]}),
        ("$.tool_calls", {"tool_calls": []}),
        ("$.tool_calls", {"tool_calls": None}),
    ]
    for (path, body), (_, _, verdict) in zip(rows, table("path", PATHS_PAGE), strict=True):
        reader = Reader(HttpReply(text="$.reply", toolCalls=path))
        reply = reader.reply({"reply": "Hi", **body}, 0.1, Redactor())
        assert (reply.tool_calls == ()) == verdict.startswith("passes"), path
        assert (reply.tool_calls is None) == (verdict == "undecided"), path
    (example,) = blocks("yaml", PATHS_PAGE)
    HttpOptions.model_validate(yaml.safe_load(example)["adapterOptions"])


PROCESS_PAGE = page("process.md")


def test_process_page_example_has_documented_measures():
    (example,) = blocks("json", PROCESS_PAGE)
    turns = []
    for number, turn in enumerate(json.loads(example), start=1):
        integrations = tuple(map(Integration.model_validate, turn["integrations"]))
        more = {"params": turn["params"], "integrations": integrations}
        turns.append(build.turn(number, workflows=tuple(turn["workflows"]), **more))
    optimal = json.loads(re.search(r'"optimalTools": (\[.*?\])', PROCESS_PAGE)[1])
    measures = dataclass_json.to_value(process.of_turns(turns, optimal).process)
    del measures["begun"]
    assert measures == {code(name): float(value) for name, value, _ in table("measure", PROCESS_PAGE)}


def test_process_page_lists_every_measure_and_its_optimal_tools_are_read():
    named = [code(cell).split("`, `") for cell, _ in table("field", PROCESS_PAGE)]
    measures = {to_camel(field.name) for field in fields(ProcessSummary)}
    assert {name for names in named for name in names} == measures
    assert [code(name) for name, _ in table("part", PROCESS_PAGE)] == [field.name for field in fields(Times)]
    (example,) = blocks("yaml", PROCESS_PAGE)
    test = make_plan({"name": "t"} | yaml.safe_load(example)).suites[0].tests[0]
    assert test.optimal_tools == ("POLICY_QUESTION", "CANCEL_BOOKING")


def test_process_page_shows_the_computed_cost_adjusted_score():
    sentence = re.search(r"(\d+) points at \$([\d.]+) per trial are (\d+)", " ".join(PROCESS_PAGE.split()))
    score, each, adjusted = map(float, sentence.groups())
    nothing = process.summary([], 0, ScoreRule(offline=False))
    result = process.of_run(nothing, score, Usage(tokens=Tokens(), cost_usd=each * 3), 3)
    assert result.cost_adjusted_score == pytest.approx(adjusted)


PROVIDERS_PAGE = page("providers.md")
VENDORS = {"openai": OpenAILLM, "openai at Azure": AzureOpenAILLM, "anthropic": AnthropicLLM}


def test_providers_page_lists_every_provider_with_models_and_key_variables():
    rows = {code(row[0]): (code(row[1]), code(row[2])) for row in table("`--provider`", PROVIDERS_PAGE)}
    models = {name: (row.judge, row.user) for name, row in providers().items()}
    assert rows == models | {"offline": ("nothing", "a script")}
    assert list(rows) == list(providers())
    rows = table("provider", PROVIDERS_PAGE)
    keys = {name.replace("`", ""): [code(cell) for cell in cells] for name, *cells in rows}
    assert keys == {
        name: [kind.vendor.key, kind.vendor.bearer or "", kind.vendor.address]
        for name, kind in VENDORS.items()
    }
    assert {key for row in keys.values() for key in row[:2] if key} <= secret_variables()
    for number, kind in enumerate((OpenAILLM, AzureOpenAILLM)):
        variables = yaml.safe_load(blocks("yaml", PROVIDERS_PAGE)[number])["env"]
        environ = {name: str(value) for name, value in variables.items()}
        assert OpenAILLM.for_environment(environ) is kind


def test_providers_page_names_existing_options_versions_and_families():
    named = set(re.findall(r"`?--([a-z][a-z-]+)", PROVIDERS_PAGE)) - {"safe-mode", "json-schema", "global"}
    assert named <= {name.replace("_", "-") for name in RunSettings.__dataclass_fields__}
    for minimum in (claude_code_llm.MIN_VERSION, copilot_llm.MIN_VERSION):
        assert f"version {'.'.join(map(str, minimum))} or later" in PROVIDERS_PAGE
    assert family("gpt-6-luna") == family("openai/o3")
    assert family("claude-opus-5-5") == family("sonnet")


def test_providers_page_quotes_messages_word_for_word():
    sources = " ".join(path.read_text() for path in (ROOT / "ci_evals").rglob("*.py"))
    reported = re.sub(r'"\s*\n?\s*f?"', "", sources).replace("{program.name!r}", "'claude'")
    reported = reported.replace("{self.program.vendor}", "Claude")
    for message, _ in table("message", PROVIDERS_PAGE):
        assert code(message) in reported, message


CONVERSATIONS_PAGE = page("real-conversations.md")


def test_imported_conversation_becomes_documented_test(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    [conversation], [test] = blocks("json", CONVERSATIONS_PAGE), blocks("yaml", CONVERSATIONS_PAGE)
    (tmp_path / "chats.jsonl").write_text(json.dumps(json.loads(conversation)))
    settings = ImportSettings(format="transcript", file=Path("chats.jsonl"), output=tmp_path / "s.yaml")
    import_suite(settings, RunContext({}))
    assert (tmp_path / "s.yaml").read_text().partition("tests:\n")[2] == test
    assert blocks("text", CONVERSATIONS_PAGE)[1] in capsys.readouterr().err


def test_documented_plain_text_is_two_conversations_and_every_format_is_listed(tmp_path):
    source = tmp_path / "chat.txt"
    source.write_text(blocks("text", CONVERSATIONS_PAGE)[0])
    import_suite(ImportSettings(format="transcript", file=source, output=tmp_path / "s.yaml"), RunContext({}))
    assert (tmp_path / "s.yaml").read_text().count("- name:") == 2
    assert [code(cell) for cell, _ in table("format", CONVERSATIONS_PAGE)] == [*CONVERSATION_FORMATS]


RECORDING_PAGE = page("record-and-replay.md")
RUN = typer.main.get_command(app).commands["run"]


def test_recording_page_shows_example_and_valid_commands_and_quotes_messages():
    assert blocks("yaml", RECORDING_PAGE) == [(ROOT / "examples/replay.yml").read_text()]
    for command in blocks("sh", RECORDING_PAGE):
        program, name, *rest = shlex.split(command)
        assert (program, name) == ("ci-evals", "run")
        RUN.make_context(name, rest)
    folders = ("adapters/journal", "cli", "wiring")
    files = [file for folder in folders for file in (ROOT / "ci_evals" / folder).rglob("*.py")]
    source = "".join(file.read_text() for file in files)
    plain = re.sub(r'"\s*f?"', "", source)  # texts that are written in several pieces
    plain = re.sub(r"`(\w+)=`", r"--\1", plain)  # as the command line spells settings
    for message, _ in table("message", RECORDING_PAGE):
        for part in re.split("…| to MODEL | 4 ", code(message)):
            words = part.removeprefix("the recording has no answer to this: ").strip(" ,()")
            assert words in plain, words
    assert "the recording has no answer to this: " in plain


CI_FILES = sorted((ROOT / "examples/other-ci").iterdir())
CI_COMMANDS = typer.main.get_command(app)
COMMIT = "0123456789abcdef0123456789abcdef01234567"
SERVICES = {
    "azure-pipelines.yml": {"TF_BUILD": "True", "BUILD_SOURCEVERSION": COMMIT, "CI": "true"},
    "Jenkinsfile": {"JENKINS_URL": "https://ci.example/", "GIT_COMMIT": COMMIT, "CI": "true"},
    "circleci.yml": {"CIRCLECI": "true", "CIRCLE_SHA1": COMMIT, "CI": "true"},
    "buildkite.yml": {"BUILDKITE": "true", "BUILDKITE_COMMIT": COMMIT, "CI": "true"},
}
"""Variables that each service gives a job, as far as they matter."""


def ci_command(file):
    """The arguments of ci-evals in an example, without the substitution that adds the baseline."""
    text = re.sub(r"\\\n\s*", "", file.read_text())
    words = re.search(r"(?:ci-evals|action:1) (run [^'\n$]*)", text)[1]
    return shlex.split(words)


def test_other_ci_page_shows_every_example_with_valid_command():
    shown = blocks("yaml", page("other-ci.md")) + blocks("groovy", page("other-ci.md"))
    assert sorted(shown) == sorted(file.read_text() for file in CI_FILES)
    assert {file.name for file in CI_FILES} == SERVICES.keys()
    for name, *rest in map(ci_command, CI_FILES):
        assert CI_COMMANDS.commands[name].make_context(name, rest).params["min_score"] == 85


@pytest.mark.slow
@pytest.mark.parametrize("file", CI_FILES, ids=lambda file: file.name)
def test_other_ci_example_passes_and_journals_commit_of_its_service(file, tmp_path):
    (tmp_path / "evals").symlink_to(ROOT / "suites/demo")
    name, _, *options = ci_command(file)
    variables = SERVICES[file.name]
    arguments = [name, "demo:hr", "--test=Refuses", "--provider=offline", *options]
    run = ci_evals(*arguments, cwd=tmp_path, env=variables)
    assert run.returncode == 0, run.stdout + run.stderr
    (commit,) = {value for value in variables.values() if value == COMMIT}
    journal = (tmp_path / "results/journal.jsonl").read_text().splitlines()
    assert json.loads(journal[0])["context"]["commit"] == commit
    assert "::" not in run.stdout
    if "docker run" in file.read_text():
        (passed_on,) = variables.keys() & set(re.findall(r"--env (\w+)", file.read_text())) - {"CI"}
        assert passed_on.endswith(("VERSION", "COMMIT"))


PAGE = page("writing-a-suite.md")
IMPORT = page("import.md")
VALUES = {
    "latency": {"threshold": 1000}, "similar": {"value": "a"}, "is-refusal": {}, "is-json": {"value": None},
    "trajectory:tool-args-match": {"value": {"name": "a", "args": {"b": 1}}},
    "trajectory:tool-sequence": {"value": ["a", "b"]},
    "trajectory:step-count": {"value": {"type": "tool", "max": 3}},
}  # fmt: skip


@pytest.mark.parametrize("example", blocks("yaml", PAGE))
def test_documented_suites_have_no_weaknesses(example):
    assert [str(problem) for problem in weaknesses(load(example, "page.yaml", Reading()))] == []


def test_documented_csv_is_imported_and_every_column_is_listed():
    (example,) = blocks("csv", IMPORT)
    text = suite_text(IMPORTERS["csv"].read(example, "t.csv"), "csv", "t.csv", "s.yaml")
    suite = load(text, "s.yaml", Reading()).suite
    assert [test.name for test in suite.tests] == ["Opening hours", "Closed on Sundays"]
    assert [len(test.evaluations) for test in suite.tests] == [2, 1]
    named = {name for cell, _ in table("column", IMPORT) for name in code(cell).split("`, `")}
    assert named == {*COLUMNS, f"{USER_INFO}NAME"}


ASSERTIONS = [
    (name, code(to)) for cell, to in table("assertion", IMPORT) for name in code(cell).split("`, `")
]


@pytest.mark.parametrize(("assertion", "evaluation"), ASSERTIONS)
def test_promptfoo_assertion_becomes_documented_check(assertion, evaluation):
    given = {"type": assertion, "value": "a"} | VALUES.get(assertion.removeprefix("not-"), {})
    config = json.dumps({"tests": [{"vars": {"question": "Hi"}, "assert": [given]}]})
    (test,) = IMPORTERS["promptfoo"].read(config, "c.json").tests
    assert [item.get("strict", "judged") for item in test["evaluations"]] == [evaluation]


# The coding rubric of the lecture on the evaluation of agents: weight, and what the levels are worth.
CODING = {
    "correctness": (0.40, [1.0, 0.75, 0.5, 0.25, 0.0]), "code quality": (0.20, [1.0, 0.75, 0.5, 0.25, 0.0]),
    "efficiency": (0.15, [1.0, 0.75, 0.5, 0.25, 0.0]), "error handling": (0.15, [1.0, 0.5, 0.0]),
    "process": (0.10, [1.0, 0.5, 0.0]),
}  # fmt: skip


def coding() -> Graded:
    (example,) = [block for block in blocks("yaml", PAGE) if "dimensions" in block]
    suite = load(example, "page.yaml", Reading()).suite
    (graded,) = [item for item in suite.tests[0].evaluations if isinstance(item, Graded)]
    return graded


def test_suite_page_rubric_has_values_of_lecture_and_lists_every_key():
    dimensions = coding().whole_rubric.dimensions
    result = {one.name: (one.weight, [level.score for level in one.levels]) for one in dimensions}
    assert result == CODING
    rows = table("key", PAGE)
    own = Graded.model_fields.keys() - {"criterion", "weight", "category", "aui_logic"}
    assert {code(cell) for cell, _ in rows} == {Graded.model_fields[name].alias for name in own}
    assert f"{PASS_AT:g} by default" in rows[-1][1]


def rubric_evaluate(scores: dict[str, float]) -> float:
    """The lecture's formula."""
    total = sum(score * CODING[name][0] for name, score in scores.items())
    return total / sum(CODING[name][0] for name in scores)


def test_grades_of_documented_rubric_match_formula_of_lecture():
    """For every seventh combination of its levels."""
    rubric = coding().whole_rubric
    for chosen in list(product(*(one.levels for one in rubric.dimensions)))[::7]:
        levels = tuple(
            DimensionGrade(name=one.name, level=level.name, score=level.score, weight=one.weight, reason="")
            for one, level in zip(rubric.dimensions, chosen, strict=True)
        )
        wanted = rubric_evaluate({one.name: one.score for one in levels})
        assert abs(Grade.of(rubric.pass_at, levels).score - wanted) < 1e-12
