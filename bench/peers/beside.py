"""What the peers' scripts share: they play in alternation with the bare calls and the product, in one run."""

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tabulate import tabulate

from bench import workload
from bench.processes import Field, Took, run, server


@dataclass(frozen=True)
class Play:
    """What a peer is to play."""

    suite: Path
    """As `workload.write_suite` writes it."""
    loops: int
    parallel: int
    url: str
    """Of the server: the agent's wire there, OpenAI's at `/v1`."""
    folder: Path
    """The peer's own: its environment, and what it writes."""


@dataclass(frozen=True)
class Peer:
    """A tool beside ours."""

    name: str
    install: Callable[[Path], str]
    """Makes its environment in a folder, and tells its version; a second time it is quick."""
    command: Callable[[Play], tuple[Sequence[str], Mapping[str, str]]]
    """The command that plays, and its environment."""


def main(peer: Peer, doc: str) -> None:
    """Measures a peer beside the bare calls and the product, and prints what each took."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the peer is installed; kept, and used again")
    parser.add_argument("--conversations", type=int, nargs=2, default=(50, 250), metavar=("SMALL", "LARGE"))
    parser.add_argument("--parallel", type=int, default=20, help="conversations at a time (default: 20)")
    parser.add_argument("--repeats", type=int, default=3, help="rounds; the median counts (default: 3)")
    parser.add_argument("--agent", type=float, default=0.2, help="seconds of the agent (default: 0.2)")
    parser.add_argument("--llm", type=float, default=0.3, help="seconds of the models (default: 0.3)")
    options = parser.parse_args()
    home = options.folder.resolve()
    home.mkdir(parents=True, exist_ok=True)
    version = peer.install(home)
    ways: dict[str, Callable[[Field, int], Took]] = {
        "aiohttp, bare": lambda field, n: field.floor("aiohttp", n, options.parallel),
        "ci-evals": lambda field, n: field.product(n, options.parallel),
        f"{peer.name} {version}": lambda field, n: play_peer(peer, field, home, n, options.parallel),
    }
    took: dict[tuple[str, int], list[Took]] = {}
    with server() as served, tempfile.TemporaryDirectory() as folder:
        field = Field(served, Path(folder))
        field.capture()
        for _ in range(options.repeats):
            for name, play in ways.items():
                for conversations in options.conversations:
                    served.forget(agent=options.agent, llm=options.llm)
                    took.setdefault((name, conversations), []).append(play(field, conversations))
    small, large = options.conversations

    def ideal(conversations: int) -> float:
        return workload.ideal_seconds(conversations, options.parallel, options.agent, options.llm)

    print(tabulate([_row(name, n, runs, ideal(n)) for (name, n), runs in took.items()], _HEADS, "github"))
    print()
    print(tabulate([_margin(name, took, small, large) for name in ways], _MARGINS, "github"))


def play_peer(peer: Peer, field: Field, home: Path, conversations: int, parallel: int) -> Took:
    """Has the peer play so many conversations.

    Raises:
        RuntimeError: it failed, or made other calls than the workload has.
    """
    suite = home / "suite.json"
    loops = workload.write_suite(suite, conversations)
    command, env = peer.command(Play(suite, loops, parallel, field.server.url, home))
    took = run(command, env)
    calls = field.server.books()["requests"]
    if calls != conversations * workload.CALLS:
        raise RuntimeError(
            f"{peer.name} made {calls} calls for {conversations} conversations:\n{took.output}"
        )
    return took


_HEADS = ("", "conversations", "wall s", "× ideal", "processor s", "peak MB")
_MARGINS = ("one conversation more", "processor ms", "MB for each 1,000")


def _row(
    name: str, conversations: int, runs: list[Took], ideal: float
) -> tuple[str, int, str, str, str, str]:
    wall, processor, peak = (
        median(figures)
        for figures in zip(*((one.wall, one.processor, one.peak_mb) for one in runs), strict=True)
    )
    return name, conversations, f"{wall:.1f}", f"{wall / ideal:.2f}", f"{processor:.1f}", f"{peak:.0f}"


def _margin(
    name: str, took: dict[tuple[str, int], list[Took]], small: int, large: int
) -> tuple[str, str, str]:
    """What one conversation more costs: start-up cancels."""
    pairs = list(zip(took[name, small], took[name, large], strict=True))
    processor = median(more.processor - less.processor for less, more in pairs) / (large - small)
    peak = median(more.peak_mb - less.peak_mb for less, more in pairs) / (large - small)
    return name, f"{1000 * processor:.1f}", f"{1000 * peak:.0f}"
