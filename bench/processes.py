"""Starting what is measured, and what the system says it took."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

from bench import workload

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Took:
    """What a process took."""

    wall: float
    processor: float
    """Seconds of all processors, the system's part included."""
    peak_mb: float
    started: float
    """When, by the machine's monotonic clock."""
    output: str


def run(command: Sequence[str], env: Mapping[str, str] | None = None, *, code: int = 0) -> Took:
    """Runs a command to its end.

    Raises:
        RuntimeError: it ended with another exit code.
    """
    with tempfile.TemporaryFile("w+") as output:
        started = time.monotonic()
        env = env or environment()
        process = subprocess.Popen(command, env=env, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT)  # noqa: S603
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode != code:
        raise RuntimeError(f"{command[:4]} … ended with {process.returncode}:\n{text[-2000:]}")
    return Took(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000, started, text)


def environment() -> dict[str, str]:
    """The variables of what is measured: bytecode is kept, no answer is, and no run is in CI."""
    without = ("GITHUB_", "INPUT_", "PYTHONDONTWRITEBYTECODE")
    kept = {
        name: value for name, value in os.environ.items() if name != "CI" and not name.startswith(without)
    }
    return kept | {"CI_EVALS_JUDGE_CACHE": "off", "CI_EVALS_JUDGE_CHECK": "off"}


def free_port() -> int:
    """A port that nobody has."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


class Server:
    """The server of known latency, while it runs."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._open = build_opener(ProxyHandler({})).open

    def forget(self, **manners: float) -> None:
        """Clears the books.

        Manners: `agent`, `llm` in seconds; `faults`, `keep` as 0 or 1; `otlp`, the port that spans go to, and
        `export`, the seconds between two exports.
        """
        self._get("forget?" + "&".join(f"{name}={value:.10g}" for name, value in manners.items()))

    def books(self) -> dict[str, Any]:
        """What it saw since."""
        return self._get("books")

    def _get(self, what: str) -> dict[str, Any]:
        with self._open(f"{self.url}/bench/{what}") as answer:
            found: dict[str, Any] = json.load(answer)
            return found


@contextmanager
def server() -> Iterator[Server]:
    """The server of known latency."""
    command = [sys.executable, "-m", "bench.server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:  # noqa: S603
        try:
            yield Server(int(process.stdout.readline() if process.stdout else 0))
        finally:
            process.kill()


def ray_python() -> str:
    """The Python of an environment with Ray, made once."""
    folder = ROOT / "build/bench-ray"
    python = folder / "bin/python"
    if not (folder / "made").exists():
        venv.create(folder, with_pip=True, clear=True)
        lock = ["--require-hashes", "-r", str(ROOT / "requirements/cluster.txt")]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *lock], check=True)  # noqa: S603
        (folder / "made").touch()
    return str(python)


@dataclass(frozen=True)
class Field:
    """Where the measured ones play."""

    server: Server
    folder: Path
    provider: str = "openai"

    @property
    def results(self) -> Path:
        """The output folder of the product's last run."""
        return self.folder / "results"

    def product(
        self,
        conversations: int,
        parallel: int,
        *options: str,
        code: int = 0,
        text_only: bool = False,
        most_tests: int = workload.TESTS,
        python: str = sys.executable,
    ) -> Took:
        """Plays conversations with the product's command."""
        suite = self.folder / f"suite-{conversations}.json"
        loops = workload.write_suite(suite, conversations, text_only=text_only, most=most_tests)
        command = [python, "-m", "ci_evals", "run", str(suite), f"--provider={self.provider}"]
        command += [f"--base-url={self.server.url}", f"--loops={loops}", f"--parallel={parallel}"]
        command += [f"--output-dir={self.results}", *options]
        env = environment()
        env |= {"LLM_API_KEY": "bench-llm-key", "NO_COLOR": "1"}
        env |= {"OPENAI_BASE_URL": f"{self.server.url}/v1", "ANTHROPIC_BASE_URL": self.server.url}
        return run(command, env, code=code)

    def floor(self, client: str, conversations: int, parallel: int) -> Took:
        """Makes the same calls bare."""
        command = [sys.executable, "-m", "bench.floor", client, str(self.capture())]
        return run([*command, f"--conversations={conversations}", f"--parallel={parallel}"])

    def capture(self) -> Path:
        """A file of the requests of one conversation, as the product makes them: address and body.

        Raises:
            RuntimeError: a conversation is not what it should be.
        """
        file = self.folder / f"requests-{self.provider}.json"
        if file.exists():
            return file
        self.server.forget(keep=1, agent=0.0, llm=0.0)
        self.product(1, 1)
        bodies = [(path, body) for path, body in self.server.books()["bodies"] if body]
        if len(bodies) != workload.CALLS:
            raise RuntimeError(f"a conversation took {len(bodies)} calls, not {workload.CALLS}")
        file.write_text(json.dumps([(self.server.url + path, json.loads(body)) for path, body in bodies]))
        return file
