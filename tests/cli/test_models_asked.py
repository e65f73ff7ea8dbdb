"""Which models the options ask for: what makes sense is passed on, what contradicts itself is refused."""

from dataclasses import replace

import builders as build
import pytest
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


def asked(**options):
    return models_asked(RunSettings(suites=[], **options))


def test_what_is_asked_of_judge_and_auditor_is_passed_on():
    """And the limit of the gate."""
    adapter = asked(judge_votes=5, judge_panel=" a, b/c:free ,d", audit_user=True)
    assert (adapter.judge_votes, adapter.judge_panel) == (5, ("a", "b/c:free", "d"))
    assert adapter.audit_user
    policy = read_policy(RunSettings(suites=[], max_invalid_users=3), str)
    assert policy.rule(MaxInvalidUsers).max_invalid_users == 3


@pytest.mark.parametrize(("panel", "votes"), [(None, 1), ("a", 1), ("a,b", 3), ("a,b,c", 3), ("a,b,c,d", 5)])
def test_a_panel_votes_until_each_model_has_had_a_say(panel, votes):
    """Where nobody says how often: an odd number, so that there is a majority."""
    assert asked(judge_panel=panel).judge_votes == votes


@pytest.mark.parametrize(
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
def test_contradictory_options_are_refused(options, value):
    """In one message, by the names of the options."""
    with pytest.raises(UsageError) as refused:
        asked(**options)
    assert str(refused.value).startswith(value)


@pytest.mark.parametrize(
    "option", [{"judge_votes": 3}, {"judge_panel": "a,b"}, {"audit_user": True}, {"judge_model": "m"}]
)
def test_votes_without_a_model_change_nothing(option):
    """So a run without a key warns of them, but goes on: a workflow may set them for all its runs."""
    offline = asked(provider="offline", **option)
    demo = plan([load_suite("demo:hr")], Selection.of(None, None), 1)
    items = offline.warnings(demo)
    assert [text.partition(":")[0] for text in items] == (
        [] if "judge_model" in option else ["`provider=offline`"]
    )


def test_a_study_asks_the_whole_panel_of_its_run(tmp_path, monkeypatch):
    """Fewer votes than it has models would leave some out, named here or in the run."""
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    panel = {"judge_model": "a", "judge_panel": ("a", "b", "c", "d"), "judge_votes": 5}
    results = build.results(replace(build.suite_result("S", build.test_result()), **panel))
    write_results(results, tmp_path)
    with pytest.raises(UsageError, match="the panel has 4 models"):
        judging(tmp_path, JudgeSettings(llm_key="k", judge_votes=3), RunContext())
    assert judging(tmp_path, JudgeSettings(llm_key="k"), RunContext()).votes == 5


def test_a_library_asks_for_the_same():
    """With the same checks."""
    adapter = ci_evals.create_adapter(judge_panel=["a", "b"], audit_user=True)
    assert (adapter.judge_panel, adapter.judge_votes, adapter.audit_user) == (("a", "b"), 3, True)
    for wrong in ({"judge_votes": 2}, {"judge_panel": ["a", "a"]}, {"judge_votes": -1}):
        with pytest.raises(UsageError):
            ci_evals.create_adapter(**wrong)
