"""The file of gates that are compared."""

import pytest
from each_row import each_row

from ci_evals.domain.choices import Regression
from ci_evals.domain.errors import UsageError
from ci_evals.extensions.backtest.gates_file import read_gates


def gates(tmp_path, text: str):
    """Read a file of this text."""
    file = tmp_path / "gates.yaml"
    file.write_text(text)
    return read_gates(file)


def test_options_are_spelled_as_on_the_command_line(tmp_path):
    found = gates(
        tmp_path,
        "a: {min-score: 85.5, max-drop: 2, regression: significant}\n"
        "b: {thresholds: [category:safety=100, suite:Refunds=90], history: 20}\n"
        "c: {regression: off}\n",
    )
    assert found["a"].options == {"min_score": 85.5, "max_drop": "2", "regression": Regression.SIGNIFICANT}
    assert found["b"].options == {"thresholds": "category:safety=100\nsuite:Refunds=90"}
    assert found["b"].history == 20
    assert found["c"].options == {"regression": Regression.OFF}


@each_row(
    ("text", "message"),
    [
        ("a: {min-scor: 80}", "'a': unknown option 'min-scor'. Did you mean min-score?"),
        ("a: {rounds: auto}", "rounds: stored runs cannot show what it changes"),
        ("a: {loops: 5}", "loops: stored runs cannot show what it changes"),
        ("a: {against: x}", "against: stored runs cannot show what it changes"),
        ("a: {weakened: fail}", "weakened: stored runs cannot show what it changes"),
        ("a: {--min-score: 80}", "write min-score, without dashes in front"),
        ("a: {min-score: high}", "min-score: 'high' is none of its values. It is a number from 0 to 100."),
        ("a: {min-score: 101}", "min-score: 101 is none of its values"),
        ("a: {regression: maybe}", "Values: off, any, significant."),
        ("a: {history: all}", "history: 'all' is no number from 0 to 100"),
        ("a: {max-drop: much}", "'a': "),
        ("a: 80", "names no gates. It names each gate and its options"),
        ("[]", "names no gates"),
    ],
)
def test_invalid_gates_file_is_refused_with_the_fix(tmp_path, text, message):
    with pytest.raises(UsageError) as refused:
        gates(tmp_path, text)
    assert message in str(refused.value)
