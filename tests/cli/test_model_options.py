"""Options for judge, auditor and votes: which models they select, and which combinations are rejected."""

from dataclasses import replace

import builders as build
import pytest
from each_row import each_row
from labeled_runs import write_results

import ci_evals
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.models import models_asked
from ci_evals.cli.settings.policy import read_policy
from ci_evals.cli.settings.run_command import RunSettings
from ci_evals.domain.errors import UsageError
from ci_evals.extension_support.judging import judging
from ci_evals.extension_support.settings import JudgeSettings
from ci_evals.gate.rules.max_invalid_users import MaxInvalidUsers
from ci_evals.library import load_suite
from ci_evals.planning.selection import Selection, plan


def options_of(**options):
    return models_asked(RunSettings(suites=[], **options))


def test_model_options_are_passed_on_and_panel_gets_next_odd_number_of_votes():
    adapter = options_of(judge_votes=5, judge_panel=" a, b/c:free ,d", audit_user=True)
    assert (adapter.judge_votes, adapter.judge_panel) == (5, ("a", "b/c:free", "d"))
    assert adapter.audit_user
    policy = read_policy(RunSettings(suites=[], max_invalid_users=3), str)
    assert policy.rule(MaxInvalidUsers).max_invalid_users == 3
    for panel, votes in ((None, 1), ("a", 1), ("a,b", 3), ("a,b,c", 3), ("a,b,c,d", 5)):
        assert options_of(judge_panel=panel).judge_votes == votes


@each_row(
    ("options", "value"),
    [
        ({"judge_votes": 4}, "`judge_votes=4`: an even number of votes"),
        ({"judge_votes": 3, "judge_panel": "a,b,c,d"}, "`judge_votes=3`: the panel has 4 models"),
        ({"judge_panel": "a,,b"}, "`judge_panel=a,,b`: a name is empty"),
        ({"judge_panel": " , "}, "`judge_panel=,`: a name is empty"),
        ({"judge_panel": "a, b,a"}, "`judge_panel=a,b,a`: 'a' appears twice"),
        ({"judge_panel": "a,b", "judge_model": "c"}, "`judge_model=c`: `judge_panel=` names the judges"),
    ],
)
def test_contradictory_judge_options_are_rejected_by_name(options, value):
    with pytest.raises(UsageError) as refused:
        options_of(**options)
    assert str(refused.value).startswith(value)


def test_judge_options_without_model_cause_only_a_warning():
    """A workflow may set them for all its runs."""
    demo = plan([load_suite("demo:hr")], Selection.of(None, None), 1)
    for option in ({"judge_votes": 3}, {"judge_panel": "a,b"}, {"audit_user": True}, {"judge_model": "m"}):
        warnings = options_of(provider="offline", **option).warnings(demo)
        expected = [] if "judge_model" in option else ["`provider=offline`"]
        assert [text.partition(":")[0] for text in warnings] == expected


def test_study_rejects_fewer_votes_than_judge_panel_models(tmp_path, monkeypatch):
    """Fewer votes than it has models would leave some out, given here or in the run."""
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    panel = {"judge_model": "a", "judge_panel": ("a", "b", "c", "d"), "judge_votes": 5}
    results = build.results(replace(build.suite_result("S", build.test_result()), **panel))
    write_results(results, tmp_path)
    with pytest.raises(UsageError, match="the panel has 4 models"):
        judging(tmp_path, JudgeSettings(llm_key="k", judge_votes=3), RunContext())
    assert judging(tmp_path, JudgeSettings(llm_key="k"), RunContext()).votes == 5


def test_library_rejects_invalid_judge_options():
    adapter = ci_evals.create_adapter(judge_panel=["a", "b"], audit_user=True)
    assert (adapter.judge_panel, adapter.judge_votes, adapter.audit_user) == (("a", "b"), 3, True)
    for wrong in ({"judge_votes": 2}, {"judge_panel": ["a", "a"]}, {"judge_votes": -1}):
        with pytest.raises(UsageError):
            ci_evals.create_adapter(**wrong)
