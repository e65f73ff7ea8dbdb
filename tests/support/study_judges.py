"""A judge of a saved run, over the wire of a provider, and made-up runs for it to look at."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import builders as build
import pytest
import world

from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.domain.results.judge import JudgeUsed
from ci_evals.domain.results.run import Results
from ci_evals.extension_support.asking import Asking
from ci_evals.extension_support.rejudging import judges
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections

STUDY_TIME = datetime(2026, 11, 22, tzinfo=UTC)
TESTS, TRIALS = 30, 2


@asynccontextmanager
async def study_asking(
    models: world.Models, monkeypatch: pytest.MonkeyPatch, *panel: str, votes: int = 1, **fields
) -> AsyncIterator[Asking]:
    """What a study asks with; the models are those of a server on loopback."""
    monkeypatch.setenv("OPENAI_BASE_URL", models.openai_url)
    panel = panel or ("some-model",)
    used = JudgeUsed(provider="openai", models=tuple(sorted(panel)), votes=votes, prompt="p" * 64)
    redactor = Redactor([models.key])
    async with judges(Connections(provider="openai", llm_key=models.key), redactor) as result:
        yield Asking(result, panel, used, redactor, **{"parallel": 20} | fields)


def judged_trial(agent: str, *outcomes: str, criterion: str = "It helps", index: int = 1, **fields):
    """A trial of one turn, with a judged finding for each outcome."""
    findings = [
        build.finding(outcome, kind="judged", criterion=f"{criterion} {number}" if number else criterion)
        for number, outcome in enumerate(outcomes)
    ]
    turn = build.turn(agent=agent)
    return build.trial_result(index, **{"turns": (turn,), "findings": tuple(findings)} | fields)


def run_of_tests(*tests, name: str = "Refunds", **fields) -> Results:
    return build.results(build.suite_result(name, *tests), run=build.run_info(**fields))


def as_saved_run(results: Results, source: str = "run/_results.json") -> SavedRun:
    """The same, as it was read."""
    return SavedRun(Path(source), results, Path(source))


def run_of_agent(who: str, tests: int = TESTS, trials: int = TRIALS, **fields):
    """A run whose conversations say whose they are, and which."""
    return as_saved_run(
        run_of_tests(
            *(
                build.test_result(
                    f"T{test}",
                    trials=tuple(
                        judged_trial(f"{who}-{test * trials + index}", "passed", index=index + 1)
                        for index in range(trials)
                    ),
                )
                for test in range(tests)
            ),
            **{"id": who} | fields,
        ),
        who,
    )
