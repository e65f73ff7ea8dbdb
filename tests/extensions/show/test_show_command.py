"""`ci-evals show`: conversations in the terminal, with the findings at their turns."""

from pathlib import Path

import builders as build
import pytest

from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError
from ci_evals.domain.suite import PlannedTurn
from ci_evals.domain.transcript import EndState
from ci_evals.extensions.show.settings import ShowSettings
from ci_evals.extensions.show.show import show
from ci_evals.reports import results_json
from ci_evals.reports.names import RESULTS

TEXTS = "user: I want my money back. | agent: Why? [REFUND_REQUEST] | user: It is too small. | agent: Done."
TALK = build.transcript(TEXTS).turns
RIGHT = build.finding(criterion="The workflow starts", evidence=(1,))
WRONG = build.finding("failed", criterion="The amount is named", reason="No amount.", evidence=(2,))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    findings = ((RIGHT,), (RIGHT, WRONG))
    trials = tuple(build.trial_result(n, turns=TALK, findings=some) for n, some in enumerate(findings, 1))
    tests = {"Refund": trials[:1], "Refund of a gift": trials}
    results = (build.test_result(name, trials=some) for name, some in tests.items())
    suite = build.suite_result("Refunds", *results)
    (tmp_path / RESULTS).write_text("".join(results_json.render(build.results(suite))))
    return tmp_path


def show_output(capsys, folder: Path, **options) -> str:
    show(ShowSettings(results=folder, **options), RunContext({}))
    return capsys.readouterr().out


def test_findings_are_at_their_turns_and_an_early_end_before_them(capsys, folder, tmp_path):
    text = show_output(capsys, folder, test=["gift"], trial=2)
    lines = [line.strip() for line in text.splitlines()]
    order = ["1 User: I want my money back.", "✓ The workflow starts: passed", "2 User: It is too small."]
    order += ["✗ The amount is named: failed", "No amount."]
    assert [lines.index(line) for line in order] == sorted(lines.index(line) for line in order)
    assert "workflows: REFUND_REQUEST" in lines
    assert "Trial 1" not in text
    cut_off = build.trial_result(turns=TALK[:1], findings=(WRONG,), status=EndState.ESCALATED)
    lines = tuple(PlannedTurn(user=text) for text in ("One", "Two", "Three"))
    test = build.test_result("Refund", trials=(cut_off,), turns=lines)
    text = "".join(results_json.render(build.results(build.suite_result("Refunds", test))))
    (tmp_path / RESULTS).write_text(text)
    text_shown = show_output(capsys, tmp_path)
    early = "ended after turn 1 of 3: the agent handed over to a person; 2 lines were never sent"
    assert text_shown.index(early) < text_shown.index("✗ The amount is named")


def test_options_select_trials_in_the_default_results_folder(capsys, folder):
    text = show_output(capsys, folder, failed=True)
    assert "Refund of a gift" in text
    assert "Trial 2: completed" in text
    assert "Trial 1" not in text
    assert "› Refund\n" not in text
    text = show_output(capsys, folder, test=["Refund"])
    assert "› Refund\n" in text
    assert "gift" not in text
    assert "gift" in show_output(capsys, folder, test=["refund"])
    assert "gift" in show_output(capsys, folder, test=["of a gift, nobody"])
    assert ShowSettings().results == Path("results")


@pytest.mark.parametrize(("options", "message"), [
    ({"test": ["nobody"]}, "No test matches `test=nobody`. Tests: Refund; Refund of a gift"),
    ({"trial": 3}, "`trial=3`: there are 2 trials at most. Trials count from 1."),
])  # fmt: skip
def test_selection_of_unknown_test_or_trial_is_refused_with_the_known_ones(capsys, folder, options, message):
    with pytest.raises(UsageError) as refused:
        show_output(capsys, folder, **options)
    assert str(refused.value) == message
