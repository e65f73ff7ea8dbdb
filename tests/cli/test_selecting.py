"""`run --only-failed` and `run --changed-since`: which tests run, and which results are reused."""

import json
import subprocess

import github_api
import pytest
import world
from commands import ci_evals, read_files, read_results, write_suite
from junitparser import JUnitXml

from ci_evals import load_suite
from ci_evals.domain.errors import SuiteError

pytestmark = pytest.mark.slow

NEEDS = {"evaluations": [{"criterion": "Refunds", "strict": "tool_used", "toolName": "refund"}]}
GREETS, REFUNDS = {"name": "Greets"}, NEEDS | {"name": "Refunds"}
REPORTS = ("summary.md", "report.html", "junit.xml", "_results.json")
CI = {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_RUN_ID": "7001", "GITHUB_SHA": "c" * 40}
CI |= {"GITHUB_REPOSITORY": "org/repo"}


@pytest.fixture
def agent():
    """An agent that greets; it refunds if its `workflows` contain that."""
    workflows = []
    with world.agent(lambda heard: world.message("Hello", workflows=[*workflows])) as served:
        served.workflows = workflows
        yield served


def conversations(agent):
    return sum(request.path.endswith("/tasks") for request in agent.requests)


def run(agent, folder, *more, **environ):
    env = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key, **environ}
    before = conversations(agent)
    ran = ci_evals("run", "suite.json", "--provider=offline", *more, cwd=folder, env=env)
    ran.played = conversations(agent) - before
    return ran


def run_expecting(agent, folder, *options, code=0, played=0, text="", shown="", **environ):
    """A run with this exit code, conversations, and texts on standard error and output."""
    ran = run(agent, folder, *options, **environ)
    assert (ran.returncode, ran.played) == (code, played), ran.stderr
    assert (text in ran.stderr, shown in ran.stdout) == (True, True), ran.stderr + ran.stdout
    return ran


def merge(folder, *options, code=0, shown=""):
    merged = ci_evals("merge", "s/1", "s/2", *options, cwd=folder)
    assert merged.returncode == code, merged.stderr + merged.stdout
    assert shown in merged.stdout


def read(folder):
    return json.loads((folder / "_results.json").read_text())


def earlier(agent, folder, *more, **environ):
    """A run in which one test passed and one failed; returns its exit code."""
    write_suite(folder, GREETS, REFUNDS)
    return run(agent, folder, "--output-dir=earlier", *more, **environ).returncode


def results_by_test(results):
    return {test["name"]: test for suite in results["suites"] for test in suite["tests"]}


def run_shards(agent, folder, *options):
    for index in (1, 2):
        ran = run(agent, folder, f"--shard={index}/2", f"--output-dir=s/{index}", *options)
        assert ran.returncode == 0, ran.stderr


def git(folder, *args):
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main")
    command = ["git", "-C", str(folder), *identity, *args]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit_all(folder):
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "1"]):
        git(folder, *command)


def commit_suite_with_paths(folder):
    """A repository with a suite whose tests depend on different folders; returns its first commit."""
    greets = GREETS | {"when": {"paths": ["greeting/**"]}}
    write_suite(folder, greets, REFUNDS | {"when": {"paths": ["refunds"]}}, {"name": "Always"})
    (folder / ".gitignore").write_text("results/\nearlier/\n")
    for name in ("greeting", "refunds"):
        (folder / name).mkdir()
        (folder / name / "prompt.md").write_text("1")
    commit_all(folder)
    return git(folder, "rev-parse", "HEAD")


def test_only_failed_reuses_passed_results_also_in_resumed_runs_and_merged_shards(tmp_path, agent):
    assert earlier(agent, tmp_path) == 1
    agent.workflows.append("refund")
    ran = run_expecting(agent, tmp_path, "--only-failed=earlier", played=1)
    results = read_results(tmp_path)
    first = read(tmp_path / "earlier")
    greets, refunds = results_by_test(results).values()
    source = {"run": first["run"]["id"], "startedAt": first["run"]["startedAt"], "commit": None}
    source |= {"reason": "passed", "uncommittedChanges": False}
    assert greets["takenFrom"] | {"commit": None} == source
    assert greets["trials"] == results_by_test(first)["Greets"]["trials"]
    assert (refunds["takenFrom"], results["score"], results["counts"]["taken"]) == (None, 100, 1)
    counts = results["counts"]
    assert (counts["trials"], counts["takenTrials"], results["latency"]["replies"]) == (2, 1, 1)
    output = "1 of 2 tests was not played: taken from the run of "
    for text in (ran.stdout, *((tmp_path / "results" / name).read_text() for name in REPORTS[:2])):
        assert output in text
        assert "1 not played" in text
    cases = {case.name: case for suite in JUnitXml.fromfile(tmp_path / "results/junit.xml") for case in suite}
    assert cases["Greets"].result[0].message.startswith("passed; not played, taken from the run of ")
    assert cases["Refunds"].result == []

    journal = tmp_path / "results/journal.jsonl"
    lines = [line for line in journal.read_text().splitlines(keepends=True) if '"ended"' not in line]
    journal.write_text("".join(lines))
    resumed = run(agent, tmp_path, "--only-failed=earlier", "--resume=results")
    assert (resumed.played, read_results(tmp_path)["counts"]["taken"]) == (0, 1)

    run_shards(agent, tmp_path, "--only-failed=earlier")
    merge(tmp_path, shown="1 of 2 tests was not played")
    assert read_results(tmp_path)["counts"]["taken"] == 1


def test_only_failed_compares_only_rerun_tests_and_reruns_redefined_ones(tmp_path, agent):
    """A reused result would make a drop look smaller."""
    earlier(agent, tmp_path)
    options = ("--only-failed=earlier/_results.json", "--baseline=earlier", "--output-dir=second")
    assert run(agent, tmp_path, *options).returncode == 1
    comparison = read(tmp_path / "second")["comparison"]
    assert (comparison["tests"], comparison["new"], comparison["removed"]) == (1, [], [])
    run(agent, tmp_path, "--only-failed=second")
    taken = results_by_test(read_results(tmp_path))["Greets"]["takenFrom"]
    assert taken["run"] == read(tmp_path / "earlier")["run"]["id"]
    quarantine = {"quarantine": {"reason": "Sick.", "until": "2999-12-31"}}
    for change, option in (({"guidelines": "You say goodbye."}, ()), (quarantine, ()), ({}, ("--loops=2",))):
        write_suite(tmp_path, GREETS | change, REFUNDS)
        run(agent, tmp_path, "--only-failed=earlier", *option)
        assert read_results(tmp_path)["counts"]["taken"] == 0, change
    write_suite(tmp_path, GREETS | {"critical": True, "tags": ["new"]}, REFUNDS)
    run(agent, tmp_path, "--only-failed=earlier", "--thresholds=tag:new=100")
    results = read_results(tmp_path)
    checks = {check["name"]: check["holds"] for check in results["gate"]["checks"]}
    assert (checks["critical:Greets"], checks["tag:new"]) == (True, True)
    assert results_by_test(results)["Greets"]["takenFrom"]


def test_only_failed_runs_rounds_of_failed_tests_only(tmp_path, agent):
    write_suite(tmp_path, GREETS, REFUNDS)
    run(agent, tmp_path, "--output-dir=earlier", "--loops=2")
    agent.workflows.append("refund")
    ran = run(agent, tmp_path, "--only-failed=earlier", "--rounds=2,3")
    trials = {name: len(test["trials"]) for name, test in results_by_test(read_results(tmp_path)).items()}
    assert (ran.returncode, trials["Greets"]) == (0, 2)
    assert trials["Refunds"] in {2, 3}
    assert ran.played == trials["Refunds"]


def test_unusable_earlier_run_is_rejected_with_reason_before_any_trial(tmp_path, agent):
    earlier(agent, tmp_path)
    for name, text in {"broken.json": "{", "other.txt": "x"}.items():
        (tmp_path / name).write_text(text)
    other = tmp_path / "other"
    other.mkdir()
    write_suite(other, {"name": "Elsewhere"}, name="other.json")
    env = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key}
    ci_evals("run", "other.json", "--provider=offline", cwd=other, env=env)
    for path, problem in (
        ("none", ": cannot be read: No such file or directory"),
        ("broken.json", ""),
        ("other.txt", ""),
        ("other/results", " has none of these tests"),
    ):
        message = f"--only-failed: {path}{problem}"
        run_expecting(agent, tmp_path, f"--only-failed={path}", code=2, text=message)
    before = read_files(tmp_path / "earlier")
    for option in ("--changed-since=main", "--against=agent-id=x"):
        run_expecting(agent, tmp_path, "--only-failed=earlier", option, code=2, text="--only-failed")
    assert read_files(tmp_path / "earlier") == before


STANDING_DECISION = "nothing was played: every test passed in the run of "
GONE = "Gone: “Refunds” of the suite"
LATE = "--max-p95-latency=0.000001"


@pytest.mark.parametrize(
    ("before", "cases"),
    [
        ((), (((), 0), (("--min-score=100",), 0))),
        ((LATE,), ((("--max-p95-latency=60",), 1), (("--no-gate",), 0))),
        ((LATE, "--no-gate"), (((), 1),)),
    ],
)
def test_only_failed_repeats_decision_of_earlier_run_without_failures(tmp_path, agent, before, cases):
    write_suite(tmp_path, GREETS, REFUNDS)
    agent.workflows.append("refund")
    run(agent, tmp_path, "--output-dir=green", *before)
    first = read(tmp_path / "green")
    for now, code in cases:
        run_expecting(agent, tmp_path, "--only-failed=green", *now, code=code, text=STANDING_DECISION)
        results = read_results(tmp_path)
        assert results["gate"] == first["gate"] | {"exitCode": code}
        assert (results["run"]["id"], results["score"]) == (first["run"]["id"], 100)
        assert all(STANDING_DECISION in (tmp_path / "results" / name).read_text() for name in REPORTS[:2])
    run_expecting(agent, tmp_path, "--only-failed=results", "--output-dir=again", *now, code=code)
    assert (tmp_path / "again/_results.json").read_text().count(STANDING_DECISION) == 1


@pytest.fixture
def main_run(tmp_path, agent):
    """A run of two tests that passed, in the folder `main`."""
    agent.workflows.append("refund")
    write_suite(tmp_path, GREETS, REFUNDS)
    run(agent, tmp_path, "--output-dir=main")


WEAKENED = ("--weakened=fail", "--baseline=main")


@pytest.mark.parametrize("before", [(), WEAKENED[1:], WEAKENED])
def test_only_failed_fails_for_removed_tests_whatever_earlier_run_checked(tmp_path, agent, main_run, before):
    """The earlier run had no baseline, was only to warn, or passed before the test was removed."""
    checked = before == WEAKENED
    if checked:
        run(agent, tmp_path, "--output-dir=green", *before)
        run_expecting(agent, tmp_path, "--only-failed=green", *before, text=STANDING_DECISION)
    write_suite(tmp_path, GREETS)
    if not checked:
        assert run(agent, tmp_path, "--output-dir=green", *before).returncode == 0
    run_expecting(agent, tmp_path, "--only-failed=green", *WEAKENED, code=1, shown=GONE)
    if not checked:
        assert run(agent, tmp_path, *WEAKENED, "--output-dir=red").returncode == 1
        run_expecting(agent, tmp_path, "--only-failed=red", "--weakened=fail", "--baseline=green")


def test_unselected_sharded_and_reused_tests_do_not_count_as_removed(tmp_path, agent, main_run):
    assert run(agent, tmp_path, "--test=Greets", *WEAKENED).returncode == 0
    assert run(agent, tmp_path, "--only-failed=main", *WEAKENED).returncode == 0
    run_shards(agent, tmp_path, "--weakened=fail")
    merge(tmp_path, *WEAKENED)
    write_suite(tmp_path, GREETS, {"name": "Other"})
    run(agent, tmp_path, "--output-dir=less")
    merged = ci_evals("merge", "less", *WEAKENED, cwd=tmp_path)
    assert merged.returncode == 1, merged.stderr
    assert "1 test of the baseline is gone." in merged.stdout


def test_shards_without_failures_to_rerun_merge_to_passed_run(tmp_path, agent, main_run):
    before = len(agent.requests)
    run_shards(agent, tmp_path, "--only-failed=main")
    merge(tmp_path, shown="2 of 2 tests were not played")
    assert len(agent.requests) == before


def test_only_failed_rejects_missing_own_and_resumed_results(tmp_path, agent):
    write_suite(tmp_path, GREETS)
    bare = ci_evals("run", "--only-failed", "suite.json", cwd=tmp_path, env={"AGENT_KEY": "k-123456"})
    assert "--only-failed: results: cannot be read" in bare.stderr  # what follows a bare option is a suite
    run(agent, tmp_path)
    (own,) = (tmp_path / "results").glob("*/*/_results.json")
    before = read_files(tmp_path / "results")
    run_expecting(agent, tmp_path, f"--only-failed={own}", code=2, text="--only-failed")
    assert read_files(tmp_path / "results") == before
    text = "Omit --resume: what has passed there is not run again."
    run_expecting(agent, tmp_path, "--only-failed", "--resume=results", code=2, text=text)


@pytest.mark.parametrize("option", ["--only-failed", "--only-failed=last", "--only-failed=results"])
def test_only_failed_without_value_reads_last_run_of_output_folder(tmp_path, agent, option):
    write_suite(tmp_path, GREETS, REFUNDS)
    run_expecting(agent, tmp_path, code=1, played=2)
    run_expecting(agent, tmp_path, option, code=1, played=1)
    agent.workflows.append("refund")
    run_expecting(agent, tmp_path, option, played=1)
    run_expecting(agent, tmp_path, option, text=STANDING_DECISION)


GITLAB = {"CI": "true", "GITLAB_CI": "true", "CI_COMMIT_SHA": "c" * 40}
OF_OTHER_COMMIT = "is of commit cccccccccccc, and this is commit dddddddddddd"


@pytest.mark.parametrize(("here", "commit"), [(CI, "GITHUB_SHA"), (GITLAB, "CI_COMMIT_SHA")])
def test_only_failed_rejects_results_of_other_commit_in_ci(tmp_path, agent, here, commit):
    earlier(agent, tmp_path, **here)
    assert read(tmp_path / "earlier")["run"]["git"]["commit"] == "c" * 40
    other = here | {commit: "d" * 40}
    run_expecting(agent, tmp_path, "--only-failed=earlier", code=2, text=OF_OTHER_COMMIT, **other)
    run_expecting(agent, tmp_path, "--only-failed=earlier", code=1, played=1, **here)
    run_expecting(agent, tmp_path, "--only-failed=earlier", code=2, CI="true")  # of an unknown kind


def test_only_failed_accepts_merge_of_same_commit_and_rejects_file_tracked_by_git(tmp_path, agent):
    """A pull request is tested as its merge; started on its branch, the commit is the pull request's own."""
    earlier(agent, tmp_path, **CI)
    merged = read(tmp_path / "earlier")
    merged["run"]["git"]["headCommit"] = "d" * 40
    (tmp_path / "earlier/_results.json").write_text(json.dumps(merged))
    here = CI | {"GITHUB_SHA": "d" * 40}
    run_expecting(agent, tmp_path, "--only-failed=earlier", code=1, played=1, **here)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--force", "earlier/_results.json")
    run_expecting(agent, tmp_path, "--only-failed=earlier", code=2, text="git tracks earlier/_results.json")


def test_local_run_records_commit_branch_and_uncommitted_changes(tmp_path, agent):
    commit_suite_with_paths(tmp_path)
    (tmp_path / ".gitignore").write_text("")
    git(tmp_path, "commit", "--quiet", "--all", "-m", "2")
    second = git(tmp_path, "rev-parse", "HEAD")
    for _ in range(2):
        run(agent, tmp_path)
        known = read_results(tmp_path)["run"]["git"]
        facts = (known["commit"], known["ref"], known["uncommittedChanges"])
        assert facts == (second, "refs/heads/main", False)
    (tmp_path / "refunds/prompt.md").write_text("2")
    run(agent, tmp_path, "--baseline=results", "--output-dir=changed")
    foot = f"`{second[:7]}` with changes against `{second[:7]}` of main"
    assert foot in (tmp_path / "changed/summary.md").read_text()
    assert f"{second[:7]} with changes" in (tmp_path / "changed/report.html").read_text()
    run(agent, tmp_path, "--baseline=changed")
    assert read_results(tmp_path)["run"]["git"]["uncommittedChanges"] is True
    assert f"against `{second[:7]}` with changes of main" in (tmp_path / "results/summary.md").read_text()
    run(agent, tmp_path, PATH="/nowhere")
    known = read_results(tmp_path)["run"]["git"]
    assert (known["commit"], known["ref"], known["uncommittedChanges"]) == (None, "refs/heads/main", False)


def test_only_failed_warns_locally_about_results_of_other_commit(tmp_path, agent):
    first = commit_suite_with_paths(tmp_path)
    run(agent, tmp_path)
    (tmp_path / "refunds/prompt.md").write_text("2")
    same = run(agent, tmp_path, "--only-failed")
    assert "what passed was played at" not in same.stderr
    git(tmp_path, "commit", "--quiet", "--all", "-m", "2")
    second = git(tmp_path, "rev-parse", "HEAD")
    ran = run(agent, tmp_path, "--only-failed")
    was, is_now = f"commit {first[:12]} with changes", f"commit {second[:12]}"
    assert f"what passed was played at {was}, and this is {is_now}" in ran.stderr


def test_results_with_uncommitted_changes_are_not_reused_in_ci(tmp_path, agent):
    commit = commit_suite_with_paths(tmp_path)
    (tmp_path / "refunds/prompt.md").write_text("2")
    run(agent, tmp_path, "--output-dir=earlier")
    here = {"CI": "true", "CI_COMMIT_SHA": commit}
    text = f"is of commit {commit[:12]} with changes, and this is commit {commit[:12]}"
    run_expecting(agent, tmp_path, "--only-failed=earlier", code=2, text=text, **here)
    text = "the baseline was played with uncommitted changes: what changed since is unknown"
    options = ("--changed-since=HEAD", "--baseline=earlier")
    run_expecting(agent, tmp_path, *options, code=1, played=3, text=text, **here)


def test_changed_since_runs_changed_tests_and_reuses_results_of_baseline(tmp_path, agent):
    first = commit_suite_with_paths(tmp_path)
    run(agent, tmp_path, "--output-dir=earlier")
    (tmp_path / "refunds/new.md").write_text("2")
    agent.workflows.append("refund")
    ran = run_expecting(agent, tmp_path, f"--changed-since={first}", "--baseline=earlier", played=2)
    tests = results_by_test(read_results(tmp_path))
    reasons = {name: test["takenFrom"] and test["takenFrom"]["reason"] for name, test in tests.items()}
    assert reasons == {"Greets": "unchanged", "Refunds": None, "Always": None}
    output = "1 of 3 tests was not played, since no change touches what it depends on: taken from the run of "
    for text in (ran.stdout, *((tmp_path / "results" / name).read_text() for name in REPORTS[:2])):
        assert output in text
    comparison = read_results(tmp_path)["comparison"]
    assert (comparison["tests"], [test["name"] for test in comparison["fixed"]]) == (2, ["Refunds"])
    (tmp_path / "refunds/new.md").unlink()
    (tmp_path / "greeting/prompt.md").write_text("2")
    run_expecting(agent, tmp_path, f"--changed-since={first}", "--baseline=earlier", code=1, played=2)
    cases = [case for suite in JUnitXml.fromfile(tmp_path / "results/junit.xml") for case in suite]
    (refunds,) = [case for case in cases if case.name == "Refunds"]
    assert "not played, taken from the run of" in refunds.result[0].text


def test_changed_since_compares_with_merge_base_of_branch(tmp_path, agent):
    """Later changes of main do not count, unless the baseline is older than they are."""
    environ = CI | {"GITHUB_SHA": commit_suite_with_paths(tmp_path)}
    assert run(agent, tmp_path, "--output-dir=earlier", **environ).returncode == 1
    git(tmp_path, "branch", "--quiet", "mine")
    (tmp_path / "greeting/prompt.md").write_text("of main")
    git(tmp_path, "commit", "--quiet", "-am", "2")
    git(tmp_path, "checkout", "--quiet", "mine")
    options = ("--changed-since=main", "--baseline=earlier", "--test=Greets,Always")
    assert run(agent, tmp_path, *options).played == 1
    git(tmp_path, "merge", "--quiet", "main")
    assert run(agent, tmp_path, *options).played == 2


def test_run_without_changed_tests_is_skipped_but_fails_if_tests_were_removed(tmp_path, agent):
    """Shards too: `merge` looks up their baseline."""
    when = {"paths": ["greeting"]}
    kept = (GREETS, GREETS | {"name": "Hello"})
    write_suite(tmp_path, *kept, {"name": "Other", "critical": True}, when=when)
    (tmp_path / "greeting").touch()
    (tmp_path / ".gitignore").write_text("results\n")
    commit_all(tmp_path)
    run(agent, tmp_path, "--output-dir=earlier")
    options, selected = ("--baseline=earlier", "--weakened=fail"), "--changed-since=HEAD"
    for more in ((), ("--weakened=fail",)):
        run_expecting(agent, tmp_path, selected, "--baseline=earlier", *more, shown="Evals skipped")
        results = read_results(tmp_path)
        assert results["gate"]["passed"] is False
        reason = "no change since HEAD touches what a test depends on (--changed-since)"
        assert (results["run"]["status"], results["run"]["stoppedBecause"]) == ("skipped", reason)
        assert results_by_test(results)["Greets"]["outcome"] == "not_run"
    write_suite(tmp_path, *kept, when=when)
    gone = "Gone: “Other” of the suite"
    assert "Evals failed" in run_expecting(agent, tmp_path, selected, *options, code=1, shown=gone).stdout
    for name in ("summary.md", "report.html"):
        assert "“Other” of the suite" in (tmp_path / "results" / name).read_text()
    (check,) = read_results(tmp_path)["gate"]["checks"]
    assert (check["kind"], check["holds"]) == ("weakened", False)
    before = len(agent.requests)
    run_shards(agent, tmp_path, selected, *options)
    merge(tmp_path, *options, code=1, shown=gone)
    assert len(agent.requests) == before


def test_changed_since_runs_every_test_without_baseline_of_known_commit(tmp_path, agent):
    first = commit_suite_with_paths(tmp_path)
    options = (f"--changed-since={first}", "--baseline=earlier")
    every = {"code": 1, "played": 3}
    text = "every test is played, since there is no baseline to take the others from"
    run_expecting(agent, tmp_path, options[0], text=text, **every)
    run(agent, tmp_path, "--output-dir=earlier", **CI | {"GITHUB_SHA": "e" * 40})
    text = "the baseline's commit eeeeeeeeeeee is not in this clone"
    run_expecting(agent, tmp_path, *options, text=text, **every)
    run(agent, tmp_path, "--output-dir=earlier", PATH="/nowhere")  # without git
    text = "every test is played, since the baseline's commit is unknown"
    run_expecting(agent, tmp_path, *options, text=text, **every, **GITLAB)
    ran = run(agent, tmp_path, *options)
    assert "the baseline's commit is unknown: changes between it and" in ran.stderr


def test_changed_since_is_rejected_without_checkout_git_or_known_commit(tmp_path, agent):
    write_suite(tmp_path, GREETS)
    run_expecting(agent, tmp_path, "--changed-since=main", code=2, text="is not in a git checkout")
    missing = {"code": 2, "text": "git is not installed. Install it.", "PATH": str(tmp_path)}
    run_expecting(agent, tmp_path, "--changed-since=main", **missing)
    source = tmp_path / "source"
    source.mkdir()
    commit_suite_with_paths(source)
    (source / "refunds/prompt.md").write_text("2")
    git(source, "commit", "--quiet", "-am", "2")
    for ref in ("nowhere", "--output=pwned", " "):
        text = f"git does not know the commit {ref!r}. Fetch it first"
        run_expecting(agent, source, f"--changed-since={ref}", code=2, text=text)
    git(tmp_path, "clone", "--quiet", "--depth=1", source.as_uri(), "shallow")
    text = "The clone is shallow: check out with fetch-depth: 0"
    run_expecting(agent, tmp_path / "shallow", "--changed-since=HEAD~1", code=2, text=text)
    assert not (source / "pwned").exists()


def test_git_starts_no_program_configured_in_repository(tmp_path, agent):
    first = commit_suite_with_paths(tmp_path)
    for name in ("core.fsmonitor", "diff.external", "core.hooksPath"):
        git(tmp_path, "config", name, f"touch {tmp_path}/started; false")
    run(agent, tmp_path, f"--changed-since={first}")
    assert not (tmp_path / "started").exists()


def test_invalid_when_paths_are_rejected_by_key(tmp_path, agent):
    for paths in ([], ["/etc"], ["../x"], ["!docs"], ["a\\b"], [""], "src"):
        name = write_suite(tmp_path, GREETS | {"when": {"paths": paths}}, apiKey="key-123456")
        with pytest.raises(SuiteError, match=r"tests\[0\]\.when\.paths"):
            load_suite(str(tmp_path / name))
    run_expecting(agent, tmp_path, code=2, text="tests[0].when.paths")


def test_when_path_that_matches_no_file_causes_no_warning_outside_git(tmp_path, agent):
    write_suite(tmp_path, GREETS | {"when": {"paths": ["nowhere"]}})
    assert "matches no file" not in run(agent, tmp_path).stderr


@pytest.fixture
def github_without_git(tmp_path, agent):
    """GitHub, a baseline of one commit, and a checkout of another without git."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "greeting").mkdir()
    (tmp_path / "greeting" / "a.md").touch()
    write_suite(tmp_path, GREETS | {"when": {"paths": ["greeting"]}}, {"name": "Always"})
    run(agent, tmp_path, "--output-dir=earlier", **CI)
    with github_api.serving() as api:
        server = {"GITHUB_API_URL": api.url, "GITHUB_TOKEN": github_api.TOKEN, "PATH": str(tmp_path / "bin")}
        api.environ = CI | server | {"GITHUB_REPOSITORY": github_api.REPOSITORY, "GITHUB_SHA": "d" * 40}
        for base in ("main", "c" * 40):
            api.changes[base, "d" * 40] = [{"filename": "docs/a.md"}]
        yield api


def test_changed_files_without_git_come_from_github_or_every_test_runs(tmp_path, agent, github_without_git):
    """Since the base branch and since the commit of the baseline, if git is missing."""
    options, api = ("--changed-since=origin/main", "--baseline=earlier"), github_without_git
    run_expecting(agent, tmp_path, *options, played=1, **api.environ)
    api.changes["c" * 40, "d" * 40] = [{"filename": "x.md", "previous_filename": "greeting/a.md"}]
    run_expecting(agent, tmp_path, *options, played=2, **api.environ)
    api.changes["c" * 40, "d" * 40] = []
    api.fail("/compare/", github_api.Answer(403, {"message": "Forbidden"}))
    text = "--changed-since: every test is played, since GitHub answered 403"
    run_expecting(agent, tmp_path, *options, played=2, text=text, **api.environ)
    (tmp_path / "greeting" / "a.md").unlink()  # the path matches no downloaded file
    run_expecting(agent, tmp_path, *options, played=2, **api.environ)


UNMATCHED = {
    "a misspelled folder": ["greetings/**"],
    "a misspelled file": ["greeting/promt.md"],
    "one of several": ["refunds", "greeting/*.txt"],
    "relative to the suite": ["./evals/greeting/**"],
    "an ignored folder": ["earlier/**"],
    "another case": ["Greeting/**"],
}


def test_path_that_matches_no_file_warns_and_its_test_runs(tmp_path, agent):
    """A misspelled path would reuse an old result forever."""
    commit_suite_with_paths(tmp_path)
    unmatched = [GREETS | {"name": name, "when": {"paths": paths}} for name, paths in UNMATCHED.items()]
    write_suite(tmp_path, *unmatched, {"name": "Other", "when": {"paths": ["refunds"]}})
    git(tmp_path, "commit", "--quiet", "-am", "2")
    (tmp_path / "earlier").mkdir()
    (tmp_path / "earlier" / "x").touch()
    assert run(agent, tmp_path, "--output-dir=earlier").played == 7
    changed = run(agent, tmp_path, "--changed-since=HEAD", "--baseline=earlier/_results.json")
    tests = results_by_test(read_results(tmp_path))
    assert (changed.played, tests["Other"]["takenFrom"]["reason"]) == (6, "unchanged"), changed.stderr
    validated = ci_evals("validate", "suite.json", "--strict", cwd=tmp_path)
    assert validated.returncode == 0
    warnings = read_results(tmp_path)["run"]["warnings"]
    for name, paths in UNMATCHED.items():
        text = f"when.paths[{len(paths) - 1}]: {paths[-1]!r} matches no file that git tracks"
        assert any(text in warning for warning in warnings), name
        for err in (changed.stderr, validated.stderr):
            assert text in err, name


def test_new_deleted_and_existing_files_match_paths(tmp_path, agent):
    commit_suite_with_paths(tmp_path)
    (tmp_path / "gone.md").touch()
    paths = dict.fromkeys(("greeting", "./greeting/**", "greeting/*.md", "**/prompt.md"), 0)
    paths |= {"new/**": 1, "gone.md": 1}
    write_suite(tmp_path, *(GREETS | {"name": path, "when": {"paths": [path]}} for path in paths))
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "2")
    assert run(agent, tmp_path, "--output-dir=earlier").played == 6
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "a").touch()
    (tmp_path / "gone.md").unlink()
    changed = run(agent, tmp_path, "--changed-since=HEAD", "--baseline=earlier/_results.json")
    assert changed.returncode == 0, changed.stderr
    tests = results_by_test(read_results(tmp_path))
    assert {name: int(test["takenFrom"] is None) for name, test in tests.items()} == paths
