"""What `odds` prints."""

import builders as build
import report_texts

from ci_evals.cli.run_context import RunContext
from ci_evals.domain.results.gate import Odds
from ci_evals.extensions.odds.odds import odds, odds_text
from ci_evals.extensions.odds.settings import OddsSettings


def test_odds_text_has_table_of_checks_and_summary():
    checks = [
        build.check(name="min-score", required=80, seen=85, passed=True),
        build.check(name="critical:x", required=100, seen=100, passed=True),
        build.check(name="critical:x", required=100, seen=100, passed=True),
        build.check(name="max-cost", required=1, seen=None, passed=True),
        build.check(name="regression", required=0.05, seen=None, passed=True),
    ]
    shares = (("min-score", 0.08), ("critical:x", 0.02), ("critical:x", 0.0))
    odds_of_checks = tuple(build.check_odds(name=name, share=share) for name, share in shares)
    result = Odds(share=0.095, checks=odds_of_checks, floor=78.5, loops=3)
    assert odds_text(result, checks) == (
        "  check       required                            would fail\n"
        "  ----------  ----------------------------------  -------------\n"
        "  min-score   at least 80                         8 %\n"
        "  critical:x  all trials pass                     2 %\n"
        "  critical:x  all trials pass                     less than 1 %\n"
        "  max-cost    at most $1.00                       not estimated\n"
        "  regression  no significant drop (p above 0.05)  not estimated\n"
        "  any check                                       10 %\n"
        "\n"
        "The same agent, run again, would fail this gate in about 10 % of runs (mostly min-score). "
        "It would score below 78.5 in fewer than 5 % of runs.\n"
        "The highest min-score that fewer than 5 % of such runs would miss: 78.5.\n"
        "Simulated from the noise of the saved run, with up to 3 trials of each test.\n"
        "Not estimated: cost, regression (up to 5 % more by its own level).\n"
    )


def test_odds_text_of_single_trials_says_noise_is_unknown():
    single = Odds(share=0.0, checks=(build.check_odds(name="min-score", share=0.0),), floor=None, loops=1)
    text = odds_text(single, [build.check(name="min-score", required=0, seen=85, passed=True)])
    assert "The same agent, run again, would fail this gate in fewer than 1 % of runs." in text
    assert "Each test has one trial, so its own noise is unknown." in text
    assert "would miss: n/a." in text


def test_impossible_recorded_gate_is_replaced_by_default(tmp_path, capsys):
    file = tmp_path / "_results.json"
    file.write_text(
        report_texts.results_json_text(build.results(run=build.run_info(config={"minScore": 10**400})))
    )
    odds(OddsSettings(results=file), RunContext())
    assert "min-score" in capsys.readouterr().out
