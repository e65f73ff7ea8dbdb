"""`noise` with an agent that it starts itself."""

import json
import shutil
import socket

import pytest
from commands import ci_evals, read_files, read_results, write_suite

from ci_evals.domain.errors import Exit

pytestmark = pytest.mark.slow

KEY = "agent-key-0d93a1c7"
SERVER = """
import json, os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

left = int(os.environ.get("REPLIES", "99"))

class Agent(BaseHTTPRequestHandler):
    def do_POST(self):
        global left
        left -= 1
        if left < 0:
            print("no memory left for", os.environ["AGENT_KEY"])
            os._exit(7)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'"Hello"' if left % 2 else b'"Bye"')

    def log_message(self, *_):
        pass

print("serving")
HTTPServer(("127.0.0.1", int(sys.argv[1])), Agent).serve_forever()
"""


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("played")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    (tmp_path / "server.py").write_text(SERVER)
    check = {"criterion": "It greets", "strict": "contains", "text": "Hello"}
    test = {"turns": [{"user": "Hello"}], "evaluations": [check]}
    tests = [test | {"name": f"Test {number}"} for number in range(3)]
    options = {"send": {"body": "{{message}}"}, "reply": {"text": "$"}}
    fields = {"baseUrl": f"http://127.0.0.1:{port}", "start": f"python server.py {port}", "agentId": None}
    suite = write_suite(tmp_path, *tests, adapter="http", adapterOptions=options, **fields)
    ran = ci_evals("run", suite, "--provider=offline", "--no-gate", cwd=tmp_path, env={"AGENT_KEY": KEY})
    assert ran.returncode == Exit.PASSED, ran.stderr
    return tmp_path


@pytest.fixture
def run(finished_run, tmp_path):
    shutil.copytree(finished_run, tmp_path, dirs_exist_ok=True)
    return tmp_path


def noise(run, *, plays: int = 2, **env):
    options = (f"--plays={plays}", "--quiet")
    return ci_evals("noise", "results", *options, cwd=run, env={"AGENT_KEY": KEY} | env)


def test_noise_starts_agent_of_suite_and_keeps_log_of_run(run):
    own = (run / "results/agent.log").read_text()
    noise_report = noise(run)
    assert noise_report.returncode == Exit.PASSED, noise_report.stderr
    assert read_results(run)["studies"]["noise"]["plays"] == 6
    assert (run / "results/noise-agent.log").read_text().strip() == "serving"
    assert (run / "results/agent.log").read_text() == own


def test_exited_agent_stops_noise_study_with_one_message_and_no_results(run):
    before = read_files(run)
    noise_report = noise(run, plays=20, REPLIES="45")
    assert noise_report.returncode == Exit.INVALID, noise_report.stdout
    (line,) = noise_report.stderr.splitlines()[1:]  # after what is to be done
    assert line.startswith("Stopped: the agent started by 'python server.py ")
    assert "ended with exit code 7 in the middle of the run" in line
    assert "(its output, in noise-agent.log, ends: serving no memory left for ***)" in line
    assert "Nothing is saved. " in line
    after = read_files(run)
    assert "no memory left for ***" in str(after.pop("results/noise-agent.log"))
    assert after == before


def test_noise_without_otlp_is_refused_for_a_run_with_otlp(run):
    file = run / "results/_results.json"
    results = json.loads(file.read_text())
    results["run"]["config"]["otlp"] = True
    file.write_text(json.dumps(results))
    refused = noise(run)
    text = "the run was played with --otlp: give --otlp here too"
    assert (refused.returncode, text in refused.stderr) == (Exit.USAGE, True)
    assert not (run / "results/noise-agent.log").exists()
