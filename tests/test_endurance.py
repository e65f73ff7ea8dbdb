"""A run that is killed again and again, and gone on with, comes to the same as one that is left alone."""

import json
import re
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from commands import start
from doc_pages import ROOT, table

from ci_evals.adapters.journal.records import JOURNAL as NAME
from ci_evals.extensions.demo.server import DemoServer

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs/reliability.md").read_text()
BROKEN = ("RETURN_REQUEST", "VACATION_REQUEST")
"""So that there is something to find."""
PARALLEL, TESTS = 8, 24
GENTLE = {1: signal.SIGTERM, 4: signal.SIGINT}
"""By the number of the kill; the others are SIGKILL."""
_VARYING = {
    "resumed", "startedAt", "finishedAt", "durationSeconds", "latencySeconds", "latency", "firstReplySeconds",
    "times", "folder", "outputDir", "odds",
}  # fmt: skip
_FINISHED = re.compile(r"^\[(\d+)/\d+\] ", re.MULTILINE)


@dataclass
class Run:
    """A run of two bundled suites against a server that counts its conversations."""

    folder: Path
    loops: int
    url: str
    dice: Random
    finished_trials: list[int] = field(default_factory=list)
    """How many trials had finished by each end, as the progress had told."""

    @property
    def trials(self) -> int:
        return self.loops * TESTS

    @property
    def _command(self) -> list[str]:
        journal = self.folder / "results" / NAME
        resume = ["--resume=results"] if journal.exists() else []
        options = [f"--parallel={PARALLEL}", f"--loops={self.loops}", f"--base-url={self.url}"]
        return ["run", "demo:hr", "demo:retail", "--provider=offline", *options, *resume]

    def killed(self, after: int, number: int = signal.SIGKILL, within: float = 0.03) -> int:
        """Begins, or goes on, and is killed a moment after so many trials have finished; its exit code."""
        process = start(*self._command, cwd=self.folder)
        text = ""
        for line in process.stderr:
            text += line
            if (result := _FINISHED.match(line)) and int(result[1]) >= after:
                break
        time.sleep(self.dice.uniform(0, within))
        process.send_signal(number)
        _, err = process.communicate(timeout=300)
        *_, last = [0, *map(int, _FINISHED.findall(text + err))]
        self.finished_trials.append(last - (text + err).count("(interrupted"))
        return process.wait()

    def ended(self) -> int:
        process = start(*self._command, "--quiet", cwd=self.folder)
        process.communicate(timeout=1_800)
        return process.wait()

    def kept(self) -> Counter[tuple[int, int, int]]:
        lines = (self.folder / "results" / NAME).read_bytes().splitlines(keepends=True)
        records = [json.loads(line) for line in lines[1:] if line.endswith(b"\n")]
        return Counter((one["suite"], one["test"], one["index"]) for one in records if "result" in one)

    def tear(self) -> int:
        """Cuts some bytes off the journal, as a crash of the machine may; how many trials were in them."""
        path = self.folder / "results" / NAME
        before = sum(self.kept().values())
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - self.dice.randint(1, 9_000))
        return before - sum(self.kept().values())

    def results(self) -> dict[str, Any]:
        return json.loads((self.folder / "results/_results.json").read_text())

    def reports(self) -> dict[str, str]:
        """The reports of the run, without what no two runs have in common."""
        folder = self.folder / "results"
        results = self.results()
        results["run"].pop("id")
        written = {name: _same((folder / name).read_text()) for name in ("summary.md", "junit.xml")}
        return {"_results.json": _same(json.dumps(_lasting(results), indent=1)), **written}


def _lasting(value: Any) -> Any:
    match value:
        case {"strict": "max_latency"}:
            return value["outcome"]
        case dict():
            return {key: _lasting(one) for key, one in value.items() if key not in _VARYING}
        case list():
            return [_lasting(one) for one in value]
        case _:
            return value


def _same(text: str) -> str:
    """The text without times and ids, and without what was resumed."""
    text = re.sub(r"\d[\d.]* (s|min|h)\b( \(\d+ %\))?", "N s", text)
    text = re.sub(r"started [^·]+ · |run `[0-9a-f]{32}`", "", text)
    text = re.sub(r"^Of the time of all trials, .*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"the slowest reply, in turn \d+", "the slowest reply", text)
    text = re.sub(r'\b(time|timestamp)="[^"]*"', "", text)
    text = re.sub(r'^.*(The same agent, run |<sub>Run `|name="run-odds").*$', "", text, flags=re.MULTILINE)
    text = re.sub(r"^.*Resumed: .*$", "", text, flags=re.MULTILINE)
    return re.sub(r"  +", " ", re.sub(r"\n\s*\n", "\n", text))


def sessions(server: DemoServer) -> int:
    return len(server._http.api._tasks._tasks)


def survives(run: Run, kills: int) -> tuple[list[int], int]:
    """Kills a run at random moments, once by SIGTERM, once while it writes its reports; tears its journal.

    Returns the exit codes, and how many trials were torn off.
    """
    # Not so late that a run would end before its signal comes; then one when it has ended.
    moments = [*sorted(run.dice.sample(range(1, run.trials * 2 // 3), kills - 1)), run.trials]
    codes, torn = [], 0
    for number, moment in enumerate(moments):
        by = GENTLE.get(number, signal.SIGKILL)
        codes.append(run.killed(moment, by, within=0.3 if moment == run.trials else 0.03))
        assert sum(run.kept().values()) >= run.finished_trials[-1], "a finished trial was not kept"
        if by in GENTLE.values():
            assert run.results()["run"]["status"] == "interrupted"
        if number == kills - 2:
            torn += run.tear()
    return [*codes, run.ended()], torn


SIZES = [(3, 3), pytest.param(84, 10, marks=pytest.mark.endurance)]
"""Trials of each of the 24 tests, and kills: 72 and 3, and by `make endurance` 2,016 and 10."""


@pytest.mark.parametrize(("loops", "kills"), SIZES)
def test_killed_and_resumed_run_has_same_reports_as_uninterrupted_run(tmp_path, loops, kills):
    """No finished trial is rerun."""
    with DemoServer(broken=BROKEN) as server:
        alone, killed = (
            Run(tmp_path / name, loops, server.base_url, Random(1122)) for name in ("alone", "killed")
        )
        for run in (alone, killed):
            run.folder.mkdir()
        code = alone.ended()
        before = sessions(server)
        codes, torn = survives(killed, kills)
        played = sessions(server) - before
    assert code == 1, "there must be something to find"
    assert codes[-1] == code
    items = {name.split()[0]: code for name, _, code, _ in table("a run is ended by", PAGE)}
    for number, ended in enumerate(codes[:-2]):
        by = "SIGTERM" if number in GENTLE else "SIGKILL"
        assert (128 - ended if ended < 0 else ended) == int(items[by])
    kept = killed.kept()
    assert ({*kept.values()}, kept.total()) == ({1}, killed.trials), "a trial stands in the journal twice"
    assert torn >= 1
    # What was under way or being judged at a kill is rerun, and what was torn off; nothing else.
    assert before == killed.trials
    assert played <= killed.trials + torn + kills * 2 * PARALLEL
    for name, text in alone.reports().items():
        assert killed.reports()[name].splitlines() == text.splitlines(), name
