"""A pull request replayed from event to comment: the action as a process, GitHub as a local server."""

import json
import re

import github_api
import pytest
import yaml
from doc_pages import ROOT
from github_api import FORK, REPOSITORY, TOKEN, Answer
from workflow_replay import (
    BASE,
    FORKED,
    HEAD,
    MERGE,
    NEXT,
    NEXT_MERGE,
    PRESSURE_TEST,
    SUITE,
    demo_agent,
    pull_request_payload,
    push_payload,
    record_baseline,
    repository_with_pull_request,
    upload_baseline,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def actions(tmp_path):
    with repository_with_pull_request(tmp_path) as played:
        yield played


@pytest.fixture(scope="module")
def results_of_main(tmp_path_factory):
    with repository_with_pull_request(tmp_path_factory.mktemp("main")) as played:
        yield record_baseline(played)


@pytest.fixture
def with_baseline(actions, results_of_main):
    upload_baseline(actions, results_of_main)
    return actions


NO_KEY = {"agent-key": "none"}
"""A dummy, so that the job has no secret: a fork's suites are trusted then."""


def test_push_to_main_requests_no_baseline_and_posts_no_comment(actions):
    """It requests only earlier attempts at its commit."""
    run = actions.api.add_run(BASE)
    with demo_agent() as inputs:
        step = actions.step("push", push_payload(), sha=BASE, run=run, inputs=inputs)
    assert step.done.returncode == 0, step.done.stderr
    assert [step.outputs[name] for name in ("result", "delta", "baseline-score")] == ["passed", "", ""]
    runs = f"GET /repos/{REPOSITORY}/actions/"
    assert [request for request in actions.api.requests if not str(request).startswith(runs)] == []


@pytest.mark.end_to_end
def test_comment_is_updated_by_next_push_but_not_by_stale_run(with_baseline):
    actions, api = with_baseline, with_baseline.api
    early = api.add_run(HEAD, event="pull_request", head_branch="topic")
    with demo_agent(broken=["RETURN_REQUEST"]) as inputs:
        step = actions.pull_request_step(7, HEAD, MERGE, inputs=inputs | {"max-drop": "5"})
    assert step.done.returncode == 1, step.done.stderr
    (comment,) = api.comments[7]
    assert comment["body"].startswith("<!-- ci-evals comment: default -->\n")
    assert [text in comment["body"] for text in (PRESSURE_TEST, BASE[:7], HEAD[:7])] == [True] * 3
    outputs = step.outputs
    assert (outputs["result"], float(outputs["baseline-score"])) == ("failed", 100)
    assert float(outputs["delta"]) < -5
    source = f"/blob/{HEAD}/{SUITE}#L"
    assert source in comment["body"]
    assert source in step.step.summary
    assert source not in (step.results_file.parent / "summary.md").read_text()
    line = (step.step.workspace / SUITE).read_text().split(f'"name": "{PRESSURE_TEST}"')[0].count("\n")
    assert f"::error file={SUITE},line={line},title=Failed%3A {PRESSURE_TEST}" in step.done.stdout
    results = json.loads(step.results_file.read_text())
    assert (results["run"]["git"]["headCommit"], results["run"]["git"]["pullRequest"]) == (HEAD, 7)
    assert "the base commit" in results["run"]["baselineNote"]
    # Neither the token nor the address that a download is signed with is anywhere.
    texts = [path.read_text(errors="replace") for path in step.step.folder.rglob("*") if path.is_file()]
    texts += [step.done.stdout.replace(f"::add-mask::{TOKEN}", ""), step.done.stderr, comment["body"]]
    assert not [text for text in texts if TOKEN in text or "signed-secret" in text]
    with demo_agent() as inputs:
        step = actions.pull_request_step(7, NEXT, NEXT_MERGE, inputs=inputs | {"max-drop": "5"})
    assert step.done.returncode == 0, step.done.stderr
    (again,) = api.comments[7]
    assert again["id"] == comment["id"]
    assert PRESSURE_TEST not in again["body"].split("<details>")[0]
    assert NEXT[:7] in again["body"]
    before = again["body"]
    with demo_agent() as inputs:
        step = actions.pull_request_step(7, HEAD, MERGE, run=early, inputs=inputs)
    assert (step.done.returncode, [comment["body"] for comment in api.comments[7]]) == (0, [before])
    assert "stale" in step.done.stderr


def test_rerun_failed_command_plays_failed_tests_and_updates_comment(with_baseline):
    actions, api = with_baseline, with_baseline.api
    options = {"pr-number": "7", "comment": "always", "baseline": "auto", "baseline-branch": "main"}
    options |= {"regression": "significant", "weakened": "fail"}
    with demo_agent(broken=["RETURN_REQUEST"]) as inputs:
        failed = actions.pull_request_step(7, HEAD, MERGE, inputs=inputs)
    (comment,) = api.comments[7]
    run = api.add_run(HEAD, event="workflow_dispatch", head_branch="topic")
    payload = push_payload() | {"inputs": {"command": "rerun failed"}}
    with demo_agent() as inputs:
        given = {"inputs": inputs | options | {"only-failed": "earlier"}, "ref": "refs/heads/topic"}
        files = {"earlier": failed.results_file}
        step = actions.step("workflow_dispatch", payload, sha=HEAD, run=run, downloads=files, **given)
    assert step.done.returncode == 0, step.done.stderr
    (again,) = api.comments[7]
    results = json.loads(step.results_file.read_text())
    taken, tests = results["counts"]["taken"], results["counts"]["tests"]
    assert 0 < taken < tests
    assert again["id"] == comment["id"]
    assert f"{tests} of {tests} tests pass, {taken} not played" in again["body"]
    assert f"{taken} of {tests} tests were not played: taken from the run of" in again["body"]
    assert results["comparison"]["tests"] == tests - taken


def test_rerun_of_job_pools_trials_of_first_attempt(with_baseline):
    actions, api = with_baseline, with_baseline.api
    run = api.add_run(HEAD, event="pull_request", head_branch="topic")
    with demo_agent(broken=["RETURN_REQUEST"]) as inputs:
        inputs |= {"max-drop": "5"}
        first = actions.pull_request_step(7, HEAD, MERGE, run=run, inputs=inputs)
        actions.upload(first, run, "ci-evals-attempt-default-1")
        second = actions.pull_request_step(7, HEAD, MERGE, run=run, inputs=inputs, GITHUB_RUN_ATTEMPT="2")
    assert (first.done.returncode, second.done.returncode) == (1, 1), second.done.stderr
    alone, together = (json.loads(step.results_file.read_text()) for step in (first, second))
    assert together["counts"]["trials"] == 2 * alone["counts"]["trials"]
    assert [(pooled["attempt"], pooled["passed"]) for pooled in together["run"]["pooled"]] == [(1, False)]
    (comment,) = api.comments[7]
    assert "Rerun 1 of this commit: " in comment["body"]
    assert "Rerun 1 of this commit: " in second.step.summary


def test_fork_without_secrets_is_skipped_and_second_workflow_comments(with_baseline):
    actions, api = with_baseline, with_baseline.api
    api.permissions.discard("pull-requests: write")
    api.add_pull(8, FORKED, repository=FORK, branch="main")
    with demo_agent() as inputs:
        run = api.add_run(FORKED, event="pull_request", head_branch="main")
        fork = {"repository": FORK, "branch": "main", "inputs": inputs | {"agent-key": ""}}
        step = actions.pull_request_step(8, FORKED, FORKED, run=run, **fork)
    assert step.done.returncode == 0, step.done.stderr
    assert (step.outputs["result"], step.outputs["passed"], step.outputs["score"]) == ("skipped", "false", "")
    assert "::notice" in step.done.stdout
    assert "agent-key" in step.step.summary
    assert 8 not in api.comments
    api.permissions.add("pull-requests: write")
    payload = {
        "repository": {"full_name": REPOSITORY, "id": github_api.REPOSITORY_ID},
        "workflow_run": {
            "id": run["id"], "run_attempt": 1, "head_sha": FORKED, "head_branch": "main",
            "event": "pull_request", "head_repository": {"full_name": FORK, "owner": {"login": "eve"}},
            "pull_requests": [],
        },
    }  # fmt: skip
    own = {"sha": BASE, "run": api.add_run(BASE), "downloads": {"results": step.results_file}}
    second = actions.step("workflow_run", payload, "comment", "results", **own)
    assert second.done.returncode == 0, second.done.stderr
    (comment,) = api.comments[8]
    assert "Evals skipped" in comment["body"]
    assert FORKED[:7] in comment["body"]


def test_fork_that_weakens_gate_fails_without_a_key(with_baseline):
    """The requirements of suites and gate are compared without a key; if unknown, there is no verdict."""
    actions, api = with_baseline, with_baseline.api
    api.permissions.discard("pull-requests: write")
    api.add_pull(8, FORKED, repository=FORK)

    def result(**more):
        with demo_agent() as inputs:
            given = inputs | {"agent-key": "", "weakened": "fail"} | more
            return actions.pull_request_step(8, FORKED, FORKED, repository=FORK, inputs=given)

    same = result()
    assert (same.done.returncode, same.outputs["result"]) == (0, "skipped"), same.done.stderr
    step = result(**{"min-score": "70"})
    assert (step.done.returncode, step.outputs["result"]) == (1, "failed"), step.done.stderr
    assert "min-score: 80 before, 70 now." in step.step.summary
    assert "::error" in step.done.stdout
    ungated = result(**{"min-score": "70", "no-gate": "true"})
    assert (ungated.done.returncode, ungated.outputs["result"]) == (0, "failed"), ungated.done.stderr
    api.fail("GET .*/actions/artifacts", *[Answer(403, {"message": "x"})] * 9)
    unknown = result()
    assert (unknown.done.returncode, unknown.outputs["result"]) == (3, "invalid"), unknown.done.stderr


def test_failure_is_attributed_to_pr_only_if_baseline_is_of_its_base_commit(actions, results_of_main):
    """A commit between might have broken the test; and a branch's tip may lack commits of its base."""
    with demo_agent() as inputs:
        run = actions.api.add_run(NEXT)
        later = actions.step("push", push_payload(), sha=NEXT, run=run, inputs=inputs).results_file
    for baseline, checkout, since in (
        (results_of_main, None, "in this PR"),
        (results_of_main, MERGE, "in this PR"),
        (results_of_main, HEAD, "since main"),
        (later, MERGE, "since main"),
    ):
        actions.api.comments.clear()
        payload, run = pull_request_payload(7, HEAD), actions.api.add_run(HEAD, event="pull_request")
        given = {"suites": SUITE, "provider": "offline", "baseline": "main", "min-score": "99"}
        files = {"downloads": {"main": baseline}, "checkout": checkout, "ref": "refs/pull/7/merge"}
        with demo_agent(broken=["RETURN_REQUEST"]) as inputs:
            step = actions.step("pull_request", payload, sha=MERGE, run=run, inputs=inputs | given, **files)
        assert step.done.returncode == 1, step.done.stderr
        assert f"broke {since}\n" in actions.api.comments[7][0]["body"], checkout


def test_fork_without_need_for_secrets_is_tested_but_posts_no_comment(with_baseline):
    """Its token may only read: neither run nor `comment` try, and the second stage posts the scores."""
    actions, api = with_baseline, with_baseline.api
    api.add_pull(8, FORKED, repository=FORK)
    with demo_agent() as inputs:
        step = actions.pull_request_step(8, FORKED, FORKED, repository=FORK, inputs=inputs | NO_KEY)
    assert (step.done.returncode, step.outputs["result"]) == (0, "passed"), step.done.stderr
    payload = pull_request_payload(8, FORKED, repository=FORK)
    own = {"sha": FORKED, "run": api.add_run(FORKED), "downloads": {"results": step.results_file}}
    comment = actions.step("pull_request", payload, "comment", "results", **own).done
    assert comment.returncode == 0
    assert "::warning" not in comment.stdout + comment.stderr
    assert "Post it from a second workflow" in comment.stderr
    assert not api.requests_to("POST|PATCH")


def test_shards_are_merged_into_one_gate_and_comment_but_not_without_results(with_baseline):
    actions, api = with_baseline, with_baseline.api
    run = api.add_run(HEAD)
    step = actions.step("push", push_payload(), "merge", "shards", "--shards=2", sha=HEAD, run=run)
    assert step.done.returncode == 2
    assert set(step.outputs) == set(yaml.safe_load((ROOT / "action.yml").read_text())["outputs"])
    assert (step.outputs["passed"], step.outputs["result"]) == ("false", "invalid")
    run = api.add_run(HEAD, event="pull_request", head_branch="topic")
    alone = {"baseline": "none", "no-gate": "true", "comment": "never"}
    with demo_agent(broken=["RETURN_REQUEST"]) as inputs:
        shards = {}
        for name, suite in (("retail", SUITE), ("hr", "demo:hr")):
            shard = inputs | alone | {"suites": suite}
            step = actions.pull_request_step(7, HEAD, MERGE, run=run, inputs=shard)
            shards[f"shards/{name}"] = step.results_file
    assert not api.requests_to("comments")
    last = {"sha": MERGE, "run": run, "ref": "refs/pull/7/merge"}
    payload = pull_request_payload(7, HEAD)
    merged = actions.step("pull_request", payload, "merge", "shards", "--shards=2", downloads=shards, **last)
    assert merged.done.returncode == 1, merged.done.stderr
    assert merged.outputs["result"] == "failed"
    assert float(merged.outputs["delta"]) < -5
    assert PRESSURE_TEST in merged.step.summary
    short = actions.step("pull_request", payload, "merge", "shards", "--shards=3", downloads=shards, **last)
    assert (short.done.returncode, short.outputs["result"]) == (3, "invalid")
    assert "1 of 3 shards is missing" in short.step.summary
    for results in (merged, short):
        files = {"downloads": {"results": results.results_file}}
        result = actions.step("pull_request", payload, "comment", "results", **files, **last)
        assert result.done.returncode == 0, result.done.stderr
    (comment,) = api.comments[7]
    assert "1 of 3 shards is missing" in comment["body"]


def test_missing_secrets_fail_own_pull_request_and_fork_if_configured(with_baseline):
    """Dependabot's is skipped as a fork's, although its branch is one of the repository's own."""
    with demo_agent() as inputs:
        empty = inputs | {"agent-key": ""}
        strict = empty | {"on-missing-secrets": "fail"}
        forked = with_baseline.pull_request_step(8, FORKED, FORKED, repository=FORK, inputs=strict)
        own = with_baseline.pull_request_step(7, HEAD, MERGE, inputs=empty)
        bot = with_baseline.pull_request_step(7, HEAD, MERGE, inputs=empty, GITHUB_ACTOR="dependabot[bot]")
    for step in (forked, own):
        assert (step.done.returncode, step.outputs["result"]) == (2, "invalid")
        assert "apiKey: is empty" in step.done.stderr
        assert "write" not in step.done.stderr
    assert "has no secrets" in forked.done.stderr
    assert "Never put a key into a file" in forked.done.stderr
    assert "has no secrets" not in own.done.stderr
    assert (bot.done.returncode, bot.outputs["result"]) == (0, "skipped"), bot.done.stderr
    assert "Dependabot" in bot.step.summary


def test_no_page_or_message_puts_key_on_command_line():
    """There every user of the machine can read it. docs/parity.md quotes another tool."""
    files = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.yml")]
    files += [*(ROOT / "ci_evals").rglob("*.py"), *(ROOT / "ci_evals").rglob("*.j2")]
    on_command_line = r"--(llm|agent|github)-(key|token)[= ][\"'$\w]*\$|(set|give) --(llm|agent)-key"
    for file in files:
        assert file.name == "parity.md" or not re.search(on_command_line, file.read_text()), file


def test_forbidden_comment_and_check_run_are_warnings_that_name_permissions(with_baseline):
    """Neither prevents the other."""
    api = with_baseline.api
    granted = {*api.permissions}
    for missing, text in (("pull-requests", "no comment was posted"), ("checks", "no check run was created")):
        api.permissions = granted - {f"{missing}: write"}
        with demo_agent() as inputs:
            step = with_baseline.pull_request_step(7, HEAD, MERGE, inputs=inputs | {"check": "true"})
        assert (step.done.returncode, step.outputs["result"]) == (0, "passed")
        (warning,) = [line for line in step.done.stderr.splitlines() if line.startswith("::warning")]
        assert warning.startswith(f"::warning title=ci-evals::{text}")
        assert f"{missing}: write" in warning
        assert step.step.summary
    assert (len(api.comments[7]), len(api.check_runs)) == (1, 1)


def test_invalid_run_replaces_older_verdict_in_comment(with_baseline):
    """It creates no comment if there is none."""
    actions, api = with_baseline, with_baseline.api
    with demo_agent() as inputs:
        wrong = inputs | {"thresholds": "tag:nothing=1"}
        refused = actions.pull_request_step(7, HEAD, MERGE, inputs=wrong)
        assert refused.done.returncode == 2
        assert 7 not in api.comments
        actions.pull_request_step(7, HEAD, MERGE, inputs=inputs)
        assert "Evals passed" in api.comments[7][0]["body"]
        refused = actions.pull_request_step(7, NEXT, NEXT_MERGE, inputs=wrong)
    assert refused.done.returncode == 2
    (comment,) = api.comments[7]
    texts = ("Evals passed", "there is no tag 'nothing'", NEXT[:7])
    assert [text in comment["body"] for text in texts] == [False, True, True]


def test_unreadable_baseline_is_reported_and_run_passes(actions):
    actions.api.permissions.discard("actions: read")
    with demo_agent() as inputs:
        step = actions.pull_request_step(7, HEAD, MERGE, inputs=inputs | {"max-drop": "5"})
    assert step.done.returncode == 0, step.done.stderr
    assert "actions: read" in step.done.stderr
    (comment,) = actions.api.comments[7]
    assert "actions: read" in comment["body"].replace("\\", "")


def test_check_run_on_every_push_and_comment_on_failure_only(with_baseline):
    """After a failure the comment says that it passes again."""
    actions, api = with_baseline, with_baseline.api
    wanted = {"check": "true", "comment-on": "failure", "max-drop": "5"}
    with demo_agent() as inputs:
        step = actions.pull_request_step(7, HEAD, MERGE, inputs=inputs | wanted)
    assert step.done.returncode == 0, step.done.stderr
    assert api.comments.get(7, []) == []
    with demo_agent(broken=["RETURN_REQUEST"]) as inputs:
        step = actions.pull_request_step(7, HEAD, MERGE, inputs=inputs | wanted)
    assert step.done.returncode == 1
    (red,) = [comment["body"] for comment in api.comments[7]]
    with demo_agent() as inputs:
        step = actions.pull_request_step(7, NEXT, NEXT_MERGE, inputs=inputs | wanted)
    (green,) = [comment["body"] for comment in api.comments[7]]
    assert ("❌" in red, "✅ Evals passed" in green) == (True, True)
    conclusions = [(check["head_sha"], check["conclusion"]) for check in api.check_runs]
    assert conclusions == [(HEAD, "success"), (HEAD, "failure"), (NEXT, "success")]
    title = api.check_runs[1]["output"]["title"]
    assert re.fullmatch(r"Evals failed: .* broke in this PR · [\d.]+ / 100, −[\d.]+ against main", title)
    assert PRESSURE_TEST in api.check_runs[1]["output"]["summary"]


def test_weakened_gate_fails_until_writer_approves_it(with_baseline):
    """A later commit that requires still less needs another approval."""
    actions, api = with_baseline, with_baseline.api
    api.rights["eve"] = "read"

    def result(head=HEAD, merge=MERGE, **inputs):
        with demo_agent() as given:
            step = actions.pull_request_step(7, head, merge, inputs=given | {"weakened": "fail"} | inputs)
        return step, step.done.returncode

    lower = {"min-score": "70"}
    step, code = result(**lower)
    assert code == 1, step.done.stderr
    (comment,) = api.comments[7]
    top = comment["body"].split("<details>")[0]
    assert "**1 limit of the gate is looser.**" in top
    assert "min-score: 80 before, 70 now." in top
    (command,) = re.findall(r"`(/evals approve suite [0-9a-f]{40})`", top)
    assert command in step.done.stderr + step.done.stdout
    api.add_comment(7, command, {"login": "eve", "type": "User"})
    assert result(**lower)[1] == 1
    api.add_comment(7, command, {"login": "ann", "type": "User"})
    step, code = result(**lower)
    assert code == 0, step.done.stderr
    results = json.loads(step.results_file.read_text())
    approval = results["weakened"]["approval"]
    assert (approval["by"], approval["commit"]) == ("ann", HEAD)
    assert "Approved by ann" in comment["body"]
    assert result(NEXT, NEXT_MERGE, **lower)[1] == 0
    assert result(NEXT, NEXT_MERGE, **lower | {"min-score": "60"})[1] == 1


def test_weakened_gate_fails_if_comments_or_baseline_cannot_be_read(with_baseline):
    """Before main has left a baseline there is nothing to weaken."""
    actions, api = with_baseline, with_baseline.api
    forbidden = [Answer(403, {"message": "x"})] * 9

    def result(**more):
        with demo_agent() as inputs:
            step = actions.pull_request_step(7, HEAD, MERGE, inputs=inputs | {"weakened": "fail"} | more)
        return (step.done.returncode, step.outputs["result"]), step.done.stderr

    api.fail("GET .*/issues/7/comments", *forbidden)
    outcome, error = result(**{"min-score": "70"})
    assert outcome == (1, "failed"), error
    assert "approvals of weakened suites were not read" in error
    api.faults.clear()
    api.fail("GET .*/actions/artifacts", *forbidden)
    outcome, error = result()
    assert outcome == (3, "invalid"), error
    api.faults.clear()
    api.artifacts.clear()
    outcome, error = result()
    assert outcome[0] == 0, error
