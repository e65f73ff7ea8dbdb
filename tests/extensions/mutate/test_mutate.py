"""`mutate` shows what a gate notices; checks are added to a suite, whose text stays as it was."""

import asyncio
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import shop_agents
import yaml
from shop_agents import SUITE, ShopAgent

from ci_evals import UsageError, load_suite, run_suite, write_reports
from ci_evals.adapters.github.workflow import SUMMARY_BYTES
from ci_evals.cli.app import invoke
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.checks.evaluation import STRICT_KINDS
from ci_evals.extensions.mutate.faults import FAULTS, KINDS
from ci_evals.extensions.mutate.result import Suggestion
from ci_evals.extensions.mutate.suite_edit import with_evaluations, written_tests
from ci_evals.gate.policy import Policy

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(autouse=True)
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shop_agents.open_shop()
    Path("shop.yaml").write_text("# The shop's suite\n" + yaml.safe_dump(SUITE, sort_keys=False))


def play(*, bug=None, suite="shop.yaml", loops=1, **limits):
    """A run of the shop's agent, written to `results`."""
    results = asyncio.run(run_suite(ShopAgent(bug), load_suite(suite), policy=Policy(**limits), loops=loops))
    write_reports(results, "results")
    return results


def mutate(*options):
    """The exit code, and what was found."""
    context = RunContext({})
    try:
        code = invoke(["mutate", "results", "--quiet", *options], context)
    except SystemExit as end:
        code = end.code
    except UsageError as error:
        print(error, file=sys.stderr)  # as the program does
        return 2, None
    finally:
        context.close()
    file = Path("results/_mutations.json")
    return code or 0, json.loads(file.read_text()) if file.exists() else None


def faults_by_kind(found):
    return {fault["kind"]: fault for fault in found["faults"]}


def test_state_check_notices_only_faults_that_change_state(capsys):
    play()
    code, result = mutate()
    assert (code, result["run"]) == (0, json.loads(Path("results/_results.json").read_text())["run"]["id"])
    faults = faults_by_kind(result)
    assert list(faults) == [fault.kind for fault in FAULTS]
    assert {kind for kind, fault in faults.items() if fault["noticed"]} == {
        *("call_dropped", "call_changed", "param_changed", "call_failed", "state_unchanged"),
        *("hand_over_dropped", "hand_over_added", "reply_refused", "reply_claims"),
    }
    assert faults["call_repeated"]["undecided"] == 1  # the order's state depends on the second call
    (refund,) = [test for test in result["tests"] if test["name"] == "Refund"]
    assert "fact_changed" in refund["unnoticed"]
    assert "This gate notices" in capsys.readouterr().out
    first = Path("results/_mutations.json").read_bytes()
    mutate()
    assert Path("results/_mutations.json").read_bytes() == first


def test_applied_suggestions_pass_and_detect_previously_unnoticed_faults(capsys):
    play()
    _, before = mutate()
    suggested = before["suggestions"]
    assert {one["evaluation"]["strict"] for one in suggested} <= STRICT_KINDS.keys()
    for one in suggested:  # a call whose arguments are known gets no check of the words
        if any(kind.startswith("call_") for kind in one["kinds"]):
            assert one["evaluation"]["strict"] in {"state", "tool_called", "tool_sequence"}
    code, _ = mutate("--apply=shop.yaml")
    assert code == 0
    shown = capsys.readouterr().out
    assert f"{len(suggested)} checks added to shop.yaml" in shown
    assert "Next: run shop.yaml again, then mutate" in shown
    assert shown.endswith("to see what it notices now.\n")
    assert Path("shop.yaml").read_text().startswith("# The shop's suite\n")
    _, after = mutate()
    closed = {(one["test"], kind) for one in suggested for kind in one["kinds"]}
    assert not closed & {(test["name"], kind) for test in after["tests"] for kind in test["unnoticed"]}
    assert play().gate.passed


def summary_of_job(room=None):
    """The step summary after `mutate`; with only so many bytes of room."""
    summary = Path("summary.md")
    summary.write_text("" if room is None else "x" * (SUMMARY_BYTES - room))
    before = summary.stat().st_size
    context = RunContext({"GITHUB_STEP_SUMMARY": str(summary)})
    try:
        invoke(["mutate", "results", "--quiet"], context)
    except SystemExit:
        pass
    finally:
        context.close()
    return summary.read_text()[before:]


def test_exit_code_depends_on_the_noticed_share_and_is_3_without_planted_faults():
    play()
    assert (mutate("--min-noticed=99")[0], mutate("--min-noticed=1")[0]) == (1, 0)
    play()
    code, result = mutate("--faults=rule_dropped", "--suite=shop.yaml")
    assert (code, result["faults"][0]["planted"]) == (0, 1)
    Path("results/_mutations.json").unlink()
    play(bug="rule_dropped")
    assert mutate("--faults=rule_dropped") == (3, None)


def test_needed_share_is_null_if_the_gate_never_fails_or_fails_without_faults():
    play()
    _, strict = mutate("--min-score=99", "--shares=100")
    _, lax = mutate("--min-score=10", "--shares=100")
    assert faults_by_kind(strict)["call_dropped"]["neededShare"] == 1
    assert faults_by_kind(lax)["call_dropped"]["neededShare"] is None
    assert faults_by_kind(strict)["rule_dropped"]["neededShare"] is None  # nothing notices it
    play(bug="call_dropped")
    _, result = mutate("--min-score=100")
    assert result["gate"]["passed"] is False
    assert {fault["neededShare"] for fault in result["faults"]} == {None}
    assert "even without faults" in Path("results/mutations.md").read_text()


def test_invalid_options_results_or_suites_of_mutate_are_refused_with_the_reason(capsys):
    results = Path("results/_results.json")
    Path("results").mkdir()
    assert mutate() == (2, None)
    play()
    data = json.loads(results.read_text())
    without_trials = json.loads(results.read_text())
    for test in without_trials["suites"][0]["tests"]:
        test["trials"] = []
    for wrong in ({"some": "thing"}, data | {"schemaVersion": 2}, without_trials):
        results.write_text(json.dumps(wrong))
        capsys.readouterr()
        assert mutate() == (2, None)
        assert len(capsys.readouterr().err.splitlines()) <= 2
    results.write_text(json.dumps(data))
    changed = SUITE["tests"][0] | {"turns": [{"user": "Something else"}]}
    Path("shop.yaml").write_text(yaml.safe_dump(SUITE | {"tests": [changed, *SUITE["tests"][1:]]}))
    assert mutate() == (2, None)
    assert "'Refund' is gone, or its turns have changed since the run" in capsys.readouterr().err
    play()
    for option, message in (
        ("--faults=all", "`faults=`: unknown kind 'all'"),
        ("--faults=", "`faults=`: unknown kind ''"),
        ("--shares=0", "`shares=0`: write percentages"),
        ("--shares=many", "`shares=many`: write percentages"),
        ("--suite=gone.yaml", "gone.yaml: the run's suite is not there"),
        ("--apply=other.yaml", "not a suite of this run. Its suites: shop.yaml."),
    ):
        assert (mutate(option), message in capsys.readouterr().err) == ((2, None), True), option


def test_page_and_step_summary_show_mutations_of_the_run():
    play()
    mutate()
    page = Path("results/report.html")
    assert "planted faults" not in page.read_text()
    invoke(["report", "results"], RunContext({}))
    assert "This gate notices" in page.read_text()
    result = Path("results/_mutations.json")
    result.write_text(result.read_text().replace('"run": "', '"run": "another-'))
    invoke(["report", "results"], RunContext({}))
    assert "This gate notices" not in page.read_text()
    result.write_text("{}")
    with pytest.raises(UsageError, match="not written by `ci-evals mutate`"):
        invoke(["report", "results"], RunContext({}))
    play()
    assert summary_of_job() == Path("results/mutations.md").read_text()
    short = summary_of_job(room=1_000)
    assert short.startswith("# What would turn this gate red\n\nThis gate notices ")
    assert len(short) < 1_000
    assert summary_of_job(room=10) == ""


@pytest.mark.parametrize(("path", "argument"), [
    ("our shop.yaml", "`ci-evals mutate results --apply='our shop.yaml'`"),
    ("a`b.yaml", "`ci-evals mutate results --apply=SUITE`"),
    ("<img src=x> @team.yaml", "&lt;img src=x&gt; @\u200bteam.yaml"),
])  # fmt: skip
def test_suite_path_is_quoted_in_the_suggested_command(path, argument):
    Path("shop.yaml").rename(path)
    play(suite=path)
    mutate()
    assert argument in next_steps()[1]


def next_steps():
    return re.findall(r"^\d\. (.*)$", Path("results/mutations.md").read_text(), flags=re.MULTILINE)


def test_docs_list_every_fault_with_title_and_needs():
    text = (DOCS / "mutations.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| ([a-z].*?) \| ([a-z].*?) \|$", text, flags=re.MULTILINE)
    assert rows == [(fault.kind, fault.title, fault.needs) for fault in FAULTS]
    assert len(KINDS) == len(FAULTS) == 16


def test_steps_of_the_docs_turn_a_weak_suite_into_a_strong_one(capsys):
    # An agent that does nothing scores 100, until the page's steps are copied one after the other.
    text = (DOCS / "mutations.md").read_text()
    (weak,) = re.findall(r"```yaml title=\"weak.yaml\"\n(.*?)```", text, flags=re.DOTALL)
    Path("weak.yaml").write_text(weak)
    play(suite="weak.yaml")
    _, before = mutate()
    assert before["nullAgents"] == {"refuses": 100, "claims": 100}
    first = next_steps()
    assert first[0].startswith("Read the ")
    (command,) = re.findall(r"`ci-evals (mutate results --apply=weak.yaml)`", first[1])
    assert f"2. {first[1]}" in capsys.readouterr().out
    mutate(*command.split()[2:])
    assert "# a refund needs no person" in Path("weak.yaml").read_text()
    assert "Run the suite again" in first[2]
    play(suite="weak.yaml")
    _, after = mutate("--shares=100")
    assert after["nullAgents"]["refuses"] < 60
    shares = [sum(fault["noticed"] for fault in one["faults"]) for one in (before, after)]
    assert shares[1] > 3 * shares[0]
    assert after["suggestions"] == []
    assert sum(fault["neededShare"] is not None for fault in after["faults"]) < 4
    (gate,) = [step for step in next_steps() if "yet the gate passes" in step]
    assert "mark the tests that must never fail as `critical: true`" in gate
    marked = Path("weak.yaml").read_text().replace("maxTurns: 1", "maxTurns: 1\n    critical: true")
    Path("weak.yaml").write_text(marked)
    play(suite="weak.yaml")
    _, result = mutate("--shares=100")
    noticed = [fault for fault in result["faults"] if fault["noticed"]]
    assert len(noticed) > 8
    assert {fault["neededShare"] for fault in noticed} == {1}
    assert not any("suggested checks" in step or "the gate passes" in step for step in next_steps())


CHECK = {"criterion": "Refunds", "strict": "tool_called", "toolName": "refund", "args": {"order": "4711"}}


def lines_added(text, file, test="One"):
    suggestion = Suggestion(suite=file, test=test, kinds=("call_dropped",), evaluation=CHECK)
    old_lines, new_lines = text.splitlines(), with_evaluations(text, file, [suggestion]).splitlines()
    assert [line for line in new_lines if line in old_lines] == old_lines
    return [line for line in new_lines if line not in old_lines]


def test_yaml_comments_layout_and_flow_lists_are_kept():
    text = """\
# Our shop
tests:
  - name: One   # the first
    turns: [{user: Hello}]
    evaluations:
      - criterion: Friendly  # as ever
      # a note
      - criterion: |
          Several
          lines

  - name: Two
    turns: [{user: Hello}]
    evaluations:
    - criterion: Friendly # at the end"""
    fields = [
        "- criterion: Refunds", "  strict: tool_called", "  toolName: refund", "  args:", "    order: '4711'",
    ]  # fmt: skip
    assert lines_added(text, "shop.yaml") == ["      " + field for field in fields]
    assert lines_added(text, "shop.yaml", "Two")[0] == "    - criterion: Refunds"
    text = "tests: [{name: One, evaluations: [{criterion: Friendly}]}] # all\n"
    suggestion = Suggestion(suite="s.yaml", test="One", kinds=("call_dropped",), evaluation=CHECK)
    new = with_evaluations(text, "s.yaml", [suggestion])
    assert new.startswith("tests: [{name: One, evaluations: [{criterion: Friendly}, {")
    assert new.endswith("}]}] # all\n")


def test_edit_of_json_suite_keeps_its_line_layout():
    text = """\
{
  "tests": [
    {
      "name": "One",
      "evaluations": [
        { "criterion": "Friendly" }
      ]
    },
    {
      "name": "Two",
      "evaluations": [
        {
          "criterion": "Friendly"
        }
      ]
    }
  ]
}
"""
    fields = '"criterion": "Refunds", "strict": "tool_called", "toolName": "refund"'
    fields += ', "args": {"order": "4711"}'
    line = f"        {{ {fields} }}"
    suggestion = Suggestion(suite="s.json", test="One", kinds=("call_dropped",), evaluation=CHECK)
    new = with_evaluations(text, "s.json", [suggestion])
    assert f'        {{ "criterion": "Friendly" }},\n{line}\n      ]' in new
    new = with_evaluations(text, "s.json", [replace(suggestion, test="Two")])
    assert '          "criterion": "Friendly"\n        },\n        {\n' in new


def test_check_is_not_added_to_evaluations_that_tests_share():
    text = """\
tests:
  - name: One
    evaluations: &all
      - criterion: Friendly
  - name: Two
    evaluations: *all
"""
    suggestion = Suggestion(suite="s.yaml", test="Two", kinds=("call_dropped",), evaluation=CHECK)
    with pytest.raises(UsageError, match="cannot be added to this layout"):
        with_evaluations(text, "s.yaml", [suggestion])


def test_persona_variants_are_not_among_the_written_tests():
    text = "personas: {rude: {traits: [hostile]}}\ntests:\n  - {name: One, personas: [rude]}\n"
    assert written_tests(text, "shop.yaml") == {"One"}
