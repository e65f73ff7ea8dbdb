"""One function for each parser of foreign text: it lets nothing pass but the errors that are foreseen.

What was read is then used as the program would, and what is promised of it is asserted.
"""

import asyncio
import atexit
import json
import re
import shutil
import tempfile
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import builders as build
import httpx2
import report_texts
import samples
from fakes import ScriptedLLM
from mutation import MOST_BYTES
from pydantic import JsonValue

from ci_evals.adapters import prices
from ci_evals.adapters.answer_cache import AnswerCache
from ci_evals.adapters.github import archive, context
from ci_evals.adapters.journal.journal import Journal
from ci_evals.adapters.journal.reading import Recording
from ci_evals.adapters.journal.records import JOURNAL, JournalHeader, Past
from ci_evals.adapters.journal.replay import ReplayedAgent, ReplayedLLM, TrialReplay
from ci_evals.adapters.models import anthropic_llm, embedders, openai_llm
from ci_evals.adapters.transport import refusals as limits
from ci_evals.adapters.transport import retry
from ci_evals.adapters.transport.network import Answer
from ci_evals.adapters.transport.rate_limiter import RetryableError
from ci_evals.agents.aui import wire as aui_wire
from ci_evals.agents.code import plain_reply
from ci_evals.cli.settings import inputs
from ci_evals.conversation.simulated_user import ModelUser
from ci_evals.domain.checks import answer_matching
from ci_evals.domain.checks.evaluation import Judged
from ci_evals.domain.choices import Regression
from ci_evals.domain.errors import AgentError, LLMError, SuiteError, UsageError
from ci_evals.domain.results.usage import RoleUsage
from ci_evals.domain.suite import PlannedTurn, Suite, Test
from ci_evals.domain.transcript import EndState, Reply, Transcript, Turn, UserSource
from ci_evals.domain.verdict import Cause, Outcome
from ci_evals.extension_support.drafting.draft import draft
from ci_evals.extension_support.drafting.personal_data import StandIns
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.extensions.calibration import later_runs, sheet_reading, terminal
from ci_evals.extensions.http import wire as http_wire
from ci_evals.extensions.http.options import HttpReply
from ci_evals.extensions.importers.conversations.formats import CONVERSATION_FORMATS
from ci_evals.extensions.importers.conversations.recorded_file import RecordedFile
from ci_evals.extensions.importers.formats import IMPORTERS
from ci_evals.extensions.importers.imported import ImportedSuite, suite_text
from ci_evals.extensions.merge import merge as merging
from ci_evals.extensions.merge.shards import ShardRun
from ci_evals.extensions.model_programs import claude_code_llm, copilot_llm
from ci_evals.extensions.openai_api import chat_wire
from ci_evals.extensions.openai_api.options import ChatOptions
from ci_evals.extensions.preference.conversation_pair import ComparedConversation, ConversationPair
from ci_evals.extensions.result_files import reading as result_files
from ci_evals.gate.checks import checks_of
from ci_evals.gate.decision import decide_change
from ci_evals.gate.gate_input import GateInput
from ci_evals.gate.odds import odds_of
from ci_evals.gate.policy import Policy
from ci_evals.gate.selectors import check_names, read_drops, read_thresholds
from ci_evals.grading import graded_criteria, quotes
from ci_evals.grading.judge import Judge, JudgeAnswer
from ci_evals.job.conclude import to_record
from ci_evals.planning.adapter_options import read_options
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load
from ci_evals.planning.selection import Selection, plan
from ci_evals.reports import console, report_files, sanitize
from ci_evals.reports.annotations import annotations
from ci_evals.reports.markdown import comment, documents
from ci_evals.reports.names import JUNIT, RESULTS
from ci_evals.reports.page import page as pages
from ci_evals.reports.story.comparison_runs import ComparisonRun, ComparisonRuns
from ci_evals.reports.story.story import story_of
from ci_evals.scoring import coverage
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.support import dataclass_json, payload
from ci_evals.support.json_path import JsonPath
from ci_evals.support.model_answer import parse_answer
from ci_evals.support.redaction import Redactor
from ci_evals.support.text import has_words

ENVIRON = {"A": "value-of-a"}
KEY = "key-0123456789"
REDACTOR = Redactor(keys=[KEY], values=["value of & a"])


@dataclass(frozen=True)
class Target:
    """A parser under test."""

    run: Callable[[bytes], None]
    samples: list[bytes]
    """What it reads without complaint, or with one that is foreseen."""


TARGETS: dict[str, Target] = {}


def _target(given: list[bytes]) -> Callable[[Callable[[bytes], None]], Callable[[bytes], None]]:
    def keep(function: Callable[[bytes], None]) -> Callable[[bytes], None]:
        TARGETS[function.__name__] = Target(function, given)
        return function

    return keep


def _text(data: bytes) -> str | None:
    """The text of a file, as every reader of one decodes it; None where it is none, which they say."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


# Suites and what goes with them


def _suite(text: str | None, file: str) -> None:
    if text is None:
        return
    try:
        loaded = load(text, file, Reading(environ=ENVIRON))
    except SuiteError as error:
        _has_places(error)
        return
    plan([loaded], Selection(), 2)
    assert Suite.model_validate_json(loaded.suite.model_dump_json(by_alias=True)).name == loaded.suite.name


def _has_places(error: SuiteError) -> None:
    assert error.problems
    assert all(p.line >= 1 and p.column >= 1 and p.message for p in error.problems)


@_target(samples.SUITES)
def suite_json(data: bytes) -> None:
    _suite(_text(data), "s.json")


@_target([samples.SUITE_YAML, samples.SUITES[0]])
def suite_yaml(data: bytes) -> None:
    _suite(_text(data), "s.yaml")


@_target(samples.OPTIONS)
def options_file(data: bytes) -> None:
    if (text := _text(data)) is None:
        return
    for file in ("o.yaml", "o.json"):
        with suppress(UsageError):
            result = read_options(text, file, ENVIRON)
            for adapter in ("http", "openai", "aui"):
                with suppress(UsageError):
                    result.checked(adapter)


@_target(samples.PRICES)
def price_table(data: bytes) -> None:
    for name in ("p.yaml", "p.json"):
        file = _FOLDER / name
        file.write_bytes(data)
        with suppress(UsageError):
            prices.read(file)


_FOLDER = Path(tempfile.mkdtemp(prefix="ci-evals-fuzz-"))
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)


@_target(samples.THRESHOLDS)
def thresholds(data: bytes) -> None:
    """`--thresholds` and `--max-drop`."""
    suites = report_files.load(samples.RESULTS[0], "r").suites
    text = data.decode(errors="replace")
    for read in (read_thresholds, lambda text: read_drops(text)[1]):
        with suppress(UsageError):
            result = read(text)
            assert all(0 <= item.limit <= 100 for item in result)
            check_names("thresholds", result, suites)


@_target(samples.INPUTS)
def action_inputs(data: bytes) -> None:
    """Inputs of the action, `name=value` a line."""
    lines = [line.partition("=") for line in data.decode(errors="replace").split("\n")]
    environ = {f"INPUT_{name.upper()}": value for name, _, value in lines}
    for read in (inputs.read, inputs.check_unused):
        with suppress(UsageError):
            read(environ)


_EVENTS = (*sorted(context.PULL_REQUEST_EVENTS), "issue_comment", "workflow_run", "merge_group", "push", "")


@_target(samples.EVENTS)
def event_payload(data: bytes) -> None:
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        message = {}
    for event in _EVENTS:
        environ = {"GITHUB_EVENT_NAME": event, "GITHUB_REPOSITORY": "o/r", "GITHUB_REF": "refs/pull/7/merge"}
        known = context.read(environ, message)
        assert known.run_url is None or known.run_url.startswith("https://github.com/o/r/actions/runs/")
        assert json.dumps([known.foreign, known.without_secrets, known.of_pull_request])


# Agents


def _evaluations() -> Any:
    suite = {
        "name": "S",
        "agentId": "a",
        "tests": [{"name": "t", "guidelines": "g", "turns": [{"user": "hi"}], "tags": ["t"]}],
    }
    names = {"tool_used": "toolName", "tool_not_used": "toolName", "param_exists": "paramName"}
    names |= {"param_not_exists": "paramName", "rule_triggered": "ruleCode", "rule_not_triggered": "ruleCode"}
    names |= {
        "integration_called": "integrationCode", "contains": "text", "not_contains": "text",
        "regex": "pattern",
    }  # fmt: skip
    plain = ("escalated", "not_escalated", "escalated_due_to_error", "not_escalated_due_to_error")
    items: list[dict[str, Any]] = [{"strict": kind} for kind in plain]
    items += [{"strict": kind, key: "refund-type"} for kind, key in names.items()]
    items += [
        {"strict": "param_equals", "paramName": "days-late", "paramValue": value}
        for value in (0, "0", [1], None)
    ]
    items += [{"strict": "answer_matches", "expected": "80", "match": mode} for mode in _MODES]
    items += [{"strict": "max_agent_turns", "turns": 3}, {"strict": "max_latency", "seconds": 1}]
    suite["tests"][0]["evaluations"] = [{"criterion": "c", **item} for item in items]
    return load(json.dumps(suite), "s.json", Reading()).suite.tests[0].evaluations


_MODES = ("bidirectional", "gaia", "exact", "contains", "fuzzy", "numeric")
PLAN = plan([load(samples.PLANNED, "s.json", Reading())], Selection(), 1)
EVALUATIONS = _evaluations()
_FIELDS = {
    "escalated": ("handed_over", "workflows"), "not_escalated": ("handed_over", "workflows"),
    "tool_used": ("workflows",), "tool_not_used": ("workflows",), "param_exists": ("params",),
    "param_not_exists": ("params",), "param_equals": ("params",), "rule_triggered": ("rules",),
    "rule_not_triggered": ("rules",), "integration_called": ("integrations",),
    "escalated_due_to_error": ("error_response",), "not_escalated_due_to_error": ("error_response",),
}  # fmt: skip
"""What of a reply is the evidence of each check."""


def _judged(reply: Reply) -> None:
    """A reply can be kept, shown and judged, and nothing is decided without evidence."""
    turn = Turn(**dict(reply) | {"index": 1, "user": "hi", "user_source": UserSource.FIXED})
    kept = REDACTOR.model(turn)
    assert Turn.model_validate_json(kept.model_dump_json()) == kept
    assert KEY not in kept.model_dump_json()
    transcript = Transcript(turns=(kept,), status=EndState.COMPLETED)
    for evaluation in EVALUATIONS:
        verdict = evaluation.decide(transcript)
        fields = _FIELDS.get(evaluation.strict)
        if fields and all(getattr(reply, name) is None for name in fields):
            assert verdict.outcome is Outcome.UNDECIDED, evaluation
    documents._actions(kept)


def _parsed(data: bytes) -> JsonValue:
    try:
        return payload.parse(data)
    except ValueError:
        assert len(payload.error_detail(data, REDACTOR)) <= payload.MAX_EXCERPT + 30
        raise AgentError("no JSON") from None


@contextmanager
def _foreseen(*errors: type[Exception]) -> Iterator[None]:
    """Lets errors pass that a person can read: short, without a secret."""
    try:
        yield
    except errors as error:
        _is_worded(error)


def _is_worded(error: Exception, most: int = 2_000) -> None:
    assert str(error).strip()
    assert KEY not in str(error)
    assert len(str(error)) <= most, str(error)[:3000]


@_target(samples.AUI)
def aui(data: bytes) -> None:
    """Whatever AUI's API says: a task, a reply, a trace."""
    with _foreseen(AgentError):
        body = _parsed(data)
        with _foreseen(AgentError):
            assert aui_wire.task_id_of(body, REDACTOR).strip()
        fetched = aui_wire.fetched_trace_of(body, aui_wire.message_id_of(body) or "m-1")
        for trace in (None, fetched):
            _judged(aui_wire.read_reply(body, 0.5, REDACTOR, fetched_trace=trace, keep_raw=True))


@_target(samples.CHAT)
def chat(data: bytes) -> None:
    """An agent's chat completion."""
    with _foreseen(AgentError):
        result = chat_wire.read(_parsed(data), REDACTOR)
        for options in (_CHAT, ChatOptions()):
            with _foreseen(AgentError):
                if result.waits:
                    json.dumps(chat_wire.results(result, {"refund": {"ok": True}, "f": "x", "c": None}))
            _judged(chat_wire.reply([result, result], 0.5, options))


_CHAT = ChatOptions.model_validate({"escalationTools": ["handover"], "request": {"tools": []}})


@_target(samples.HTTP)
def http(data: bytes) -> None:
    """An answer of any JSON endpoint, by several paths."""
    body = None
    with _foreseen(AgentError):
        body = _parsed(data)
    for path in ("$.reply", "$", "$.*", "$..name", "$.tools[*]", "$[?@.status >= 200]", "$[0]"):
        named = {name: path for name in HttpReply.model_fields if name != "text"}
        with _foreseen(AgentError):
            http_wire.session_of(body, JsonPath(path), REDACTOR)
        with _foreseen(AgentError):
            _judged(
                http_wire.Reader(HttpReply(text="$.reply", **named)).reply(body, 0.5, REDACTOR, keep_raw=True)
            )


@_target(samples.JSON_PATHS)
def json_path(data: bytes) -> None:
    """A JSONPath, of any form."""
    try:
        path = JsonPath(data.decode(errors="replace"))
    except ValueError:
        return
    for sample in (*samples.HTTP, *samples.AUI[:2]):
        with suppress(ValueError):
            path.find(json.loads(sample))


@_target(samples.LINES)
def plain(data: bytes) -> None:
    """A line of a program, or what a function gives back."""
    try:
        reply = plain_reply.read(payload.parse(data), 0.5, keep_raw=True)
    except ValueError as error:
        _is_worded(error, MOST_BYTES * 10)  # the caller cuts it
        return
    _judged(reply)


# Models


def _asked(answer: str) -> Any:
    """A judge of a conversation of one turn, whose model answers so."""
    transcript = Transcript(turns=(_SAID,), status=EndState.COMPLETED)
    return Judge([ScriptedLLM([answer])], REDACTOR).context(TEST, [PlannedTurn(user="hi")], transcript)


@_target(samples.JUDGE)
def judge(data: bytes) -> None:
    """What a judge answers: it passes only what the answer says outright."""
    text = data.decode(errors="replace")
    verdict = asyncio.run(_asked(text).decide(Judged(criterion="c")))
    result = parse_answer(JudgeAnswer, text)
    if verdict.outcome is Outcome.UNDECIDED:
        assert result is None or result.verdict == "cannot_tell" or verdict.cause is Cause.VOID_ANSWER
    else:
        assert result is not None
        assert result.verdict == ("pass" if verdict.outcome is Outcome.PASSED else "fail")
        assert result.met is (verdict.outcome is Outcome.PASSED)
        assert all(one.turn == 1 for one in result.evidence)
        assert verdict.reason.strip()


@_target(samples.GRADES)
def grades(data: bytes) -> None:
    """What a judge answers where a rubric has levels: a grade only of levels that the rubric has."""
    verdict = asyncio.run(graded_criteria.decide(_asked(data.decode(errors="replace")), GRADED))
    if verdict.outcome is Outcome.UNDECIDED:
        assert verdict.grade is None
        return
    assert verdict.grade
    assert {one.name: one.level for one in verdict.grade.dimensions}.keys() == {"tone", "sense"}
    assert all(one.level in {"good", "poor"} and one.reason.strip() for one in verdict.grade.dimensions)
    assert (verdict.outcome is Outcome.PASSED) == (verdict.grade.score >= verdict.grade.pass_at)


@_target(samples.PREFERENCES)
def preference(data: bytes) -> None:
    """What a judge answers who compares two conversations: without reasons it prefers none."""
    result = Transcript(turns=(_SAID,), status=EndState.COMPLETED)
    one = ComparedConversation([PlannedTurn(user="hi")], result)
    asked = ConversationPair(REDACTOR, build.test_result(), ["c"], one, one)
    judged = asyncio.run(asked.ask(ScriptedLLM([data.decode(errors="replace")]), swapped=False))
    assert judged.reason.strip()
    assert judged.better is None or has_words(judged.reason)


@_target(samples.TEXTS)
def quote(data: bytes) -> None:
    """Any words as a quote, and as what was said: what was said stands there, if it says anything."""
    text = data.decode(errors="replace")
    quotes.occurs(text, ["What was said", ""])
    quotes.occurs("was said", [text])
    if any(map(str.isalnum, quotes.folded(text))):
        assert quotes.occurs(text, [text])


@_target(samples.CACHED)
def cached_answer(data: bytes) -> None:
    """A file in the folder of answers: the answer to that question, or none."""
    file = _FOLDER / samples.CACHE_KEY[:2] / f"{samples.CACHE_KEY}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(data)
    cache = AnswerCache(_FOLDER, REDACTOR, samples.CACHE_SIGNS, clock=lambda: samples.CACHED_AT)
    result = cache.find(samples.CACHE_KEY, "judge")
    wanted = {"version": 2, "answer": result}
    assert result is None or json.loads(data) | wanted == json.loads(data)


GRADED = load(samples.GRADED_SUITE, "s.json", Reading()).suite.tests[0].evaluations[0]


_SAID = Turn(agent="Hi", latency_seconds=1, index=1, user="hi", user_source=UserSource.FIXED)
TEST = Test.model_validate({
    "name": "t", "guidelines": "g", "tags": ["t"], "evaluations": [{"criterion": "c"}],
    "turns": [{"user": "hi"}],
})  # fmt: skip


@_target(samples.USER)
def user(data: bytes) -> None:
    """What a simulated user says."""
    text = data.decode(errors="replace")
    with _foreseen(LLMError):
        result = asyncio.run(ModelUser(ScriptedLLM([text]), REDACTOR).next_message(TEST, [_SAID]))
        _judged(_SAID.model_copy(update={"agent": result}))


_MODELS = {
    kind: kind("m", KEY, "http://127.0.0.1:9") for kind in (openai_llm.OpenAILLM, anthropic_llm.AnthropicLLM)
}


@_target([*samples.CHAT, *samples.ANTHROPIC])
def completion(data: bytes) -> None:
    """An answer of a model's provider."""
    for model in _MODELS.values():
        with _foreseen(LLMError):
            result = model._completion(Answer(200, body=data))
            assert result.text.strip()
            _counted(result.input_tokens, result.output_tokens, result.cost_usd)


@_target(samples.EMBEDDINGS)
def embeddings(data: bytes) -> None:
    """An answer of an embedding model's provider."""
    with _foreseen(LLMError):
        answer = _MODELS[openai_llm.OpenAILLM]._object(Answer(200, body=data))
        for vector in embedders._vectors(answer):
            assert all(isinstance(number, float) for number in vector)


@_target(samples.CLAUDE_CODE)
def claude_code(data: bytes) -> None:
    """The last event of the program `claude`."""
    with suppress(ValueError):
        event = payload.parse(data)
        if isinstance(event, dict):
            with _foreseen(LLMError):
                result = _CLAUDE._read({"result": event}, _FOLDER)
                _counted(result.input_tokens, result.output_tokens, result.cost_usd)


@_target(samples.COPILOT)
def copilot(data: bytes) -> None:
    """The events of the program `copilot`, by their types, and the file of what it used."""
    with suppress(ValueError):
        parsed = payload.parse(data)
        if isinstance(parsed, dict):
            (_FOLDER / copilot_llm._USAGE).write_bytes(json.dumps(parsed.get("usage")).encode())
            events = {name: event for name, event in parsed.items() if isinstance(event, dict)}
            with _foreseen(LLMError, RetryableError):
                result = _COPILOT._read(events, _FOLDER)
                _counted(result.input_tokens, result.output_tokens, result.cost_usd)


def _without_program(kind: type[Any], who: str) -> Any:
    """A model without a program behind it: what is read here is what such a program has said."""
    model = object.__new__(kind)
    model.who, model._redactor = who, REDACTOR
    return model


_CLAUDE = _without_program(claude_code_llm.ClaudeCodeLLM, "claude 2")
_COPILOT = _without_program(copilot_llm.CopilotLLM, "copilot 1")


def _counted(tokens_in: int | None, tokens_out: int | None, cost: float | None) -> None:
    """What a model used stands in the results, over many calls; None if nobody knows it."""
    RoleUsage(
        role="judge", model="m", calls=1, input_tokens=1000 * (tokens_in or 0),
        output_tokens=1000 * (tokens_out or 0), cost_usd=cost,
    )  # fmt: skip


@_target(samples.LIMITS)
def rate_limits(data: bytes) -> None:
    """Headers that tell of limits, `name: value` a line."""
    lines = [line.partition(b":") for line in data.split(b"\n")]
    headers = httpx2.Headers([(name.strip(), value.strip()) for name, _, value in lines])
    for read in (limits.requested_wait, limits.used_up):
        result = read(headers, build.STARTED_AT)
        assert result is None or result >= 0
        assert 0 < retry.wait_seconds(0, result, 1) <= retry.MAX_WAIT_SECONDS
    for status in (400, 401, 402, 403, 429):
        limits.quota_used_up(status, data)
        limits.refuses_key(status, data)


# Results


@_target(samples.RESULTS)
def results(data: bytes) -> None:
    """A results file: every report of it, its comparison with another, and it as a shard of a run."""
    try:
        result = report_files.load(data, "r.json")
    except UsageError as error:
        _is_worded(error, MOST_BYTES * 10)
        return
    clean = REDACTOR.model(result)
    files = report_texts.files_of_run(clean)
    ET.fromstring(files[JUNIT])
    again = report_files.load(files[RESULTS], "again")
    assert report_texts.results_json_text(again) == files[RESULTS]
    console.render(story_of(clean), verbose=True)
    comment.render(story_of(clean), comment.SummaryContext())
    annotations(story_of(clean))
    odds_of(clean, checks_of(GateInput(clean), Policy()))
    for head, base in ((clean, _OTHER), (_OTHER, clean)):
        comparer = RunComparer(head, base)
        policy = Policy(max_drop=5, regression=Regression.SIGNIFICANT)
        gate = to_record(decide_change(GateInput(head, comparer), policy))
        reached = coverage.compared(head.coverage, comparer.pairs)
        comparison = replace(head, comparison=comparer.comparison(), gate=gate, coverage=reached)
        documents.comparison(story_of(comparison))
        documents.summary(story_of(comparison))
        console.comparison(story_of(comparison), color=False)
    with suppress(UsageError):
        merging.merge([ShardRun("a", clean), ShardRun("b", _OTHER)])


@_target(samples.RESULTS)
def page(data: bytes) -> None:
    """The page of a results file, beside another and compared with it: whole, and its data read again."""
    try:
        result = report_files.load(data, "r.json")
    except UsageError:
        return
    for head, base in ((result, _OTHER), (_OTHER, result)):
        compared = RunComparer(head, base).comparison()
        comparison_runs = ComparisonRuns(
            baseline=base, others=(ComparisonRun.of(base, "then"), ComparisonRun.of(head, "now"))
        )
        text = "".join(pages.render(story_of(replace(head, comparison=compared), comparison_runs)))
        text.encode()
        packed = re.findall(
            r'<script type="application/octet-stream" id="[tb]\d+(?:\.\d+)?">(.*)</script>', text
        )
        assert all(json.loads(zlib.decompress(b64decode(one, validate=True))) for one in packed)
        index = re.findall(r'<script type="application/json" id="index">(.*)</script>', text)
        listed = json.loads(*index)["tests"]
        tests = sum(len(suite.tests) for suite in head.suites)
        assert len(listed) == tests <= len(packed)
        assert all(one.isascii() for one in (*packed, *index))


@_target(samples.JOURNAL)
def journal(data: bytes) -> None:
    """The journal of a run that was interrupted."""
    (_FOLDER / JOURNAL).write_bytes(data)
    with _foreseen(UsageError):
        kept = Journal(_FOLDER, resume=True)
        for result in kept.past.done.values() if kept.past else ():
            assert result.score is None or 0 <= result.score <= 100
        # What is gone on with says the same again; a torn end is cut off once.
        kept.open(kept.past.header if kept.past else _HEADER)
        kept.close()
        again = Journal(_FOLDER, resume=True)
        assert again.past == (kept.past or Past(_HEADER, {}, 0.0))


_HEADER = JournalHeader.model_validate_json(samples.JOURNAL[0].split(b"\n")[0])


@_target(samples.RECORDING)
def recording(data: bytes) -> None:
    file = _FOLDER / "recording.jsonl"
    file.write_bytes(data)
    with _foreseen(UsageError):
        result = Recording(file)
        assert result.size <= len(data)
        playback = TrialReplay(result, PLAN, PLAN.trials[0], REDACTOR)
        with _foreseen(AgentError, LLMError):
            asyncio.run(_replayed(playback))


async def _replayed(playback: TrialReplay) -> None:
    agent = ReplayedAgent(playback)
    for _ in range(2):
        with suppress(AgentError):
            _judged(await agent.send_message(await agent.open_session(TEST), "hi", timeout=1))
    model = ReplayedLLM("m", "the judge's question", playback.answers.judge, playback)
    result = await model.complete(claude_code_llm.Prompt(system="", text="hi"))
    _counted(result.input_tokens, result.output_tokens, result.cost_usd)


_OTHER = report_files.load(samples.RESULTS[0], "other")


@_target(samples.ZIPS)
def artifact(data: bytes) -> None:
    with suppress(archive.ArchiveError):
        content = archive.read(BytesIO(data), "_results.json")
        with suppress(UsageError):
            report_files.load(content, "the artifact")


# What people say of a judge


@_target(samples.SHEETS)
def sheet(data: bytes) -> None:
    """A filled sheet, as spreadsheets save it."""
    file = _FOLDER / "ada.csv"
    file.write_bytes(data)
    try:
        result = sheet_reading.read([file])
    except UsageError as error:
        _is_worded(error, MOST_BYTES * 10)
        return
    assert result
    assert all(one.item and one.labeller and one.passed in {True, False, None} for one in result)
    assert len({(one.item, one.labeller.casefold()) for one in result}) == len(result)


@_target(samples.CALIBRATIONS)
def calibration(data: bytes) -> None:
    """What `run --calibration` shows."""
    file = _FOLDER / "calibration.json"
    file.write_bytes(data)
    with _foreseen(UsageError):
        result = later_runs.read_file(file)
        file.write_text(dataclass_json.to_json(result), encoding="utf-8")
        assert later_runs.read_file(file) == result
        terminal.render(result)


# Other tools' files


def _result_file(form: str) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        answers = SourceFile("answers.jsonl", samples.GAIA_ANSWERS)
        try:
            _, sets = result_files.read_file(SourceFile("f", data, {"answers": answers}), form)
        except UsageError as error:
            _is_worded(error, MOST_BYTES * 10)
            return
        for results in sets:
            assert all((row.passed is None) is not (row.undecided is None) for row in results.rows)

    return read


for _form, _samples in samples.RESULT_FILES.items():
    TARGETS[f"results_of_{_form.replace('-', '_')}"] = Target(_result_file(_form), _samples)


def _imported(kind: str, files: Mapping[str, str], data: bytes) -> None:
    if (text := _text(data)) is None:
        return
    for source, output in files.items():
        try:
            written = suite_text(IMPORTERS[kind].read(text, source), kind, source, output)
        except UsageError as error:
            _is_worded(error, MOST_BYTES * 10)
        else:
            assert ENVIRON["A"] not in str(load(written, output, Reading(environ=ENVIRON)).suite)


@_target(samples.PROMPTFOO)
def promptfoo(data: bytes) -> None:
    """A configuration of promptfoo, or a file of its tests."""
    files = {"c.yaml": "s.yaml", "c.json": "s.json", "t.csv": "s.yaml", "t.jsonl": "s.json"}
    _imported("promptfoo", files, data)


@_target(samples.DEEPEVAL)
def deepeval(data: bytes) -> None:
    _imported("deepeval", {"g.json": "s.yaml", "g.jsonl": "s.json", "g.csv": "s.json"}, data)


@_target(samples.OPENAI_EVALS)
def openai_evals(data: bytes) -> None:
    """Rows of OpenAI's hosted evals."""
    _imported("openai-evals", {"r.jsonl": "s.yaml", "c.yaml": "s.json"}, data)


@_target(samples.CONVERSATIONS)
def conversations(data: bytes) -> None:
    """Real conversations, in each format of files."""
    for name in ("c.jsonl", "c.json", "c.txt"):
        for form in CONVERSATION_FORMATS.values():
            imported = ImportedSuite("-")
            try:
                result = form.read(RecordedFile(name, data), imported)
                for one in map(StandIns(result).conversation, result):
                    drafted = draft(one, tags=())
                    imported.add(drafted.title, drafted.fields, drafted.place, drafted.notes)
                written = suite_text(imported, "transcript", name, "s.yaml")
            except UsageError as error:
                _is_worded(error, MOST_BYTES * 10)
            else:
                assert ENVIRON["A"] not in str(load(written, "s.yaml", Reading(environ=ENVIRON)).suite)


@_target(samples.GAIA)
def gaia(data: bytes) -> None:
    """GAIA's questions."""
    _imported("gaia", {"m.jsonl": "s.yaml", "m.json": "s.json", "m.csv": "s.json"}, data)


@_target(samples.TABLE)
def table(data: bytes) -> None:
    _imported("csv", {"t.csv": "s.yaml"}, data)


# Any text


@_target(samples.TEXTS)
def answer(data: bytes) -> None:
    """A text as the answer, and as the expected one, in every way of comparing both."""
    text = data.decode(errors="replace")
    for result, expected in ((text, "80"), ("I found 1,234.5", text), (text, text)):
        answer_matching.bidirectional(result, expected)
        answer_matching.gaia(answer_matching.final_answer(result), expected)
        assert not (
            answer_matching.exact(result, expected) and not answer_matching.contains(result, expected)
        )
        assert 0 <= answer_matching.similarity(result, expected) <= 1
        answer_matching.numeric(result, expected, 0.5, 0.1)


@_target(samples.TEXTS)
def report_text(data: bytes) -> None:
    """A text in every place of a report."""
    text = data.decode(errors="surrogateescape")
    for line in (sanitize.one_line, sanitize.inline, sanitize.sentence, sanitize.cell, sanitize.log_line):
        assert "\n" not in line(text)
    assert "<" not in sanitize.html_in_markdown(text)
    assert all(line.startswith(">") for line in sanitize.quote(text).split("\n"))
    ET.fromstring("<a>" + sanitize.xml(text).replace("&", "").replace("<", "") + "</a>")
    block = sanitize.code_block(text).split("\n")
    assert block[0] not in block[1:-1]
    assert all(line.startswith("> ") for line in sanitize.log(text, "> ").split("\n"))
    assert len(sanitize.cut(text, 100).encode()) <= 100 + len(sanitize.CUT_NOTE.encode()) + 1
    name = sanitize.file_name(text)
    assert name == Path(name).name
    assert len(name.encode()) <= 100


LONGEST_SECRET = 80
"""Of those made of any text. A user chooses it; one that repeats ` %20` by the dozen is none."""


@_target(samples.TEXTS)
def secret(data: bytes) -> None:
    """A text that holds secrets, and one that is a secret."""
    text = data.decode(errors="replace")
    assert KEY not in REDACTOR.text(f"{text}{KEY}{text}")
    own = Redactor(values=[text[:LONGEST_SECRET]])
    if own.values and text.strip().isprintable() and len(text) <= LONGEST_SECRET:
        assert text.strip() not in own.text(f"a {text} b")
