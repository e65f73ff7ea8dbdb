"""Measures inspect_ai beside the bare calls and ci-evals, at the workload of this bench.

    python -m bench.peers.inspect_ai /tmp/inspect

FOLDER gets an environment with the newest inspect_ai from PyPI, and its logs. `bench.peers.inspect_ai_task`
says what it plays: a sample for each test, epochs for loops, a solver of our own that holds the
conversation, and `model_graded_qa` for each judged criterion. The agent is asked by aiohttp, in a session for
each conversation; the simulated user and the judges by inspect_ai's own OpenAI provider, by chat completions.

As many samples play at a time as asked for, with more connections to the models than they can use. Nothing is
cached, and it has no telemetry. All else is as it comes: a log of every sample, and its plain display.

Measured are wall time, processor time and peak memory of the whole process; what one conversation more costs
leaves start-up out. Not measured are the two strict criteria, which are left out there; reports, of which it
makes none but its log; and faults. inspect_ai has one scorer of a sample wait for another, so that it cannot
end in the ideal time, in which all three judgments are asked for at once.
"""

import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.peers.beside import Peer, Play, main

_PACKAGES = ("inspect_ai", "openai", "aiohttp")


def install(folder: Path) -> str:
    """An environment with inspect_ai."""
    if not _python(folder).exists():
        venv.create(folder / "env", with_pip=True)
    pip = [str(_python(folder)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *_PACKAGES], check=True, stdout=sys.stderr)  # noqa: S603
    ask = [str(_python(folder)), "-c", "from importlib.metadata import version; print(version('inspect_ai'))"]
    return subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603


def command(play: Play) -> tuple[Sequence[str], Mapping[str, str]]:
    """The task, played by that environment's Python."""
    options = [f"--loops={play.loops}", f"--parallel={play.parallel}", f"--logs={play.folder / 'logs'}"]
    task = [str(_python(play.folder)), "-m", "bench.peers.inspect_ai_task", str(play.suite), play.url]
    return [*task, *options], os.environ | {"NO_COLOR": "1", "XDG_DATA_HOME": str(play.folder / "data")}


def _python(folder: Path) -> Path:
    return folder / "env" / "bin" / "python"


if __name__ == "__main__":
    main(Peer("inspect_ai", install, command), __doc__ or "")
