"""Sound input of every kind, for fuzz targets to spoil."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import builders as build
import fakes
import github_api
import report_texts

from ci_evals._version import __version__
from ci_evals.adapters.journal import answers, records
from ci_evals.adapters.signing import Chain
from ci_evals.domain.actions import LogicKind
from ci_evals.domain.base import Record
from ci_evals.domain.results.process import Coverage, Reach, Times
from ci_evals.domain.results.run import Git, Tool
from ci_evals.domain.results.usage import RoleUsage, Usage
from ci_evals.domain.transcript import Integration, Reply

_ROOT = Path(__file__).parents[2]


def _json(*values: Any) -> list[bytes]:
    return [json.dumps(value).encode() for value in values]


SUITE = {
    "name": "Refunds", "description": "What may go wrong", "agentId": "agent-1", "apiKey": "key-123456",
    "judgeModel": "gpt-6.1-terra", "minScore": 70, "maxTurns": 3, "x-note": {"a": [1]},
    "tests": [
        {
            "name": "A refund", "guidelines": "You want ${A} and ${B:-none}.",
            "userInfo": {"plan": "Pro", "orders": [1, {"id": "a-1"}], "paid": 29.9},
            "turns": [{"user": "hi", "timeout": 5, "expectation": "greets"}, {"user": "auto"}],
            "evaluations": [
                {"criterion": "polite", "weight": 2, "aui_logic": ["R1"], "category": "tone"},
                {"criterion": "tool", "strict": "tool_used", "toolName": "REFUND"},
                {"criterion": "early", "strict": "tool_not_used", "toolName": "HANDOVER", "beforeTurn": 2},
                {"criterion": "param", "strict": "param_equals", "paramName": "p", "paramValue": {"a": [1]}},
                {"criterion": "says", "strict": "regex", "pattern": "(?i)refund(ed)?", "turn": "any"},
                {"criterion": "right", "strict": "answer_matches", "expected": ["29.90", "30"],
                 "match": "numeric", "tolerance": 0.5},
                {"criterion": "fast", "strict": "max_latency", "seconds": 2.5},
            ],
            "tags": ["money"], "difficulty": "easy", "critical": True, "loops": 2,
            "optimalTools": ["REFUND", "HANDOVER"],
        },
        {"name": "B", "guidelines": "g", "turns": [{"user": "auto"}],
         "evaluations": [{"criterion": "c", "strict": "not_escalated"}], "tags": ["t"]},
    ],
}  # fmt: skip

SUITE_YAML = b"""\
name: Refunds
adapter: http
baseUrl: &base http://127.0.0.1:9
adapterOptions:
  headers: {Authorization: "Bearer {{key}}"}
  send: {path: /chat, body: {text: "{{message}}"}}
  reply: {text: "$.reply", workflows: "$.tools[*].name"}
tests:
  - &first
    name: "A: refund"   # a comment
    guidelines: |
      Two lines,
      and ${A}.
    turns: [{user: hi}, {user: auto}]
    evaluations:
      - {criterion: c, strict: contains, text: ok}
    tags: [t]
  - <<: *first
    name: again
"""

_AUI_TRACE = {
    "input": {"message": "Yesterday evening"},
    "understanding": {
        "guardrails": {"passed": True}, "intents": ["deposit refund"],
        "extracted_params": {"refund-type": "deposit", "days-late": 0, "damage": False, "note": "undefined"},
    },
    "decisions": [
        {"type": "activate_tool", "tool": "DEPOSIT_REFUND", "trigger": {"type": "intent_classification"}},
        {
            "type": "rule_triggered", "tool": "T",
            "rule": {"type": "constraint", "action": "TEXT", "code": "r-1"},
        },
        {
            "type": "call_integration", "tool": "T",
            "integration": {"code": "ledger", "type": "REST", "requests": [], "status_code": 200},
        },
        {"type": "call_integration", "integration": {"code": "kb", "type": "RAG", "error_message": "down"}},
        {"type": "new_kind", "rules": [{"code": "r-2", "triggered": False}, "r-3"]}, None,
    ],
    "response": {"type": "answer", "message": "Released.", "error": None},
    "rules_evaluations": [{"code": "r-1", "triggered": True}],
}  # fmt: skip
AUI = _json(
    {
        "id": "m-1", "created_at": "2026-05-04T09:00:09.300Z",
        "text": "Your deposit of 80.00 was released today.",
        "sender": {"id": "intelligent-agent", "type": "agent"}, "cards": [],
        "executed_workflows": ["DEPOSIT_REFUND"], "trace_info": _AUI_TRACE, "input_tokens": 12,
        "output_tokens": 3,
    },
    {"data": {
        "id": 7, "message": {"text": "Hi"}, "executedWorkflows": {"name": "A"}, "traceInfo": _AUI_TRACE,
    }},
    {"text": None, "executed_workflows": ["CONVERSATION_FORWARDING_X"], "trace": {"decisions": None}},
    {
        "response": ["a", {"content": "b"}],
        "trace": {"parameters_extracted": ["plan", {"code": "p", "value": 1}]},
    },
    {"text": "No", "trace_info": {"response": {"type": "error", "error": {"code": "x", "message": "y"}}}},
    [{"message_id": "m-1", "trace_info": _AUI_TRACE}, {"id": "m-2"}],
    {"items": [{"id": "m-1", "understanding": {"extracted_params": {"plan": {"value": "Pro"}}}}], "total": 1},
    {"id": "66f0aa10c3d2b41e5f000001", "user_id": "u", "title": "New conversation"},
    {
        "status_code": 400, "description": "Moderation", "message": "Flagged.",
        "extra_data": {"category": "demo"},
    },
    {"detail": [{"loc": ["body", "task_id"], "msg": "Field required", "type": "missing"}]},
)  # fmt: skip

_CALL = {"id": "call_1", "type": "function", "function": {"name": "refund", "arguments": '{"order": "a-1"}'}}
CHAT = _json(
    {
        "id": "chatcmpl-1",
        "choices": [{
            "index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Done.", "refusal": None, "tool_calls": [_CALL]},
        }],
        "usage": {"prompt_tokens": 21, "completion_tokens": 5, "total_tokens": 26},
    },
    {"choices": [{"message": {"content": [{"type": "text", "text": "Hi"}, "x"]}, "finish_reason": "length"}]},
    {"choices": [{"message": {"content": None, "function_call": {"name": "f", "arguments": ""}}}]},
    {"choices": [{"message": {"tool_calls": [{"custom": {"name": "c", "input": "text"}}]}}], "usage": None},
    {"error": {"message": "Bad", "code": "x"}},
)  # fmt: skip
ANTHROPIC = _json(
    {
        "type": "message",
        "stop_reason": "end_turn",
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Hi"}],
        "usage": {"input_tokens": 21, "output_tokens": 5},
    },
    {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
)
EMBEDDINGS = _json({
    "data": [{"index": 1, "embedding": [0.1, -2]}, {"index": 0, "embedding": [1, 0]}],
    "usage": {"prompt_tokens": 6},
})  # fmt: skip
CLAUDE_CODE = _json(
    {
        "type": "result", "subtype": "success", "is_error": False, "result": "Hello",
        "structured_output": json.loads(fakes.judge_answer()), "total_cost_usd": 0.0123,
        "usage": {"input_tokens": 3, "cache_read_input_tokens": 10, "output_tokens": 4},
    },
    {"type": "result", "subtype": "error_during_execution", "is_error": True, "errors": ["API Error: 500"]},
)  # fmt: skip
COPILOT = _json(
    {
        "assistant.message": {"data": {"content": fakes.judge_answer(), "toolRequests": []}},
        "usage": {"modelMetrics": {"m": {"usage": {"inputTokens": 100, "outputTokens": 5}}}},
        "result": {"exitCode": 0},
    },
    {
        "session.error": {"data": {"errorType": "rate_limit", "message": "slow down", "statusCode": 429}},
        "result": {"exitCode": 1},
    },
)

HTTP = _json({
    "reply": "Done.", "id": 7, "tools": [{"name": "refund", "status": 200, "value": {"order": 1}}, "lookup"],
    "error": None, "escalated": "no", "usage": {"in": 3, "out": 4.0},
}, [{"reply": ["a", "b"]}, 1, "x"])  # fmt: skip
JSON_PATHS = [
    b"$.reply", b"$['a'][0]", b"$..name", b"$.tools[?@.status == 200 && @.name != 'x'].name", b"$.*",
    b"$.a[1:5:2]",
    b"$[?length(@.name) > 3]", b"$[?count(@.*) > 1]", b"$[?value(@..a) == 1]", b"$.a[-1]", b"$[?!@.a]", b"$",
]  # fmt: skip

LINES = _json({
    "text": "Done.", "workflows": ["REFUND"], "params": {"order": "a-1", "paid": 29.9}, "rules": ["r-1"],
    "integrations": ["ledger", {"code": "kb", "status": 503, "type": "REST", "error": "down"}],
    "escalated": False, "error": None, "inputTokens": 3, "outputTokens": 4, "trace": [{"a": 1}],
}, "Just words.")  # fmt: skip

LIMITS = [
    b"Retry-After: 30\nx-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 6m0.5s\n",
    b"Retry-After: Sat, 21 Nov 2026 09:30:20 GMT\nretry-after-ms: 1500\n",
    b"anthropic-ratelimit-requests-remaining: 0\nanthropic-ratelimit-requests-reset: 2026-11-21T09:31:00Z\n",
    b'RateLimit: "default";r=0;t=30\nX-RateLimit-Reset: 1795253460\nX-RateLimit-Remaining: 0\n',
]

JUDGE = [
    fakes.judge_answer("pass", "It says so.").encode(),
    fakes.judge_answer("fail", "It does not.").encode(),
    fakes.judge_answer("pass", "][").encode(),
    f"```json\n{fakes.judge_answer('pass', 'It says so.', (1, 'Hi'))}\n```".encode(),
]
_LEVELS = [{"name": "good", "score": 1, "description": "so"}, {"name": "poor", "score": 0}]
GRADED_SUITE = json.dumps({
    "name": "S", "agentId": "a", "apiKey": "key-123456",
    "tests": [{
        "name": "t", "guidelines": "g", "turns": [{"user": "hi"}], "tags": ["t"],
        "evaluations": [{
            "criterion": "c", "rubric": _LEVELS,
            "dimensions": [{"name": "tone", "weight": 2}, {"name": "sense", "description": "Sound."}],
        }],
    }],
})  # fmt: skip


def _grade(dimension: str, level: str, **more: Any) -> dict[str, Any]:
    evidence = [{"turn": 1, "quote": "Hi"}]
    return {"dimension": dimension, "reason": "So.", "evidence": evidence, "level": level} | more


def _graded(*levels: dict[str, Any]) -> dict[str, Any]:
    return {"reasoning": "So.", "dimensions": [*levels], "rests_on": "absence", "looked_at": [1]}


GRADES = _json(
    _graded(_grade("tone", "good"), _grade("sense", "poor", evidence=[])),
    _graded(_grade("sense", "good"), _grade("tone", "poor")),
    _graded(_grade("tone", "cannot_tell"), _grade("sense", "good")),
)
PREFERENCES = _json(
    {"reasoning": "The first asks less.", "better": "first"}, {"reasoning": "Alike.", "better": "tie"}
)
CACHE_KEY = "ab" * 32
CACHED_AT = 4102444800
CACHE_SIGNS = b"a key of nobody's"
CACHED = _json({
    "version": 2, "key": CACHE_KEY, "model": "judge",
    "answer": '{"reasoning": "So.", "verdict": "pass"}', "at": CACHED_AT,
    "signature": "0a0f83173e42cfe9b9dcd4f29999dc403df4151c0148b97dc0f7e4ef7c5c7801",
}, {"version": 1, "key": "cd" * 32, "answer": "of another question"})  # fmt: skip
SHEETS = [
    b"\xef\xbb\xbf" + b'"item","criterion","conversation","label","note","labeller"\r\n'
    b'"i1","Is polite","> Hi","pass","",""\r\n"i2","Is brief","> Hi\n> You","cannot tell","hm","ada"\r\n',
    "item;label;labeller\ni1;yes;Zo\u00eb\ni2;0;Zo\u00eb\n".encode("cp1252"),
    "item\tlabel\ni1\tfail\n".encode("utf-16"),
]
_ESTIMATE = {"value": 0.9, "low": 0.8, "high": 1, "count": 20}
_NUMBERS = ("accuracy", "sensitivity", "specificity", "kappa", "alpha", "people", "corrected")
_RATER = {"items": 20, "passRate": 0.5, "mayGate": True, "why": "It agrees."} | dict.fromkeys(
    _NUMBERS, _ESTIMATE
)
CALIBRATIONS = _json({
    "judge": {"provider": "openai", "models": ["m"], "votes": 3, "prompt": "ab" * 32},
    "at": "2026-11-22T09:30:00Z", "run": "run-1", "people": 2, "labels": 40,
    "parts": [
        _RATER | {"name": "all"},
        _RATER | {"name": "c", "kind": "criterion", "accuracy": None, "kappa": None, "mayGate": None},
    ],
})  # fmt: skip
USER = [b"I want my money back.", b"Thanks. ###STOP###", "Dank\u00fc \U0001f600\n\nbye".encode()]


def _results() -> list[bytes]:
    flaky = build.test_result(
        "Fl@ky | test", tags=("a", "b"), difficulty="hard", critical=True,
        trials=(
            build.trial_result(1, times=Times(agent=1.5, user=1, judge=0.5, other=0.25)),
            build.trial_result(
                2,
                turns=(
                    build.turn(
                        workflows=("PAY", "PAY"), params={"p": {"a": [1]}}, rules=("r",),
                        integrations=(Integration(code="i", status=500, error="e"),),
                    ),
                ),
                findings=(build.finding("failed", kind="judged", evidence=(1,), category="tone"),),
            ),
            build.trial_result(3, status="failed", error="no answer", turns=(), findings=()),
        ),
    )  # fmt: skip
    undecided = build.test_result(
        "B",
        user_info={"plan": {"a": [1]}},
        trials=(
            build.trial_result(findings=(build.finding("undecided", cause="no_evidence", aui_logic=("R",)),)),
        ),
    )
    head = build.results(
        build.suite_result("Refunds", flaky, undecided),
        build.suite_result("Other"),
        run=build.run_info(git=Git(commit="a" * 40, ref="refs/heads/x", repository="o/r", pull_request=7)),
        usage=Usage(calls=3, by_role=(RoleUsage(role="judge", model="m", calls=3, cost_usd=0.5),)),
    )
    plain = build.results(run=build.run_info(id="run-2"))
    reach = Reach(kind=LogicKind.RULE, name="gone", trials=0, tests=0, wanted=True)
    gone = replace(reach, compared_trials=0, base_trials=2)
    head = replace(build.with_process(head), coverage=Coverage(traced_trials=3, logic=(gone,)))
    return [report_texts.results_json_text(results).encode() for results in (head, plain)]


RESULTS = _results()


def _lines(*records: Record) -> bytes:
    return b"".join(record.model_dump_json(by_alias=True).encode() + b"\n" for record in records)


def _sealed(*records: Record) -> bytes:
    """The lines of a journal: each with the checksum that chains it to those before."""
    chain = Chain()
    return b"".join(chain.seal(_lines(record)) for record in records)


PLANNED = json.dumps({
    "name": "S", "agentId": "a",
    "tests": [{
        "name": "t", "guidelines": "g", "turns": [{"user": "hi"}], "evaluations": [{"criterion": "c"}],
    }],
})  # fmt: skip
_RUN: dict[str, Any] = {"tool": Tool(version=__version__), "run": "run-1", "started_at": build.STARTED_AT}
_FAILED = build.trial_result(2, status="failed", error="no answer", turns=(), findings=())
JOURNAL = [_sealed(
    records.JournalHeader(digests=build.run_info().digests, **_RUN),
    records.JournalEntry(suite=0, test=0, index=1, elapsed=3.5, result=build.trial_result()),
    records.JournalEntry(suite=0, test=1, index=2, elapsed=4, result=_FAILED),
    records.JournalMark(mark="outage"), records.JournalMark(mark="ended"),
)]  # fmt: skip
_ANSWERS = answers.TrialAnswers(
    trial=answers.TrialKey(file="s.json", suite="S", test="t", index=1),
    attempts=(
        answers.AttemptRecord(fault=answers.ErrorRecord(error="AgentError", message="no")),
        answers.AttemptRecord(answers=(
            answers.ReplyRecord(
                message="hi", answer=Reply(agent="Hello", latency_seconds=1, params={"a": [1]}),
            ),
            answers.ReplyRecord(message="bye", answer=answers.ErrorRecord(error="LLMError", message="odd")),
        )),
    ),
    judge=(answers.AnswerRecord(question="p", answer=answers.TextRecord(text="{}", cost_usd=0.1)),),
    embedder=(answers.AnswerRecord(question="d", answer=answers.VectorsRecord(vectors=((0.5, 1.0),))),),
    evaluations=("e",),
)  # fmt: skip
RECORDING = [_lines(
    records.JournalHeader(
        digests=build.run_info().digests,
        recorded=records.Recorded(
            models=records.RecordedModels(provider="openai"),
            suites=(records.RecordedSuite(file="s.json", name="S", adapter="aui"),),
        ),
        **_RUN,
    ),
    records.JournalEntry(
        suite=0, test=0, index=1, elapsed=3.5, result=build.trial_result(), answers=_ANSWERS,
    ),
    records.JudgeCheckAnswers(judge_check=_ANSWERS.judge),
    records.JournalEntry(suite=0, test=0, index=1, elapsed=4, result=_FAILED),
)]  # fmt: skip
ZIPS = [
    github_api.zip_of({"_results.json": RESULTS[1], "a/_results.json": "{}", "b/": ""}),
    github_api.zip_of({"x/\u00fc/_results.json": "{}"}),
    RESULTS[1],
]

PROMPTFOO = [
    b"""\
description: Desk
prompts: ["You are the desk of {{shop}}. Answer: {{question}}"]
defaultTest:
  vars: {shop: Harbour}
  assert: [{type: not-icontains, value: as an ai}]
assertionTemplates: {short: {type: contains, value: 9}}
tests:
  - description: Opening hours
    vars: {question: ['When does {{shop}} open?', 'Now?'], plan: pro}
    metadata: {tags: [hours], conversationId: 3}
    threshold: 0.8
    options: {repeat: 2}
    assert:
      - {$ref: '#/assertionTemplates/short'}
      - {type: icontains-any, value: ['nine.', 9am], weight: 3}
      - {type: regex, value: '\\d+(a|b)*'}
      - {type: latency, threshold: 1500}
      - {type: similar, value: At nine, threshold: 0.9}
      - {type: 'trajectory:tool-used', value: hours}
      - {type: assert-set, assert: [{type: llm-rubric, value: 'Speaks of {{shop}}', metric: tone}]}
scenarios:
  - config: [{vars: {a: 1}}, {vars: {a: 2}}]
    tests: [{vars: {question: C}}]
""",
    *_json(
        {
            "tests": [
                {
                    "provider": {
                        "id": "promptfoo:simulated-user",
                        "config": {"instructions": "You want {{a}}", "maxTurns": 3},
                    },
                    "vars": {"a": "x", "messages": [{"role": "user", "content": "hi"}, {"user": "x"}]},
                    "assert": [{"type": "llm-rubric", "value": "polite"}],
                }
            ]
        }
    ),
    (
        b"question,plan,__expected,__expected2,__metric,__metadata:tags[],__threshold,__config:__expected2:threshold\n"
        b'"When do\nyou open?",pro,"contains-any: nine, 9 am",similar(0.8): At nine,facts,"a, b",0.5,0.7\n'
        b"Hello,,llm-rubric: Is kind,,,,,\n"
    ),
    (
        b'\n{"vars": {"question": "Hi"}, "assert": [{"type": "not-icontains-any", "value": "Acme,Globex"}]}\n'
        b'{"question": "Bye", "__expected": "not-contains: Hi"}\n'
    ),
]
DEEPEVAL = [
    *_json([{
        "scenario": "You want a refund for a broken jug.",
        "turns": [
            {"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes", "retrieval": 1},
        ],
        "expected_outcome": "The refund is started",
        "persona": {"name": "Ida", "characteristics": "In a hurry."},
        "context": ["Refunds take 5 days"], "name": "Broken jug", "additional_metadata": {"case": "17"},
        "expectations": {"must": ["Names the 5 days"], "must_not": ["Blames her"]}, "tags": ["a"],
    }], {"goldens": [{"scenario": "s", "chatbotRole": "desk", "userDescription": "Ida"}]}),
    b'name,scenario,turns,context\njug,"a, b","[{""role"": ""user"", ""content"": ""hi""}]",x|y\n',
]  # fmt: skip
CONVERSATIONS = [
    b"".join(_json({
        "id": "r-1",
        "userInfo": {"name": "Ann Lee", "phone": "0170 1234567"},
        "messages": [
            {"role": "user", "content": "refund A-1, 20, ann@x.example, 4111 1111 1111 1111 ${A}"},
            {"role": "assistant", "tool_calls": [
                {"id": "t", "function": {"name": "refund", "arguments": '{"order": "A-1", "n": [20, {}]}'}},
            ]},
            {"role": "tool", "tool_call_id": "t", "content": "ok"},
            {"role": "assistant", "content": [{"type": "text", "text": "Done"}]},
        ],
    })),
    b"# T\n[10:31] User: hi\nthere\nAgent: **yes**\n---\nUser: a\nAgent: b\n",
    b"".join(_json({
        "schema_version": "ATIF-v1.7",
        "steps": [
            {"source": "user", "message": "refund A-1"},
            {"source": "agent", "message": [{"text": "x"}], "observation": {"results": [{"content": 1}]},
             "tool_calls": [{"tool_call_id": "t", "function_name": "f", "arguments": {"a": "A-1"}}]},
        ],
    })),
    (Path(__file__).parents[1] / "extensions/spans/recorded/pydantic-ai.json").read_bytes(),
    b"".join(_json({"sessionId": "s", "observations": [
        {"id": "1", "traceId": "t", "type": "AGENT", "startTime": "2026-11-28T10:00:00Z", "endTime": 1e12,
         "input": "refund A-1", "output": {"role": "assistant", "content": "Done"}},
        {"id": "2", "traceId": "t", "parentObservationId": "1", "type": "TOOL", "name": "f", "input": "{}"},
    ]})),
]  # fmt: skip
GAIA = [b"\n".join(_json(
    {"task_id": "c61d22de", "Question": "How many?", "Level": 1, "Final answer": "17", "file_name": ""},
    {"task_id": "x", "Question": "Which?", "Level": "2", "Final answer": "a, b; c", "file_name": "a.xlsx"},
    {"task_id": "y", "Question": "What?", "Final answer": "?", "Annotator Metadata": {"Steps": "1"}},
))]  # fmt: skip
TABLE = [
    b"""\
id;Name;user;turns;guidelines;expected;criterion;tags;Difficulty;max turns;match;user_info.Plan
a-1;Opening hours;When do you open?;;;"nine
9 am";The agent is friendly;hours, happy-path;easy;;fuzzy;
;;;"Hello
auto";You want a refund.;;"Starts the refund
Stays polite";;;4;;Pro
""",
    b"name,user,expected\na,b,c\n",
]
PRICES = [
    (_ROOT / "ci_evals/adapters/prices.yaml").read_bytes(),
    b"models: {gpt-x: {input: 1, output: 5}}\n",
    *_json({"models": {"m": {"input": 1.5, "output": 2}}, "updated": "2026-11-01"}),
]
OPTIONS = [
    b"""\
headers: {Authorization: "Bearer ${A}", X-Session: "{{session}}"}
open: {method: POST, path: /sessions, body: {user: "{{userInfo.name}}"}, session: $.id}
send: {method: POST, path: "/chat/{{session}}", query: {a: b}, body: {text: "{{message}}", a: "{{history}}"}}
close: {method: DELETE, path: "/sessions/{{session}}"}
reply: {text: $.reply, workflows: "$.tools[*]", params: $.params, error: $.error, escalated: $.to}
""",
    *_json({
        "request": {"temperature": 0, "tools": [{"type": "function", "function": {"name": "f"}}]},
        "userInfo": "system", "escalationTools": ["handover"], "toolResults": {"f": {"ok": True}},
        "query": {"v": "1"}, "headers": {"X-A": "b"},
    }),
]  # fmt: skip
THRESHOLDS = [
    b"suite:Refunds=85, category:tone=100\ntag:a,b=7.5",
    b"5\nsuite:Refunds=3",
    b"test:Fl@ky | test=1,logic:R=0",
]
INPUTS = [
    b"suites=demo:hr\nmin-score=80\nloops=3\nthresholds=suite:A=80\ndebug=true\nregression=significant\nargs=\n",
    b"suites=a.json b.json\nprovider=offline\njudge-votes=3\n",
]
EVENTS = _json({
    "action": "opened", "number": 7,
    "pull_request": {
        "number": 7, "head": {"sha": "a" * 40, "ref": "topic", "repo": {"full_name": "fork/r"}},
        "base": {"sha": "b" * 40, "ref": "main"},
    },
    "repository": {"full_name": "o/r"}, "issue": {"number": 7, "pull_request": {"url": "x"}},
    "workflow_run": {
        "id": 11, "run_attempt": 2, "head_sha": "c" * 40, "head_branch": "topic",
        "head_repository": {"full_name": "fork/r"},
    },
    "merge_group": {"base_ref": "refs/heads/main", "base_sha": "d" * 40}, "before": "e" * 40,
}, {})  # fmt: skip
TEXTS = [
    b"See https://example.com, @team and #12: `code` | **bold** <b>x</b>\n::error::no\n1. a\n- b\n",
    b"FINAL ANSWER: 1,234.50 EUR (or 1e3, 20 %)\n",
    "\u202eabc\u200b \x1b[31mred\x1b[0m \u2028 \U0001f600\ufe0f e\u0301".encode(),
    b"key-0123456789 a2V5LTAxMjM0NTY3ODk= key%2d0123456789",
]
SUITES = [json.dumps(SUITE).encode(), (_ROOT / "suites/demo/hr.json").read_bytes()]


_RESULTS = _ROOT / "tests/extensions/result_files/files"


def _result_files(folder: str, *names: str) -> list[bytes]:
    return [path.read_bytes() for name in names for path in sorted((_RESULTS / folder).glob(name))]


GAIA_ANSWERS = (_RESULTS / "gaia/metadata.jsonl").read_bytes()
_JUNIT = (
    b'<testsuites name="all"><testsuite name="s" tests="2"><testcase classname="a" name="b" time="1.5"/>'
    b'<testcase name="b"><failure message="m">t</failure></testcase><testcase name="c"><error/></testcase>'
    b'<testcase name="d"><skipped/><flakyFailure type="x"/></testcase></testsuite></testsuites>'
)
RESULT_FILES = {
    "junit": [_JUNIT], "ctrf": _result_files("ctrf", "*.json"),
    "rows": [
        b"test,trial,passed,score,group,cost,tokens\na,1,true,0.5,g,0.1,7\nb,1,skipped,,,,\n",
        b'{"test": "a", "score": 1, "error": null}\n{"test": "b", "passed": false, "reason": "no"}\n',
    ],
    "inspect": _result_files("inspect", "cancelled.json", "deflated.eval"),
    "promptfoo": _result_files("promptfoo", "shop.*"), "deepeval": _result_files("deepeval", "*.json"),
    "lm-eval": _result_files("lm-eval", "base/*"), "human-eval": _result_files("human-eval", "base*"),
    "swe-bench": _result_files("swe-bench", "*.json"), "tau2": _result_files("tau2", "base.json"),
    "gaia": _result_files("gaia", "base.jsonl"),
    "agentbench": _result_files("agentbench", "base/*/*/*.jsonl"),
    "webarena": _result_files("webarena", "base/*"),
    "webarena-verified": _result_files("webarena-verified", "base/*.json", "base/*/*.json"),
    "eee": _result_files("eee", "base/*"),
}  # fmt: skip
"""Files of other tools, by the format that reads them."""
_KIND = [{"role": "system", "content": "Be kind"}, {"role": "user", "content": "Hi"}]
OPENAI_EVALS = [
    b"\n".join(
        _json(*({"run_id": "evalrun_1", "data_source_idx": i, "item": item} for i, item in enumerate(items)))
    )
    for items in (
        [{"input": "May I return it?", "expected": "30 days", "lang": "en"}, {"question": "Hi", "label": 1}],
        [{"input": _KIND, "ideal": "Hello"}],
    )
]
