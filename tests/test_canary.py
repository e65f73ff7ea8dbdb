"""Random secrets in every source, echoed by every neighbour: no output holds any of them, in any form."""

import csv
import json
import sys
from contextlib import contextmanager
from urllib.parse import quote

import endpoints
import fakes
import github_api
import pytest
import report_page
import workflow_replay
import world
from canary import Canaries, encodings
from commands import ci_evals, read_files
from world import Fault

from ci_evals.domain.errors import SuiteError
from ci_evals.planning.adapter_options import read_options
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load
from ci_evals.support.redaction import Redactor

pytestmark = pytest.mark.slow

PYTHON_AGENT = """
import os, pathlib
ECHO = pathlib.Path("echo.txt").read_text()
def reply(message, session):
    if message == "fall":
        raise LookupError(ECHO)
    call = {"id": ECHO, "name": ECHO, "arguments": {ECHO: ECHO}, "result": [ECHO], "agent": ECHO}
    calls = [call, {"name": "cut", "arguments": "{" + ECHO}]
    return {"text": ECHO, "toolCalls": calls, "workflows": [ECHO], "params": {ECHO: ECHO}, "trace": [ECHO]}
"""
PROGRAM = """
import json, os, pathlib, sys
echo = pathlib.Path("echo.txt").read_text()
pathlib.Path("argv.txt").write_text("\\n".join(sys.argv))
for line in sys.stdin:
    heard = json.loads(line)
    if heard["type"] == "message" and heard["text"] == "fall":
        sys.exit("\\n".join(os.environ.values()) + "x" * 99 + echo)
    if heard["type"] == "message" and heard["text"] == "babble":
        print(echo, flush=True)
    elif heard["type"] == "message":
        print(json.dumps({"text": "\\n".join(os.environ.values()), "error": echo}), flush=True)
"""
JUDGED = {"criterion": "Is polite"}


@pytest.mark.end_to_end
def test_canaries_are_found_in_every_encoding_and_redacted():
    """The search finds a planted key, so finding nothing means something."""
    canaries = Canaries()
    secret = canaries.plant("KEY", more="ö\n")
    canaries.plant("OTHER")
    for form in encodings(secret):
        assert canaries.leaks(f"<{form}>", "KEY"), form
        assert not canaries.leaks(f"<{form}>", "OTHER")
        assert not canaries.leaks(Redactor(keys=[secret]).text(f"<{form}>"))


class Actions(workflow_replay.Actions):
    """The action, in a workspace that somebody fills."""

    def __init__(self, api, folder, files):
        super().__init__(api, folder)
        self.files = files

    def start(self, step, environment, *arguments):
        for name, text in self.files.items():
            (step.workspace / name).write_text(text)
        return super().start(step, environment | {"PYTHONPATH": str(step.workspace)}, *arguments)


@contextmanager
def neighbours(canaries, keys):
    """An agent of each kind over HTTP, and the models; all tell all they were told, and more."""

    def answer_of_model(asked):
        if not asked.wants_json:
            return f"Hm. {canaries.echo()}"
        if "Answers in riddles" in asked.text:
            return canaries.echo()
        if "Is plain" in asked.text:
            return fakes.judge_answer("pass", "It is.")
        return fakes.judge_answer("fail", canaries.echo())

    def answer_of_agent(heard):
        echo = canaries.echo()
        faults = {
            "fail": Fault(500, json.dumps({"error": {"message": echo}}), {"x-request": quote(echo)[:900]}),
            "page": Fault(200, f"<html><title>{canaries.echo()}</title>", content_type="text/html"),
            "move": Fault(302, echo, {"Location": f"/elsewhere?key={quote(canaries.secrets['AUI_KEY'])}"}),
        }
        errors = [{"code": echo, "error": echo}]
        trace = {"response": {"type": "error", "error": echo}, "integrations": errors}
        return faults.get(heard.text) or world.message(echo, workflows=[echo], trace=trace)

    def answer_of_endpoint(asked):
        text = json.dumps(asked.body)
        if "fail" in text:
            return Fault(400, json.dumps({"detail": [canaries.echo(), asked.headers]}))
        calls = endpoints.tool_calls(("look_up", canaries.echo()))
        return endpoints.completion(canaries.echo(), tool_calls=calls)

    with (
        world.llm(answer_of_model) as models,
        world.agent(answer_of_agent) as aui,
        endpoints.serving(answer_of_endpoint) as chat,
    ):
        models.key, aui.key, chat.key = keys
        yield models, aui, chat


def suite(name, *tests, **fields):
    """The text of a suite; each test says what it is named after."""
    strict = {"criterion": "Says it", "strict": "contains", "text": "${VALUE_OF_CRITERION}"}
    one = {"guidelines": "You ask.", "maxTurns": 1, "evaluations": [JUDGED, strict]}
    played = [
        one | {"name": f"{name} {number}", "turns": [{"user": line}]} | more
        for number, (line, more) in enumerate(tests)
    ]
    return json.dumps({"name": name, "agentId": "agent-1", "tests": played} | fields, indent=2)


@pytest.mark.end_to_end
def test_run_outputs_and_prompts_contain_no_secret_that_agents_or_models_echo(tmp_path):
    """Agents of each kind, judge, user and GitHub echo: no file, stream, comment or prompt holds a secret."""
    canaries = Canaries()
    plant = canaries.plant
    keys = [plant("LLM_KEY"), plant("AUI_KEY"), plant("CHAT_KEY", between=("_", "+/"))]
    hidden = {
        name: plant(name)
        for name in (
            "LLM_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN", "AZURE_OPENAI_AD_TOKEN", "STRIPE_KEY",
        )
    } | {"PGPASSWORD": plant("PGPASSWORD", between=("-", "@ö"), more="\n")}  # fmt: skip
    hidden["DATABASE_URL"] = f"postgres://app:{quote(plant('DATABASE'), safe='')}@127.0.0.1/app?sslmode=off"
    values = {
        f"VALUE_OF_{part}": plant(f"VALUE_OF_{part}", between=("\n é\\", ' 東"'), more="=\n")
        for part in ("NAME", "GUIDELINES", "USER", "TURN", "CRITERION", "EXPECTATION", "OPTION")
    }
    values["VALUE_LONG"] = plant("VALUE_LONG", between=("/",) * 40)
    inner = {
        "name": "aui ${VALUE_OF_NAME}",
        "guidelines": "You know ${VALUE_OF_GUIDELINES}.",
        "userInfo": {"number": "${VALUE_OF_USER}", "proof": ["${VALUE_LONG}"]},
        "turns": [
            {"user": "Take ${VALUE_OF_TURN}", "expectation": "${VALUE_OF_EXPECTATION}"},
            {"user": "auto"},
        ],
        "maxTurns": 2,
    }
    riddle = {"evaluations": [{"criterion": "Answers in riddles"}]}
    plain = {"evaluations": [{"criterion": "Is plain"}]}
    literal = plant("LITERAL_KEY")
    message = plant("TOLD_OPTION", between=("+/",))
    with neighbours(canaries, keys) as (models, aui, chat), github_api.serving() as api:
        header = f"{message} {plant('HEADER', between=())}"
        chat_options = {
            "headers": {"Authorization": "Bearer {{key}}", "X-Secret": header},
            "query": {"sig": plant("QUERY", between=("%2B",))},
        }
        files = {
            "agent.py": PYTHON_AGENT,
            "program.py": PROGRAM,
            "1.json": suite(
                "AUI", ("", inner), ("fail", {}), ("page", {}), ("move", riddle),
                apiKey="${AUI_KEY}", baseUrl=aui.url,
            ),
            "2.json": suite(
                "Chat", ("hi", riddle), ("fail", {}), adapter="openai", model="m", apiKey="${CHAT_KEY}",
                baseUrl=f"{chat.url}/v1", adapterOptions=chat_options,
            ),
            "3.json": suite(
                "Python", ("hi", {}), ("fall", {}), ("hi", plain), adapter="python:agent:reply",
                apiKey=literal, adapterOptions={"note": "${VALUE_OF_OPTION}"},
            ),
            "4.json": suite(
                "Program", ("hi", {}), ("fall", {}), ("babble", {}), apiKey=literal,
                adapter=f"command: {sys.executable} program.py", baseUrl=f"https://x/?token={quote(message)}",
            ),
        }  # fmt: skip
        token = api.token = plant("GITHUB_TOKEN", between=("_",))
        extra = plant("AGENT_HEADERS", between=("+/=", "=="))
        files["echo.txt"] = canaries.echo()
        api.add_commits(workflow_replay.BASE)
        api.add_commit(workflow_replay.HEAD, workflow_replay.BASE)
        api.add_commit(workflow_replay.MERGE, workflow_replay.BASE, workflow_replay.HEAD)
        api.add_pull(7, workflow_replay.HEAD)
        api.fail("GET .*artifacts", *[github_api.Answer(404, {"message": canaries.echo()})] * 9)
        inputs = {
            "suites": "1.json\n2.json\n3.json\n4.json", "provider": "openai", "llm-key": keys[0],
            "github-token": token, "agent-headers": f"X-Extra: {extra}", "retries": "0", "debug": "true",
            "verbose": "true", "record": "recording", "judge-cache": "cache", "audit-user": "true",
        }  # fmt: skip
        variables = {"AUI_KEY": keys[1], "CHAT_KEY": keys[2], "OPENAI_BASE_URL": models.openai_url}
        commits = (workflow_replay.HEAD, workflow_replay.MERGE)
        action = Actions(api, tmp_path, files)
        played = action.pull_request_step(7, *commits, inputs=inputs, **variables, **hidden, **values)
    assert played.done.returncode == 3, played.done.stderr[-3000:]
    workspace = played.step.workspace
    given = {*files, "argv.txt"}
    outputs = {
        name: report_page.full_text(data.decode())
        for name, data in read_files(workspace).items()
        if name not in given and "__" not in name
    }
    assert {name.partition("/")[0] for name in outputs} >= {"results", "recording", "cache"}
    outputs |= label_and_calibrate(workspace, hidden | values, canaries)
    outputs |= {name: data.decode() for name, data in read_files(tmp_path / "1" / "file_commands").items()}
    outputs["stdout"] = without_masks(played.done.stdout)
    outputs["stderr"] = played.done.stderr
    outputs["comments"] = json.dumps([[item.path, item.body] for item in api.requests], ensure_ascii=False)
    outputs["argv"] = (workspace / "argv.txt").read_text()
    assert "ci-evals comment" in outputs["comments"]
    assert "results/journal.jsonl" in outputs
    for name in ("stdout", "stderr", "step_summary", "comments"):
        assert "***" in outputs[name].replace("\\", ""), name
    for name, text in outputs.items():
        assert not canaries.leaks(text), name
    for asked in models.asked:
        secret = canaries.secrets if asked.wants_json else set(canaries.secrets) - values.keys()
        assert not canaries.leaks(f"{asked.system}\n{asked.text}", *secret)
    known = set(canaries.secrets) - values.keys()
    for body in (*aui.tasks, *(vars(heard) for heard in aui.heard), *(asked.body for asked in chat.asked)):
        assert not canaries.leaks(json.dumps(body, ensure_ascii=False), *known)


def label_and_calibrate(workspace, env, canaries):
    """Outputs of `label` and `calibrate` for a run in which a person writes secrets into a note."""
    texts = [ci_evals("label", "results", cwd=workspace, env=env)]
    sheet = workspace / "labels/sheet.csv"
    rows = list(csv.DictReader(sheet.read_text(encoding="utf-8-sig").splitlines(keepends=True)))
    written = {f"labels/{name}": data.decode() for name, data in read_files(workspace / "labels").items()}
    with sheet.open("w", newline="") as file:
        filled = csv.DictWriter(file, rows[0])
        filled.writeheader()
        filled.writerows(row | {"label": "pass", "note": canaries.echo()} for row in rows)
    texts.append(ci_evals("calibrate", str(sheet), cwd=workspace, env=env))
    assert [done.returncode for done in texts] == [0, 0], texts
    written["calibration"] = (workspace / "calibration.json").read_text()
    written["calibrated"] = report_page.full_text((workspace / "results/report.html").read_text())
    return written | {f"{done.args[0]} said": done.stdout + done.stderr for done in texts}


BROKEN_AGENT = """
import os
from ci_evals.domain.checks.strict_check import StrictCheck
def decide(*told):
    raise KeyError(open("echo.txt").read())
StrictCheck.decide = decide
def reply(message):
    return "fine"
"""


def test_crash_report_contains_no_secret(tmp_path):
    """An agent that is code may break ours: neither the traceback nor the reports tell its secrets."""
    canaries = Canaries()
    env = {name: canaries.plant(name) for name in ("LLM_API_KEY", "AGENT_KEY", "DEPLOY_TOKEN", "VALUE")}
    (tmp_path / "agent.py").write_text(BROKEN_AGENT)
    text = suite("Bug", ("${VALUE}", {}), adapter="python:agent:reply")
    (tmp_path / "1.json").write_text(text.replace("${VALUE_OF_CRITERION}", "fine"))
    (tmp_path / "echo.txt").write_text(canaries.echo())
    env |= {"CI_EVALS_AGENT_HEADERS": f"X-Key: {canaries.plant('HEADER')}"}
    env |= {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "results/step_summary")}
    options = ("--provider=offline", "--agent-in-process")
    ran = ci_evals("run", "1.json", *options, cwd=tmp_path, env=env)
    assert ran.returncode == 70
    assert "Traceback" in ran.stderr
    assert "***" in ran.stderr
    files = read_files(tmp_path / "results").items()
    outputs = {name: report_page.full_text(data.decode()) for name, data in files}
    outputs |= {"stderr": ran.stderr, "stdout": without_masks(ran.stdout)}
    for name, text in outputs.items():
        assert not canaries.leaks(text), name


def test_messages_about_invalid_inputs_contain_no_secret(tmp_path):
    canaries = Canaries()
    plant = canaries.plant
    env = {"LLM_API_KEY": plant("LLM_API_KEY"), "VALUE": plant("VALUE", more="\n")}
    env |= {"A_SECRET": plant("A_SECRET")}
    summary = tmp_path / "summary"
    env |= {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    (tmp_path / "1.json").write_text(wrong_suite(canaries))
    address = f"https://host/?token={quote(plant('ADDRESS'), safe='')}"
    (tmp_path / "2.json").write_text(suite("B", ("hi", {})).replace("${VALUE_OF_CRITERION}", "x"))
    for arguments in (
        ("1.json", f"--thresholds=suite:{env['A_SECRET']}=80", f"--agent-key={plant('AGENT_KEY')}"),
        ("2.json", "--provider=offline", f"--base-url={address}", f"--agent-key={plant('OTHER_KEY')}"),
    ):
        ran = ci_evals("run", *arguments, cwd=tmp_path, env=env)
        assert ran.returncode == 2
        assert "::error" in ran.stderr
        assert not canaries.leaks(ran.stderr + without_masks(ran.stdout) + summary.read_text())


@pytest.mark.end_to_end
def test_suite_problems_contain_no_secret():
    canaries = Canaries()
    text = wrong_suite(canaries)
    with pytest.raises(SuiteError) as caught:
        load(text, "1.json", Reading({"VALUE": canaries.plant("VALUE")}))
    assert len(caught.value.problems) > 8
    assert "***" in str(caught.value)
    assert not canaries.leaks(str(caught.value))
    options = {"headers": {"Authorization": f"{canaries.plant('OPTION')} {{{{nobody}}}}"}, "send": "${VALUE}"}
    with pytest.raises(SuiteError) as caught:
        read_options(json.dumps(options), "o.json", {"VALUE": canaries.secrets["VALUE"]}).checked("http")
    assert not canaries.leaks(str(caught.value))


def wrong_suite(canaries):
    """The text of a suite in which everything is wrong that a message quotes."""
    plant = canaries.plant
    return json.dumps(
        {
            "name": ["${VALUE}"], "apiKey": plant("LITERAL"), "apikey": plant("MISSPELT"),
            "baseUrl": [f"https://u:{quote(plant('PASSWORD'), safe='')}@host/"], "adapter": "http",
            "adapterOptions": {
                "headers": {"Authorization": f"Bearer {plant('OPTION_HEADER')} {{{{nobody}}}}"},
                "send": {"body": {"token": plant("OPTION_TOKEN"), "text": "{{massage}}"}},
                "reply": {"text": "${VALUE}["},
            },
            "minScore": "${VALUE}",
            "tests": [
                {
                    "name": "${VALUE}", "tags": "${VALUE}", "turns": [{"user": "a", "timeout": "${VALUE}"}],
                    "evaluations": [
                        {"criterion": "a", "strict": "${VALUE}"},
                        {"criterion": "b", "strict": "regex", "pattern": "(${VALUE}"},
                        {"criterion": "c", "strict": "regexp", "weight": "${VALUE}"},
                    ],
                },
                {"name": "${VALUE}", "guidelines": "${NOT_SET}", "difficulty": "${VALUE}"},
            ],
        },
    )  # fmt: skip


def without_masks(stdout):
    """Standard output as GitHub's log shows it: the runner obeys the lines that register secrets."""
    return "\n".join(line for line in stdout.splitlines() if not line.startswith("::add-mask::"))
