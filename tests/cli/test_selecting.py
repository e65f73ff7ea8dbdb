"""`run --only-failed` and `run --changed-since`: what is played, what is taken, and what reports say."""

import json
import subprocess

import github_api
import pytest
import world
from commands import ci_evals, read_files, read_results, write_suite
from junitparser import JUnitXml

pytestmark = pytest.mark.slow

NEEDS = {"evaluations": [{"criterion": "Refunds", "strict": "tool_used", "toolName": "refund"}]}
GREETS, REFUNDS = {"name": "Greets"}, NEEDS | {"name": "Refunds"}
REPORTS = ("summary.md", "report.html", "junit.xml", "_results.json")
CI = {
    "CI": "true",
    "GITHUB_ACTIONS": "true",
    "GITHUB_RUN_ID": "7001",
    "GITHUB_SHA": "c" * 40,
    "GITHUB_REPOSITORY": "org/repo",
}


@pytest.fixture
def agent():
    """It greets; it refunds once `workflows` says so."""
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


def earlier(agent, folder, *more, **environ):
    """A run in which one test passed and one failed; returns its exit code."""
    write_suite(folder, GREETS, REFUNDS)
    return run(agent, folder, "--output-dir=earlier", *more, **environ).returncode


def by_name(found):
    return {test["name"]: test for suite in found["suites"] for test in suite["tests"]}


def git(folder, *args):
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main")
    return subprocess.run(
        ["git", "-C", str(folder), *identity, *args], check=True, capture_output=True, text=True
    ).stdout.strip()


def committed(folder):
    """A repository with a suite whose tests depend on different folders; returns its first commit."""
    write_suite(
        folder,
        GREETS | {"when": {"paths": ["greeting/**"]}},
        REFUNDS | {"when": {"paths": ["refunds"]}},
        {"name": "Always"},
    )
    (folder / ".gitignore").write_text("results/\nearlier/\n")
    for place in ("greeting", "refunds"):
        (folder / place).mkdir()
        (folder / place / "prompt.md").write_text("1")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "1")
    return git(folder, "rev-parse", "HEAD")


def test_only_what_failed_is_played_again_and_merged_with_the_rest(tmp_path, agent):
    """The run is whole, its score is that of all tests, and every report names what was not played."""
    assert earlier(agent, tmp_path) == 1
    agent.workflows.append("refund")
    ran = run(agent, tmp_path, "--only-failed=earlier")
    assert (ran.returncode, ran.played) == (0, 1)
    found = read_results(tmp_path)
    first = json.loads((tmp_path / "earlier/_results.json").read_text())
    greets, refunds = by_name(found).values()
    assert greets["takenFrom"] | {"commit": None} == {
        "reason": "passed",
        "run": first["run"]["id"],
        "startedAt": first["run"]["startedAt"],
        "commit": None,
        "uncommittedChanges": False,
    }
    assert greets["trials"] == by_name(first)["Greets"]["trials"]
    assert (refunds["takenFrom"], found["score"], found["counts"]["taken"]) == (None, 100, 1)
    assert (found["counts"]["trials"], found["counts"]["takenTrials"], found["latency"]["replies"]) == (
        2,
        1,
        1,
    )
    output = "1 of 2 tests was not played: taken from the run of "
    for text in (ran.stdout, *((tmp_path / "results" / name).read_text() for name in REPORTS[:2])):
        assert output in text
        assert "1 not played" in text
    cases = {case.name: case for suite in JUnitXml.fromfile(tmp_path / "results/junit.xml") for case in suite}
    assert cases["Greets"].result[0].message.startswith("passed; not played, taken from the run of ")
    assert cases["Refunds"].result == []


def test_the_comparison_is_of_what_was_played(tmp_path, agent):
    """A taken test would only make a drop look smaller. What still fails fails the run."""
    earlier(agent, tmp_path)
    ran = run(agent, tmp_path, "--only-failed=earlier/_results.json", "--baseline=earlier")
    assert ran.returncode == 1
    comparison = read_results(tmp_path)["comparison"]
    assert (comparison["tests"], comparison["new"], comparison["removed"]) == (1, [], [])


def test_a_taken_test_keeps_the_run_that_played_it(tmp_path, agent):
    """However often the others are played again."""
    earlier(agent, tmp_path)
    run(agent, tmp_path, "--only-failed=earlier", "--output-dir=second")
    run(agent, tmp_path, "--only-failed=second")
    first = json.loads((tmp_path / "earlier/_results.json").read_text())["run"]["id"]
    assert by_name(read_results(tmp_path))["Greets"]["takenFrom"]["run"] == first


@pytest.mark.parametrize(
    ("change", "option"),
    [
        ({"guidelines": "You say goodbye."}, ()),
        ({"quarantine": {"reason": "Sick.", "until": "2999-12-31"}}, ()),
        ({}, ("--loops=2",)),
    ],
)
def test_a_test_that_would_be_played_otherwise_is_played(tmp_path, agent, change, option):
    """Defined differently, quarantined, or with more trials than it had."""
    earlier(agent, tmp_path)
    write_suite(tmp_path, GREETS | change, REFUNDS)
    run(agent, tmp_path, "--only-failed=earlier", *option)
    assert read_results(tmp_path)["counts"]["taken"] == 0


def test_settings_of_a_taken_test_are_those_of_today(tmp_path, agent):
    """A floor that it misses now fails the run, and a critical test counts as one."""
    write_suite(tmp_path, GREETS, REFUNDS)
    run(agent, tmp_path, "--output-dir=earlier")
    write_suite(tmp_path, GREETS | {"critical": True, "tags": ["new"]}, REFUNDS)
    run(agent, tmp_path, "--only-failed=earlier", "--thresholds=tag:new=100")
    found = read_results(tmp_path)
    checks = {check["name"]: check["holds"] for check in found["gate"]["checks"]}
    assert (checks["critical:Greets"], checks["tag:new"]) == (True, True)
    assert by_name(found)["Greets"]["takenFrom"]


def test_rounds_play_no_taken_test(tmp_path, agent):
    """They are about what is played."""
    write_suite(tmp_path, GREETS, REFUNDS)
    run(agent, tmp_path, "--output-dir=earlier", "--loops=2")
    agent.workflows.append("refund")
    ran = run(agent, tmp_path, "--only-failed=earlier", "--rounds=2,3")
    trials = {name: len(test["trials"]) for name, test in by_name(read_results(tmp_path)).items()}
    assert (ran.returncode, trials["Greets"]) == (0, 2)
    assert trials["Refunds"] in {2, 3}
    assert ran.played == trials["Refunds"]


def test_shards_take_their_part_and_merge_to_the_whole(tmp_path, agent):
    """The merged run names what was not played."""
    earlier(agent, tmp_path)
    agent.workflows.append("refund")
    for index in (1, 2):
        run(agent, tmp_path, "--only-failed=earlier", f"--shard={index}/2", f"--output-dir=s/{index}")
    merged = ci_evals("merge", "s/1", "s/2", cwd=tmp_path)
    assert merged.returncode == 0, merged.stderr
    assert "1 of 2 tests was not played" in merged.stdout
    assert read_results(tmp_path)["counts"]["taken"] == 1


def test_a_resumed_run_takes_the_same(tmp_path, agent):
    """The journal has what this run played."""
    earlier(agent, tmp_path)
    run(agent, tmp_path, "--only-failed=earlier")
    journal = tmp_path / "results/journal.jsonl"
    lines = [line for line in journal.read_text().splitlines(keepends=True) if '"ended"' not in line]
    journal.write_text("".join(lines))
    ran = run(agent, tmp_path, "--only-failed=earlier", "--resume=results")
    assert ran.played == 0
    assert read_results(tmp_path)["counts"]["taken"] == 1


def test_an_earlier_run_that_cannot_be_used_is_refused(tmp_path, agent):
    """With what is wrong and what to do, before anything is played."""
    earlier(agent, tmp_path)
    files = {"broken.json": "{", "other.txt": "x"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    other = tmp_path / "other"
    other.mkdir()
    write_suite(other, {"name": "Elsewhere"}, name="other.json")
    env = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key}
    ci_evals("run", "other.json", "--provider=offline", cwd=other, env=env)
    for path, message in (
        ("none", "--only-failed: none: cannot be read: No such file or directory"),
        ("broken.json", "--only-failed: broken.json"),
        ("other.txt", "--only-failed: other.txt"),
        ("other/results", "--only-failed: other/results has none of these tests"),
    ):
        ran = run(agent, tmp_path, f"--only-failed={path}")
        assert (ran.returncode, ran.played) == (2, 0), path
        assert message in ran.stderr


STANDS = "nothing was played: every test passed in the run of "


@pytest.mark.parametrize(
    ("before", "now", "code"),
    [
        ((), (), 0),
        ((), ("--min-score=100",), 0),
        (("--max-p95-latency=0.000001",), ("--max-p95-latency=60",), 1),
        (("--max-p95-latency=0.000001",), ("--no-gate",), 0),
        (("--max-p95-latency=0.000001", "--no-gate"), (), 1),
    ],
)
def test_where_nothing_failed_the_decision_of_the_earlier_run_stands(tmp_path, agent, before, now, code):
    """Nothing is played, and every report of the earlier run is written again, with a word on that."""
    write_suite(tmp_path, GREETS, REFUNDS)
    agent.workflows.append("refund")
    run(agent, tmp_path, "--output-dir=green", *before)
    first = json.loads((tmp_path / "green/_results.json").read_text())
    ran = run(agent, tmp_path, "--only-failed=green", *now)
    assert (ran.returncode, ran.played) == (code, 0), ran.stderr
    assert STANDS in ran.stderr
    found = read_results(tmp_path)
    assert found["gate"] == first["gate"] | {"exitCode": code}
    assert (found["run"]["id"], found["score"]) == (first["run"]["id"], 100)
    assert all(STANDS in (tmp_path / "results" / name).read_text() for name in ("summary.md", "report.html"))
    again = run(agent, tmp_path, "--only-failed=results", "--output-dir=again", *now)
    assert (again.returncode, again.played) == (code, 0)
    assert (tmp_path / "again/_results.json").read_text().count(STANDS) == 1


def test_a_decision_on_other_suites_does_not_stand_if_they_may_not_be_weakened(tmp_path, agent):
    """With the test gone that the earlier run had, nothing is left to play, and the gate fails."""
    agent.workflows.append("refund")
    write_suite(tmp_path, GREETS, REFUNDS)
    run(agent, tmp_path, "--output-dir=main")
    options = ("--weakened=fail", "--baseline=main")
    run(agent, tmp_path, "--output-dir=green", *options)
    same = run(agent, tmp_path, "--only-failed=green", *options)
    assert (same.returncode, same.played) == (0, 0), same.stderr
    assert STANDS in same.stderr
    write_suite(tmp_path, GREETS)
    ran = run(agent, tmp_path, "--only-failed=green", *options)
    assert (ran.returncode, ran.played) == (1, 0), ran.stderr
    assert "Gone: “Refunds” of the suite" in ran.stdout


@pytest.mark.parametrize("before", [(), ("--baseline=main",)])
def test_a_decision_that_was_not_asked_whether_suites_are_weakened_does_not_stand(tmp_path, agent, before):
    """The earlier run of the same suites had no baseline, or was only to warn."""
    agent.workflows.append("refund")
    write_suite(tmp_path, GREETS, REFUNDS)
    run(agent, tmp_path, "--output-dir=main")
    write_suite(tmp_path, GREETS)
    assert run(agent, tmp_path, "--output-dir=green", *before).returncode == 0
    ran = run(agent, tmp_path, "--only-failed=green", "--weakened=fail", "--baseline=main")
    assert (ran.returncode, ran.played) == (1, 0), ran.stderr
    assert "Gone: “Refunds” of the suite" in ran.stdout
    options = ("--weakened=fail", "--output-dir=red")
    assert run(agent, tmp_path, "--baseline=main", *options).returncode == 1
    ran = run(agent, tmp_path, "--only-failed=red", "--weakened=fail", "--baseline=green")
    assert (ran.returncode, ran.played) == (0, 0), ran.stderr


def test_what_a_run_leaves_out_is_not_weakened(tmp_path, agent):
    """By name, as a shard that is merged, and because it passed before."""
    agent.workflows.append("refund")
    write_suite(tmp_path, GREETS, REFUNDS)
    run(agent, tmp_path, "--output-dir=main")
    options = ("--weakened=fail", "--baseline=main")
    assert run(agent, tmp_path, "--test=Greets", *options).returncode == 0
    assert run(agent, tmp_path, "--only-failed=main", *options).returncode == 0
    for index in (1, 2):
        ran = run(agent, tmp_path, f"--shard={index}/2", f"--output-dir=s/{index}", "--weakened=fail")
        assert ran.returncode == 0, ran.stderr
    merged = ci_evals("merge", "s/1", "s/2", *options, cwd=tmp_path)
    assert merged.returncode == 0, merged.stderr + merged.stdout
    write_suite(tmp_path, GREETS, {"name": "Other"})
    run(agent, tmp_path, "--output-dir=less")
    merged = ci_evals("merge", "less", *options, cwd=tmp_path)
    assert merged.returncode == 1, merged.stderr
    assert "1 test of the baseline is gone." in merged.stdout


def test_shards_of_a_run_in_which_nothing_failed_merge_to_a_pass(tmp_path, agent):
    write_suite(tmp_path, GREETS, REFUNDS)
    agent.workflows.append("refund")
    run(agent, tmp_path, "--output-dir=green")
    for index in (1, 2):
        ran = run(agent, tmp_path, "--only-failed=green", f"--shard={index}/2", f"--output-dir=s/{index}")
        assert (ran.returncode, ran.played) == (0, 0), ran.stderr
    merged = ci_evals("merge", "s/1", "s/2", cwd=tmp_path)
    assert merged.returncode == 0, merged.stderr
    assert "2 of 2 tests were not played" in merged.stdout


def test_the_results_of_the_run_that_stands_are_not_overwritten(tmp_path, agent):
    write_suite(tmp_path, GREETS)
    run(agent, tmp_path)
    (own,) = (tmp_path / "results").glob("*/*/_results.json")
    before = read_files(tmp_path / "results")
    ran = run(agent, tmp_path, f"--only-failed={own}")
    assert (ran.returncode, ran.played) == (2, 0)
    assert "--only-failed" in ran.stderr
    assert read_files(tmp_path / "results") == before


@pytest.mark.parametrize("option", ["--only-failed", "--only-failed=last", "--only-failed=results"])
def test_without_a_value_it_is_the_output_folders_last_run(tmp_path, agent, option):
    """Rerun after rerun, until nothing is left to play: then the decision of the last one stands."""
    write_suite(tmp_path, GREETS, REFUNDS)
    first = run(agent, tmp_path)
    assert first.returncode == 1
    again = run(agent, tmp_path, option)
    assert (again.returncode, again.played) == (1, 1)
    agent.workflows.append("refund")
    mended = run(agent, tmp_path, option)
    assert (mended.returncode, mended.played) == (0, 1)
    nothing_left = run(agent, tmp_path, option)
    assert (nothing_left.returncode, nothing_left.played) == (0, 0)
    assert "nothing was played: every test passed in the run of" in nothing_left.stderr


def test_value_needs_an_equals_sign(tmp_path, agent):
    """What follows a bare option is a suite."""
    write_suite(tmp_path, GREETS)
    options = ("run", "--only-failed", "suite.json", "--provider=offline")
    done = ci_evals(*options, cwd=tmp_path, env={"AGENT_KEY": "k-123456"})
    assert "--only-failed: results: cannot be read" in done.stderr


def test_the_last_run_is_not_both_resumed_and_read(tmp_path, agent):
    write_suite(tmp_path, GREETS)
    run(agent, tmp_path)
    done = run(agent, tmp_path, "--only-failed", "--resume=results")
    assert (done.returncode, done.played) == (2, 0)
    assert "Omit --resume: what has passed there is not run again." in done.stderr


@pytest.mark.parametrize(
    "more",
    [
        ("--changed-since=main",),
        ("--against=agent-id=x",),
    ],
)
def test_options_that_contradict_it_are_refused(tmp_path, agent, more):
    earlier(agent, tmp_path)
    before = read_files(tmp_path / "earlier")
    ran = run(agent, tmp_path, "--only-failed=earlier", *more)
    assert (ran.returncode, ran.played) == (2, 0)
    assert "--only-failed" in ran.stderr
    assert read_files(tmp_path / "earlier") == before


def test_in_ci_a_pass_of_another_commit_stands_for_nothing(tmp_path, agent):
    """Nor does a file that was committed; outside CI the commit is said."""
    earlier(agent, tmp_path, **CI)
    ran = run(agent, tmp_path, "--only-failed=earlier", **(CI | {"GITHUB_SHA": "d" * 40}))
    assert (ran.returncode, ran.played) == (2, 0)
    assert "is of commit cccccccccccc, and this is commit dddddddddddd" in ran.stderr
    assert run(agent, tmp_path, "--only-failed=earlier", **CI).returncode == 1
    # A pull request is tested as its merge; started on its branch, the commit is the pull request's own.
    file = tmp_path / "earlier/_results.json"
    merge = json.loads(file.read_text())
    merge["run"]["git"]["headCommit"] = "d" * 40
    file.write_text(json.dumps(merge))
    ran = run(agent, tmp_path, "--only-failed=earlier", **(CI | {"GITHUB_SHA": "d" * 40}))
    assert (ran.returncode, ran.played) == (1, 1)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--force", "earlier/_results.json")
    ran = run(agent, tmp_path, "--only-failed=earlier")
    assert (ran.returncode, ran.played) == (2, 0)
    assert "git tracks earlier/_results.json" in ran.stderr


def test_a_local_run_names_its_commit_and_its_changes(tmp_path, agent):
    """In the results and on the page; its own reports are no change."""
    committed(tmp_path)
    (tmp_path / ".gitignore").write_text("")
    git(tmp_path, "commit", "--quiet", "--all", "-m", "2")
    second = git(tmp_path, "rev-parse", "HEAD")
    for _ in range(2):
        run(agent, tmp_path)
        known = read_results(tmp_path)["run"]["git"]
        assert (known["commit"], known["ref"]) == (second, "refs/heads/main")
        assert known["uncommittedChanges"] is False
    (tmp_path / "refunds/prompt.md").write_text("2")
    run(agent, tmp_path, "--baseline=results", "--output-dir=changed")
    foot = f"`{second[:7]}` with changes against `{second[:7]}` of main"
    assert foot in (tmp_path / "changed/summary.md").read_text()
    assert f"{second[:7]} with changes" in (tmp_path / "changed/report.html").read_text()
    run(agent, tmp_path, "--baseline=changed")
    assert read_results(tmp_path)["run"]["git"]["uncommittedChanges"] is True
    assert f"against `{second[:7]}` with changes of main" in (tmp_path / "results/summary.md").read_text()


def test_a_pass_of_another_local_commit_is_warned_of(tmp_path, agent):
    """Work on top of one commit is the loop itself, and needs no word."""
    first = committed(tmp_path)
    run(agent, tmp_path)
    (tmp_path / "refunds/prompt.md").write_text("2")
    same = run(agent, tmp_path, "--only-failed")
    assert "what passed was played at" not in same.stderr
    git(tmp_path, "commit", "--quiet", "--all", "-m", "2")
    second = git(tmp_path, "rev-parse", "HEAD")
    ran = run(agent, tmp_path, "--only-failed")
    was, is_now = f"commit {first[:12]} with changes", f"commit {second[:12]}"
    assert f"what passed was played at {was}, and this is {is_now}" in ran.stderr


def test_a_local_run_with_changes_stands_for_nothing_in_ci(tmp_path, agent):
    """Its commit does not have what passed."""
    commit = committed(tmp_path)
    (tmp_path / "refunds/prompt.md").write_text("2")
    run(agent, tmp_path, "--output-dir=earlier")
    here = {"CI": "true", "CI_COMMIT_SHA": commit}
    ran = run(agent, tmp_path, "--only-failed=earlier", **here)
    assert (ran.returncode, ran.played) == (2, 0)
    assert f"is of commit {commit[:12]} with changes, and this is commit {commit[:12]}" in ran.stderr
    ran = run(agent, tmp_path, "--changed-since=HEAD", "--baseline=earlier", **here)
    assert "the baseline was played with uncommitted changes: what changed since is unknown" in ran.stderr
    assert ran.played == 3


def test_without_git_a_local_run_names_its_branch_alone(tmp_path, agent):
    """Nobody knows what differs from the commit."""
    committed(tmp_path)
    run(agent, tmp_path, PATH="/nowhere")
    known = read_results(tmp_path)["run"]["git"]
    assert (known["commit"], known["ref"], known["uncommittedChanges"]) == (None, "refs/heads/main", False)


GITLAB = {"CI": "true", "GITLAB_CI": "true", "CI_COMMIT_SHA": "c" * 40}


def test_other_services_name_their_commits_too(tmp_path, agent):
    """Else a pass of any commit would stand for this one there; a commit that nobody names is another."""
    earlier(agent, tmp_path, **GITLAB)
    assert json.loads((tmp_path / "earlier/_results.json").read_text())["run"]["git"]["commit"] == "c" * 40
    ran = run(agent, tmp_path, "--only-failed=earlier", **(GITLAB | {"CI_COMMIT_SHA": "d" * 40}))
    assert (ran.returncode, ran.played) == (2, 0)
    assert "is of commit cccccccccccc, and this is commit dddddddddddd" in ran.stderr
    assert run(agent, tmp_path, "--only-failed=earlier", **GITLAB).returncode == 1
    ran = run(agent, tmp_path, "--only-failed=earlier", CI="true")
    assert (ran.returncode, ran.played) == (2, 0)


def test_a_baseline_of_an_unknown_commit_stands_for_nothing_in_ci(tmp_path, agent):
    """What changed since it is not known; elsewhere that is said."""
    first = committed(tmp_path)
    run(agent, tmp_path, "--output-dir=earlier", PATH="/nowhere")  # without git
    options = (f"--changed-since={first}", "--baseline=earlier")
    ran = run(agent, tmp_path, *options, **GITLAB)
    assert ran.played == 3
    assert "every test is played, since the baseline's commit is unknown" in ran.stderr
    ran = run(agent, tmp_path, *options)
    assert "the baseline's commit is unknown: changes between it and" in ran.stderr


def test_only_what_a_change_touches_is_played(tmp_path, agent):
    """Committed or not; a test without paths is always played, the rest is the baseline's and said."""
    first = committed(tmp_path)
    run(agent, tmp_path, "--output-dir=earlier")
    (tmp_path / "refunds/new.md").write_text("2")
    agent.workflows.append("refund")
    ran = run(agent, tmp_path, f"--changed-since={first}", "--baseline=earlier")
    assert (ran.returncode, ran.played) == (0, 2)
    taken = {
        name: test["takenFrom"] and test["takenFrom"]["reason"]
        for name, test in by_name(read_results(tmp_path)).items()
    }
    assert taken == {"Greets": "unchanged", "Refunds": None, "Always": None}
    output = "1 of 3 tests was not played, since no change touches what it depends on: taken from the run of "
    for text in (ran.stdout, *((tmp_path / "results" / name).read_text() for name in REPORTS[:2])):
        assert output in text
    comparison = read_results(tmp_path)["comparison"]
    assert (comparison["tests"], [test["name"] for test in comparison["fixed"]]) == (2, ["Refunds"])


def test_test_that_failed_in_the_baseline_fails_and_says_so(tmp_path, agent):
    """It is not played, and no pass either."""
    first = committed(tmp_path)
    run(agent, tmp_path, "--output-dir=earlier")
    (tmp_path / "greeting/prompt.md").write_text("2")
    ran = run(agent, tmp_path, f"--changed-since={first}", "--baseline=earlier")
    assert (ran.returncode, ran.played) == (1, 2)
    case = next(
        c for s in JUnitXml.fromfile(tmp_path / "results/junit.xml") for c in s if c.name == "Refunds"
    )
    assert "not played, taken from the run of" in case.result[0].text


def test_a_branch_is_compared_with_where_it_left_the_other(tmp_path, agent):
    """What main did meanwhile touches nothing here, unless the baseline is older than that."""
    committed(tmp_path)
    first = run(
        agent, tmp_path, "--output-dir=earlier", **(CI | {"GITHUB_SHA": git(tmp_path, "rev-parse", "HEAD")})
    )
    assert first.returncode == 1
    git(tmp_path, "checkout", "--quiet", "-b", "mine")
    git(tmp_path, "checkout", "--quiet", "main")
    (tmp_path / "greeting/prompt.md").write_text("of main")
    git(tmp_path, "commit", "--quiet", "-am", "2")
    git(tmp_path, "checkout", "--quiet", "mine")
    ran = run(agent, tmp_path, "--changed-since=main", "--baseline=earlier", "--test=Greets,Always")
    assert ran.played == 1
    git(tmp_path, "merge", "--quiet", "main")
    ran = run(agent, tmp_path, "--changed-since=main", "--baseline=earlier", "--test=Greets,Always")
    assert ran.played == 2


def test_if_nothing_is_touched_the_run_is_skipped(tmp_path, agent):
    """It neither passes nor fails, and says why."""
    write_suite(tmp_path, GREETS, when={"paths": ["greeting"]})
    (tmp_path / "greeting").touch()
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "suite.json", "greeting")
    git(tmp_path, "commit", "--quiet", "-m", "1")
    run(agent, tmp_path, "--output-dir=earlier")
    ran = run(agent, tmp_path, "--changed-since=HEAD", "--baseline=earlier")
    found = read_results(tmp_path)
    assert (ran.returncode, ran.played, found["gate"]["passed"], found["run"]["status"]) == (
        0,
        0,
        False,
        "skipped",
    )
    assert found["run"]["stoppedBecause"] == (
        "no change since HEAD touches what a test depends on (--changed-since)"
    )
    assert by_name(found)["Greets"]["outcome"] == "not_run"


def test_a_skipped_run_fails_if_its_suites_are_weakened(tmp_path, agent):
    """Also as shards, whose baseline `merge` looks up."""
    when = {"paths": ["greeting"]}
    kept = (GREETS, GREETS | {"name": "Hello"})
    write_suite(tmp_path, *kept, {"name": "Other", "critical": True}, when=when)
    (tmp_path / "greeting").touch()
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "suite.json", "greeting")
    git(tmp_path, "commit", "--quiet", "-m", "1")
    run(agent, tmp_path, "--output-dir=earlier")
    options, selected = ("--baseline=earlier", "--weakened=fail"), "--changed-since=HEAD"
    ran = run(agent, tmp_path, selected, *options)
    assert (ran.returncode, ran.played, read_results(tmp_path)["run"]["status"]) == (0, 0, "skipped")
    assert "Evals skipped" in ran.stdout
    write_suite(tmp_path, *kept, when=when)
    ran = run(agent, tmp_path, selected, *options)
    assert (ran.returncode, ran.played) == (1, 0), ran.stderr
    assert "Gone: “Other” of the suite" in ran.stdout
    assert "Evals failed" in ran.stdout
    for name in ("summary.md", "report.html"):
        assert "“Other” of the suite" in (tmp_path / "results" / name).read_text()
    (check,) = read_results(tmp_path)["gate"]["checks"]
    assert (check["kind"], check["holds"]) == ("weakened", False)
    for index in (1, 2):
        folder = f"--output-dir=s/{index}"
        shard = run(agent, tmp_path, f"--shard={index}/2", folder, selected, *options)
        assert (shard.returncode, shard.played) == (0, 0), shard.stderr
    merged = ci_evals("merge", "s/1", "s/2", *options, cwd=tmp_path)
    assert merged.returncode == 1, merged.stderr + merged.stdout
    assert "Gone: “Other” of the suite" in merged.stdout


def test_without_a_baseline_every_test_is_played(tmp_path, agent):
    """There is nothing to take."""
    committed(tmp_path)
    ran = run(agent, tmp_path, "--changed-since=HEAD")
    assert ran.played == 3
    assert "every test is played, since there is no baseline to take the others from" in ran.stderr
    unknown = CI | {"GITHUB_SHA": "e" * 40}
    run(agent, tmp_path, "--output-dir=earlier", **unknown)
    ran = run(agent, tmp_path, "--changed-since=HEAD", "--baseline=earlier")
    assert ran.played == 3
    assert "the baseline's commit eeeeeeeeeeee is not in this clone" in ran.stderr


def test_a_change_that_git_cannot_tell_is_refused(tmp_path, agent):
    """No checkout, no git, a ref that nobody knows or that looks like an option, a shallow clone."""
    write_suite(tmp_path, GREETS)
    ran = run(agent, tmp_path, "--changed-since=main")
    assert (ran.returncode, ran.played) == (2, 0)
    assert "is not in a git checkout" in ran.stderr
    ran = run(agent, tmp_path, "--changed-since=main", PATH=str(tmp_path))
    assert ran.returncode == 2
    assert "git is not installed. Install it." in ran.stderr
    source = tmp_path / "source"
    source.mkdir()
    committed(source)
    (source / "refunds/prompt.md").write_text("2")
    git(source, "commit", "--quiet", "-am", "2")
    for ref in ("nowhere", "--output=pwned", " "):
        ran = run(agent, source, f"--changed-since={ref}")
        assert (ran.returncode, ran.played) == (2, 0), ref
        assert f"git does not know the commit {ref!r}. Fetch it first" in ran.stderr
    git(tmp_path, "clone", "--quiet", "--depth=1", source.as_uri(), "shallow")
    ran = run(agent, tmp_path / "shallow", "--changed-since=HEAD~1")
    assert ran.returncode == 2
    assert "The clone is shallow: check out with fetch-depth: 0" in ran.stderr
    assert not (source / "pwned").exists()


def test_git_starts_no_program_that_a_repository_names(tmp_path, agent):
    """Neither a monitor of its file system nor a program for differences."""
    first = committed(tmp_path)
    for name in ("core.fsmonitor", "diff.external", "core.hooksPath"):
        git(tmp_path, "config", name, f"touch {tmp_path}/started; false")
    run(agent, tmp_path, f"--changed-since={first}")
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("paths", [[], ["/etc"], ["../x"], ["!docs"], ["a\\b"], [""], "src"])
def test_paths_that_are_none_are_refused(tmp_path, agent, paths):
    """With their place in the suite."""
    write_suite(tmp_path, GREETS | {"when": {"paths": paths}})
    ran = run(agent, tmp_path)
    assert ran.returncode == 2
    assert "tests[0].when.paths" in ran.stderr


@pytest.fixture
def on_github(tmp_path, agent):
    """A baseline of one commit, another one that is tested without git, and GitHub."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "greeting").mkdir()
    (tmp_path / "greeting" / "a.md").touch()
    write_suite(tmp_path, GREETS | {"when": {"paths": ["greeting"]}}, {"name": "Always"})
    run(agent, tmp_path, "--output-dir=earlier", **CI)
    with github_api.serving() as api:
        variables = {
            "GITHUB_API_URL": api.url,
            "GITHUB_TOKEN": github_api.TOKEN,
            "PATH": str(tmp_path / "bin"),
        }
        variables |= {"GITHUB_REPOSITORY": github_api.REPOSITORY, "GITHUB_SHA": "d" * 40}
        api.environ = CI | variables
        for base in ("main", "c" * 40):
            api.changes[base, "d" * 40] = [{"filename": "docs/a.md"}]
        yield api


def played_with(api, agent, folder):
    ran = run(agent, folder, "--changed-since=origin/main", "--baseline=earlier", **api.environ)
    assert ran.returncode == 0, ran.stderr
    return ran


def test_without_git_github_says_what_changed(tmp_path, agent, on_github):
    """Since the base branch and since the baseline's commit; a renamed file is its old path too."""
    assert played_with(on_github, agent, tmp_path).played == 1
    moved = {"filename": "x.md", "previous_filename": "greeting/a.md"}
    on_github.changes["c" * 40, "d" * 40] = [moved]
    assert played_with(on_github, agent, tmp_path).played == 2


def test_without_git_a_path_that_matches_no_file_is_played(tmp_path, agent, on_github):
    """The files are those that were downloaded."""
    (tmp_path / "greeting" / "a.md").unlink()
    assert played_with(on_github, agent, tmp_path).played == 2


def test_what_github_does_not_say_is_played(tmp_path, agent, on_github):
    """All of it: nothing is taken for unchanged."""
    on_github.fail("/compare/", github_api.Answer(403, {"message": "Forbidden"}))
    ran = played_with(on_github, agent, tmp_path)
    assert ran.played == 2
    assert "--changed-since: every test is played, since GitHub answered 403" in ran.stderr


UNMATCHED = {
    "a misspelled folder": ["greetings/**"],
    "a misspelled file": ["greeting/promt.md"],
    "one of several": ["refunds", "greeting/*.txt"],
    "relative to the suite": ["./evals/greeting/**"],
    "an ignored folder": ["earlier/**"],
    "another case": ["Greeting/**"],
}


@pytest.mark.parametrize("case", UNMATCHED)
def test_a_path_that_matches_no_file_is_a_warning_and_the_test_is_played(tmp_path, agent, case):
    """A misspelled path would take the result of an old run for ever."""
    committed(tmp_path)
    write_suite(
        tmp_path,
        GREETS | {"when": {"paths": UNMATCHED[case]}},
        {"name": "Other", "when": {"paths": ["refunds"]}},
    )
    git(tmp_path, "commit", "--quiet", "-am", "2")
    (tmp_path / "earlier").mkdir()
    (tmp_path / "earlier" / "x").touch()
    assert run(agent, tmp_path, "--output-dir=earlier").played == 2
    changed = run(agent, tmp_path, "--changed-since=HEAD", "--baseline=earlier/_results.json")
    assert changed.played == 1, changed.stderr
    path = UNMATCHED[case][-1]
    text = f"when.paths[{len(UNMATCHED[case]) - 1}]: {path!r} matches no file that git tracks"
    assert text in changed.stderr
    assert any(text in warning for warning in read_results(tmp_path)["run"]["warnings"])
    weak = ci_evals("validate", "suite.json", "--strict", cwd=tmp_path)
    assert (weak.returncode, text in weak.stderr) == (0, True)


@pytest.mark.parametrize(
    "path", ["greeting", "./greeting/**", "greeting/*.md", "**/prompt.md", "new/**", "gone.md"]
)
def test_a_path_that_matches_a_file_or_a_change_is_fine(tmp_path, agent, path):
    """Files that are new or deleted in the change count."""
    committed(tmp_path)
    (tmp_path / "gone.md").touch()
    write_suite(tmp_path, GREETS | {"when": {"paths": [path]}})
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "2")
    assert run(agent, tmp_path, "--output-dir=earlier").played == 1
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "a").touch()
    (tmp_path / "gone.md").unlink()
    changed = run(agent, tmp_path, "--changed-since=HEAD", "--baseline=earlier/_results.json")
    assert changed.played == (1 if path in {"new/**", "gone.md"} else 0), changed.stderr


def test_outside_of_git_nothing_is_said_about_paths(tmp_path, agent):
    """Nobody knows which files the repository has."""
    write_suite(tmp_path, GREETS | {"when": {"paths": ["nowhere"]}})
    assert "matches no file" not in run(agent, tmp_path).stderr
