"""Real clusters of Ray, in an environment of their own: only `make cluster` runs these."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from random import Random

import endpoints
import pytest
from canary import Canaries
from doc_pages import ROOT
from frameworks.environments import environment, free_port
from test_endurance import BROKEN, Run, sessions

from ci_evals._version import __version__
from ci_evals.extensions.demo.server import DemoServer

pytestmark = pytest.mark.cluster
LOCK = ["--require-hashes", "-r", str(ROOT / "requirements/cluster.txt")]
INSTALLED = ROOT / "build/frameworks/ci-evals"
"""The package beside the lines of its extensions, as `pip install --target` leaves them."""
NODES = Path(__file__).parent / "nodes.py"
MOST_SESSIONS = 5_000
"""The demo agent forgets earlier ones."""
_FINISHED = re.compile(r"^\[(\d+)/\d+\] ", re.MULTILINE)


@pytest.fixture(scope="session")
def python():
    facts = INSTALLED / f"ci_evals-{__version__}.dist-info"
    shutil.rmtree(INSTALLED, ignore_errors=True)
    facts.mkdir(parents=True)
    lines = metadata.distribution("ci-evals").read_text("entry_points.txt")
    (facts / "entry_points.txt").write_text(lines)
    for folder in ("ci_evals", "suites"):
        (INSTALLED / folder).symlink_to(ROOT / folder)
    return environment(LOCK) / "bin/python"


def variables(**more):
    own = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "PYTHONPATH": str(INSTALLED)}
    return own | {"CI_EVALS_JUDGE_CHECK": "off"} | more


class Ran(Run):
    def __init__(self, python, cluster, *args, **more):
        super().__init__(*args)
        self.python, self.cluster, self.more = python, cluster, more

    def start(self, *options):
        command = [*self._command, f"--cluster={self.cluster}", *options]
        return subprocess.Popen(
            [self.python, "-m", "ci_evals", *command],
            cwd=self.folder,
            env=variables(**self.more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ends(self, *options, at=(), do=()):
        """Plays to the end; does something when so many trials have finished. Returns the exit code."""
        process, left = self.start(*options), list(zip(at, do, strict=True))
        text = ""
        for line in process.stderr:
            text += line
            if left and (result := _FINISHED.match(line)) and int(result[1]) >= left[0][0]:
                left.pop(0)[1]()
        assert not left, text
        out, _ = process.communicate(timeout=300)
        self.output = out + text
        assert "Traceback" not in self.output, self.output
        return process.returncode


class Nodes:
    def __init__(self, process, folder, port):
        self.process, self.folder, self.address = process, folder, f"ray://127.0.0.1:{port}"

    def remove_node(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def written(self):
        files = [path for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink()]
        return {path: path.read_bytes().decode("latin-1") for path in files}


@contextmanager
def nodes_of(python, count, path=str(ROOT)):
    port = free_port()
    # Names of sockets must be short.
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        own = variables(GRPC_ENABLE_FORK_SUPPORT="false", RAY_TMPDIR=folder) | {"PYTHONPATH": path}
        Path(folder, "ray").mkdir()  # where Cluster keeps its address; it does not make it
        with (
            Path(folder, "nodes.log").open("wb") as log,
            subprocess.Popen(
                [python, NODES, str(port), folder, str(count)],
                cwd=folder,
                env=own,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                text=True,
            ) as process,
        ):
            until = time.monotonic() + 120
            while not Path(folder, "ready").exists():
                assert process.poll() is None, Path(folder, "nodes.log").read_text()
                assert time.monotonic() < until, Path(folder, "nodes.log").read_text()
                time.sleep(0.2)
            try:
                yield Nodes(process, Path(folder), port)
            finally:
                process.stdin.close()
                process.wait(60)


def kill_worker():
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
        except OSError:
            continue
        if command.startswith(b"ray::_Host"):
            os.kill(int(path.parent.name), signal.SIGKILL)
            return
    raise AssertionError("there is no worker")


@contextmanager
def two_runs(folder, loops, python, cluster):
    """A run in one process that has ended, and one on a cluster that is to begin."""
    with DemoServer(broken=BROKEN) as server:
        alone = Run(folder / "alone", loops, server.base_url, Random(1122))
        there = Ran(python, cluster, folder / "there", loops, server.base_url, Random(1122))
        for run in (alone, there):
            run.folder.mkdir()
        there.expected = alone.ended()
        there.server, there.before = server, sessions(server)
        yield alone, there


def check_same(alone, there, again=0):
    """The run on the cluster lost nothing and doubled nothing, and its reports say the same."""
    assert (set(there.kept().values()), sum(there.kept().values())) == ({1}, there.trials)
    if there.before + there.trials + again < MOST_SESSIONS:
        assert there.trials <= sessions(there.server) - there.before <= there.trials + again
    theirs = there.reports()
    for name, text in alone.reports().items():
        assert _without_warnings(name, theirs[name]) == _without_warnings(name, text), name


def _without_warnings(name, text):
    """A report without what only the cluster's says: that workers were lost."""
    if name == "_results.json":
        results = json.loads(text)
        run = results["run"]
        for key in ("cluster", "quiet"):
            run["config"].pop(key, None)
        run["warnings"] = [warning for warning in run["warnings"] if "cluster: " not in warning]
        return json.dumps(results, indent=1).splitlines()
    return [line for line in text.splitlines() if "cluster: " not in line]


SIZES = [5, pytest.param(209, marks=pytest.mark.endurance)]
"""Trials of each of the 24 tests: 120, and by `make endurance` 5,016."""


@pytest.mark.parametrize("loops", SIZES)
def test_local_cluster_equals_one_process_despite_killed_workers(tmp_path, python, loops):
    before = set(Path("/tmp").glob("ci-evals-*"))
    with two_runs(tmp_path, loops, python, "ray") as (alone, there):
        moments = (there.trials // 4, there.trials // 2)
        assert there.ends(at=moments, do=(kill_worker, kill_worker)) == there.expected, there.output
        check_same(alone, there, again=16)
    assert "2 workers were lost" in there.output
    assert "(raylet)" not in there.output
    assert not {
        path for path in set(Path("/tmp").glob("ci-evals-*")) - before if list(path.glob("session_*"))
    }


def test_lost_node_and_killed_run_lose_no_finished_trial(tmp_path, python):
    with nodes_of(python, 3) as nodes, two_runs(tmp_path, 5, python, nodes.address) as (alone, there):
        process = there.start()
        for line in process.stderr:
            result = _FINISHED.match(line)
            if result and int(result[1]) == 20:
                nodes.remove_node()
            if result and int(result[1]) >= 60:
                break
        process.kill()
        process.communicate(timeout=300)
        kept = sum(there.kept().values())
        assert 60 <= kept < there.trials
        assert there.ends() == there.expected, there.output
        check_same(alone, there, again=40)
    assert f"{kept} of" in there.output or str(kept) in there.output


def test_secrets_are_not_in_files_of_ray(tmp_path, python):
    canaries = Canaries()
    names = ("CI_EVALS_AGENT_KEY", "OTHER_KEY", "LLM_API_KEY")
    env = {name: canaries.plant(name, between=("",)) for name in names}
    header = canaries.plant("HEADER", between=("",))
    test = {
        "userInfo": {"pin": "${OTHER_KEY}"},
        "guidelines": "g",
        "turns": [{"user": "Hello {{userInfo.pin}}"}, {"user": "fail"}],
        "evaluations": [{"criterion": "c", "strict": "contains", "text": "yes"}],
    }
    tests = [test | {"name": f"t{number}"} for number in range(4)]
    suite = {"name": "S", "adapter": "openai", "model": "m", "tests": tests}
    (tmp_path / "suite.json").write_text(json.dumps(suite))

    def answer(asked):
        if "fail" in asked.texts:
            return endpoints.world.Fault(400, json.dumps({"detail": canaries.echo()}))
        return endpoints.completion(canaries.echo())

    with nodes_of(python, 2) as nodes, endpoints.serving(answer) as agent:
        agent.key = env["CI_EVALS_AGENT_KEY"]
        done = subprocess.run(
            [
                python,
                "-m",
                "ci_evals",
                "run",
                "suite.json",
                "--provider=offline",
                "--retries=0",
                f"--base-url={agent.url}",
                f"--cluster={nodes.address}",
                "--parallel=2",
                f"--agent-headers=x-pass: {header}",
            ],
            cwd=tmp_path,
            env=variables(**env),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert len(agent.asked) == 8, done.stderr
        written = nodes.written()
    assert any("ray_client_server" in path.name for path in written)
    assert any(path.name.startswith("worker-") for path in written)
    for path, text in written.items():
        assert not canaries.leaks(text), path
    assert not canaries.leaks(done.stdout + done.stderr)
    for path in (tmp_path / "results").rglob("*"):
        assert not (path.is_file() and canaries.leaks(path.read_text())), path


def test_missing_ci_evals_on_cluster_exits_2_with_message(tmp_path, python):
    with nodes_of(python, 1, path="") as nodes:
        done = subprocess.run(
            [python, "-m", "ci_evals", "run", "demo:hr", "--provider=offline", f"--cluster={nodes.address}"],
            cwd=tmp_path,
            env=variables(),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == 2, done.stderr
    assert "ci-evals is not installed on its machines" in done.stderr
    assert "Traceback" not in done.stderr


def test_version_mismatch_on_cluster_is_reported_in_one_message(tmp_path, python):
    shutil.copytree(
        ROOT / "ci_evals", tmp_path / "other/ci_evals", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tmp_path / "other/ci_evals/_version.py").write_text('__version__ = "0.0.1"\n')
    as_other_ray = (
        "import ray, runpy, sys; ray.__version__ = '2.0.0'; "
        "sys.argv[0] = 'ci-evals'; runpy.run_module('ci_evals', run_name='__main__')"
    )
    with nodes_of(python, 1, path=str(tmp_path / "other")) as nodes:
        texts = [
            subprocess.run(
                [python, *program, "run", "demo:hr", "--provider=offline", f"--cluster={nodes.address}"],
                cwd=tmp_path, env=variables(), capture_output=True, text=True, check=False, timeout=120,
            )
            for program in (["-m", "ci_evals"], ["-c", as_other_ray])
        ]  # fmt: skip
    here = f"and this has {__version__}; install that version there"
    assert f"its machines have ci-evals 0.0.1, {here}" in texts[0].stderr
    assert re.search(
        r"its machines have Ray \S+ and Python \S+, and this has Ray 2\.0\.0 and Python \S+; "
        "use the same versions on both sides",
        texts[1].stderr,
    )
    for done in texts:
        assert done.returncode == 2, done.stderr
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "results/_results.json").exists()
