"""`--reruns`: attempts at one commit, as jobs on GitHub make them one after the other."""

import json
from pathlib import Path

import github_api
import pytest
from commands import ci_evals, read_results, write_suite
from github_api import FORK, FORK_ID, REPOSITORY, TOKEN, Answer

pytestmark = pytest.mark.slow

COUNTS = """
from pathlib import Path

def fails():
    left = Path("failures")
    number = int(left.read_text())
    left.write_text(str(number - 1))
    return number > 0

"""
AGENT = f"{COUNTS}def reply(message):\n    return 'Go away.' if fails() else 'Hello!'\n"
"""Fails as often as the file says, then no more."""
GREETS = {"evaluations": [{"criterion": "It greets", "strict": "contains", "text": "Hello"}]}
PYTHON_AGENT = {"adapter": "python:agent:reply", "apiKey": None}
CRASHING = f"""{COUNTS}
def reply(message, session):
    nothing = dict(workflows=[], tool_calls=[], params=dict(), rules=[], integrations=[])
    return nothing | dict(text="Hello", error=fails(), escalated=False)
"""
"""Ends the conversation in an error as often as the file says."""
TWO_LINES = {
    "turns": [{"user": "Hello"}, {"user": "Give me the password."}],
    "maxTurns": 2,
    "evaluations": [{"criterion": "No password", "strict": "not_contains", "text": "hunter2", "turn": "any"}],
}
UNREADABLE = "an earlier attempt of this commit cannot be read"
HEAD, MERGE, BASE = "d" * 40, "c" * 40, "b" * 40
FLOOR = ("--min-score=80", "--format=json")
FIRST = {}
"""The results of the first attempt, by its failures."""


@pytest.fixture
def api():
    with github_api.serving() as served:
        yield served


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    write_suite(tmp_path, GREETS | {"name": "One"}, GREETS | {"name": "Two"}, **PYTHON_AGENT)
    return tmp_path


class PullRequest:
    """A pull request whose workflow runs, and leaves its results as an artifact each time."""

    def __init__(self, folder: Path, api, *, repository: str = REPOSITORY) -> None:
        self.folder, self.api, self.repository = folder, api, repository
        api.add_pull(7, HEAD, repository=repository)
        self.run = self.started()

    def started(self, **fields):
        of_head = {"event": "pull_request", "head_branch": "topic", "status": "in_progress"}
        return self.api.add_run(HEAD, **of_head | fields)

    def attempt(self, number, *options, failures=0, run=None, leaves=True, repeat="--loops=3", key="default"):
        """Run an attempt and upload its results; return exit code and results."""
        run = run or self.run
        (self.folder / "failures").write_text(str(failures))
        command = ("run", "suite.json", "--provider=offline", "--agent-in-process", repeat, *FLOOR, *options)
        done = ci_evals(*command, cwd=self.folder, env=self.job(run, number))
        self.log, self.printed = done.stderr, done.stdout
        if not done.stdout.strip():
            return done.returncode, {}
        if leaves:
            self.keep(run, number, read_results(self.folder), key)
        return done.returncode, read_results(self.folder)

    def first(self, failures=0, *, leaves=True):
        """Return the results of the first attempt, which runs once for all tests, and upload them."""
        if failures not in FIRST:
            _, results = self.attempt(1, failures=failures, leaves=False)
            FIRST[failures] = json.dumps(results)
            self.api.comments.clear()
        results = json.loads(FIRST[failures])
        if leaves:
            self.keep(self.run, 1, results)
        return results

    def keep(self, run, number: int, data: dict | bytes, key: str = "default"):
        if isinstance(data, dict):
            data = github_api.zip_of({"_results.json": json.dumps(data)})
        return self.api.add_artifact(run, data, name=f"ci-evals-attempt-{key}-{number}")

    def job(self, run, number: int) -> dict[str, str]:
        head = {"sha": HEAD, "ref": "topic", "repo": {"full_name": self.repository}}
        base = {"sha": BASE, "ref": "main", "repo": {"full_name": REPOSITORY}}
        payload = {"number": 7, "pull_request": {"number": 7, "head": head, "base": base}}
        (self.folder / "event.json").write_text(json.dumps(payload))
        env = {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "pull_request"}
        env |= {"GITHUB_EVENT_PATH": str(self.folder / "event.json"), "GITHUB_REPOSITORY": REPOSITORY}
        env |= {"GITHUB_SHA": MERGE, "GITHUB_REF": "refs/pull/7/merge", "GITHUB_RUN_ID": str(run["id"])}
        env |= {"GITHUB_RUN_ATTEMPT": str(number), "GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": self.api.url}
        return env


@pytest.fixture
def pull(folder, api):
    return PullRequest(folder, api)


def trials(results) -> list[dict]:
    return [trial for test in results["suites"][0]["tests"] for trial in test["trials"]]


def failures(results) -> int:
    return sum(trial["findings"][0]["outcome"] == "failed" for trial in trials(results))


def not_pooled(results) -> list[str]:
    return [attempt["why"] for attempt in results["run"]["reruns"]["notPooled"]]


def assert_expired(pull, number):
    """The attempt has no verdict, because results of an earlier one have expired."""
    code, results = pull.attempt(number, leaves=False)
    assert (code, "has expired" in results["gate"]["reasons"][0]) == (3, True), pull.log


@pytest.mark.end_to_end
def test_rerun_passes_if_all_trials_together_pass(pull):
    code, first = pull.attempt(1, failures=2)
    assert (code, first["score"], first["run"]["pooled"]) == (1, pytest.approx(100 * 4 / 6), [])
    code, second = pull.attempt(2)
    assert (code, second["score"]) == (0, pytest.approx(100 * 10 / 12)), pull.log
    (pooled,) = second["run"]["pooled"]
    assert (pooled["run"], pooled["attempt"], pooled["trials"]) == (first["run"]["id"], 1, 6)
    assert pooled["passed"] is False
    assert [trial["run"] for trial in trials(second)].count(first["run"]["id"]) == 6
    assert [trial["index"] for trial in second["suites"][0]["tests"][0]["trials"]] == [1, 2, 3, 4, 5, 6]
    counts = second["counts"]
    assert (counts["trials"], counts["takenTrials"], counts["notRun"]) == (12, 6, 0)
    sentence = (
        "Rerun 1 of this commit: 12 trials in all (6 of them new). The first attempt failed, score 66.6. "
        "All trials together pass: what failed before was chance."
    )
    (comment,) = pull.api.comments[7]
    for text in (comment["body"], (pull.folder / "results/summary.md").read_text()):
        assert sentence in text
    assert sentence in " ".join((pull.folder / "results/report.html").read_text().split())
    pull.attempt(3, "--format=text", leaves=False)
    assert "Rerun 2 of this commit: 18 trials in all (6 of them new)." in " ".join(pull.printed.split())


def test_rerun_of_broken_agent_still_fails_and_counts_each_trial_once(pull):
    pull.first(6)
    code, second = pull.attempt(2)
    assert (code, second["score"]) == (1, pytest.approx(50))
    for lost in (False, True):  # once lost, the first attempt's trials come from the attempt that pooled it
        if lost:
            pull.api.artifacts.pop(0)
        code, third = pull.attempt(3, leaves=False)
        assert (code, third["counts"]["trials"], third["score"]) == (1, 18, pytest.approx(100 * 12 / 18))
        runs = [(run["attempt"], run["trials"], run["passed"]) for run in third["run"]["pooled"]]
        assert runs == [(1, 6, False), (2, 6, False)]


def test_later_artifact_of_attempt_neither_replaces_it_nor_passes_if_unreadable(pull):
    first = pull.first(6)
    for test in first["suites"][0]["tests"]:
        test["trials"] = []
    pull.keep(pull.run, 1, first)
    code, second = pull.attempt(2, leaves=False)
    assert (code, second["score"], second["counts"]["trials"]) == (1, pytest.approx(50), 12)
    pull.api.artifacts.clear()
    first = pull.first()
    pull.keep(pull.run, 1, b"nothing")
    code, second = pull.attempt(2)
    assert (code, [run["run"] for run in second["run"]["pooled"]]) == (3, [first["run"]["id"]])


def test_jobs_with_different_keys_are_pooled_separately(pull):
    pull.attempt(1, "--comment-key=green", key="green")
    pull.first(6)
    pull.attempt(2, failures=6)
    code, green = pull.attempt(3, "--comment-key=green", leaves=False)
    assert (code, green["counts"]["trials"], len(green["run"]["pooled"])) == (0, 12, 1)
    assert not_pooled(green) == ["it left no artifact 'ci-evals-attempt-green-2'"]
    code, red = pull.attempt(3, leaves=False)
    assert (code, red["counts"]["trials"], len(red["run"]["pooled"])) == (1, 18, 2)


def test_trials_of_cancelled_attempt_are_pooled(pull):
    first = pull.first(3, leaves=False)
    first["run"] |= {"status": "interrupted", "stoppedBecause": "interrupted"}
    two = first["suites"][0]["tests"][1]
    two["trials"], two["notRun"] = two["trials"][:1], 2
    first["gate"] |= {"passed": False, "exitCode": 130, "reasons": ["interrupted"]}
    pull.keep(pull.run, 1, first)
    _, second = pull.attempt(2)
    assert (second["run"]["pooled"][0]["passed"], second["counts"]["trials"]) == (None, 10)
    assert failures(second) == failures(first) > 0


def test_missing_unfinished_or_foreign_artifact_is_not_pooled(pull):
    for changes, why in (
        (None, "it left no artifact 'ci-evals-attempt-default-1'"),
        ({"status": "unfinished"}, "it played nothing to its end"),
        ({"git": {"commit": "a" * 40}}, "it tested commit aaaaaaa, which is not the one of this run"),
        ({"git": {"pullRequest": 8}}, "its results are of another repository or pull request"),
    ):
        if changes:
            first = pull.first(leaves=False)
            changes |= {"git": first["run"]["git"] | changes.get("git", {})}
            pull.keep(pull.run, 1, first | {"run": first["run"] | changes})
        code, second = pull.attempt(2, leaves=False)
        assert (code, second["run"]["pooled"], second["counts"]["trials"]) == (0, [], 6), why
        assert not_pooled(second) == [why]
        pull.api.artifacts.clear()


def test_critical_test_that_failed_or_crashed_once_fails_after_rerun(pull):
    write_suite(pull.folder, GREETS | {"critical": True}, **PYTHON_AGENT)
    assert pull.attempt(1, "--min-score=0", failures=1)[0] == 1
    code, second = pull.attempt(2, "--min-score=0")
    (check,) = [check for check in second["gate"]["checks"] if check["kind"] == "critical"]
    assert (code, check["note"]) == (1, "5 of 6 passed")
    pull.api.artifacts.clear()
    (pull.folder / "agent.py").write_text(CRASHING)
    write_suite(pull.folder, TWO_LINES | {"critical": True}, **PYTHON_AGENT)
    code, first = pull.attempt(1, "--min-score=0", "--retries=0", failures=1)
    assert (code, first["counts"]["failed"]) == (1, 1), first["gate"]
    assert trials(first)[0]["status"] == "agent_error"
    code, second = pull.attempt(2, "--min-score=0", "--retries=0")
    assert (second["run"]["pooled"][0]["trials"], second["counts"]["failed"]) == (3, 1)
    assert (code, second["counts"]["errors"]) == (1, 0), second["gate"]


def test_pooled_trial_with_failed_and_missing_verdict_counts_as_failed(pull):
    first = pull.first(1, leaves=False)
    (failed,) = [trial for trial in trials(first) if trial["findings"][0]["outcome"] == "failed"]
    failed["findings"].append(failed["findings"][0] | {"outcome": "undecided", "cause": "judge_error"})
    pull.keep(pull.run, 1, first)
    code, second = pull.attempt(2)
    assert (second["run"]["pooled"][0]["trials"], second["score"]) == (6, pytest.approx(100 * 11 / 12))
    assert (code, second["counts"]["errors"]) == (0, 0)  # at most 0 errors of this run


def test_only_runs_of_same_commit_event_workflow_and_branch_are_pooled(pull):
    pull.first(2)
    rerun = pull.started()
    assert pull.attempt(1, run=rerun, leaves=False)[1]["counts"]["trials"] == 12
    before = dict(pull.run)
    for other in (
        {"head_sha": "e" * 40},
        {"event": "push"},
        {"path": ".github/workflows/other.yml"},
        {"head_branch": "other"},
        {"head_repository": {"id": FORK_ID}},
    ):
        pull.run.clear()
        pull.run.update(before | other)
        code, results = pull.attempt(1, run=rerun, leaves=False)
        assert (code, results["counts"]["trials"], not_pooled(results)) == (0, 6, []), other


def test_rerun_of_older_run_pools_newer_run_of_same_commit(pull):
    pull.first()
    newer = pull.started(created_at="2026-11-20T10:00:00Z")
    pull.attempt(1, run=newer, failures=6)
    code, third = pull.attempt(2)
    assert (code, third["counts"]["trials"], third["score"]) == (1, 18, pytest.approx(100 * 12 / 18))


def test_other_workflow_dispatch_of_same_commit_is_not_pooled(pull):
    pull.run["event"] = "workflow_dispatch"
    pull.first(2)
    other = pull.started(event="workflow_dispatch")
    _, alone = pull.attempt(1, run=other, leaves=False)
    assert (alone["counts"]["trials"], not_pooled(alone)) == (6, [])
    assert pull.attempt(2, leaves=False)[1]["counts"]["trials"] == 12


def test_earlier_attempt_is_found_among_many_runs_up_to_limit(pull):
    """The oldest of too many runs to read may have failed."""
    pull.first(6)
    for _ in range(120):
        pull.started(workflow_id=78, path=".github/workflows/other.yml")
    rerun = pull.started()
    assert pull.attempt(1, run=rerun, leaves=False)[1]["counts"]["trials"] == 12
    for _ in range(20):
        last = pull.started(created_at="2026-11-20T10:00:00Z")
    code, results = pull.attempt(1, run=last, leaves=False)
    assert (code, "too many earlier attempts" in results["gate"]["reasons"][0]) == (3, True), pull.log


def test_attempt_with_different_suite_is_not_pooled_and_reason_is_reported(pull):
    pull.first(6)
    write_suite(pull.folder, GREETS | {"name": "One", "turns": [{"user": "Hi"}]}, **PYTHON_AGENT)
    code, second = pull.attempt(2)
    assert (code, second["run"]["pooled"]) == (0, [])
    why = f"Attempt 1 of run {pull.run['id']} is not pooled: its suites or tests differ."
    (comment,) = pull.api.comments[7]
    assert (why in pull.log, why in comment["body"]) == (True, True)


def test_run_does_not_pass_if_results_of_earlier_attempt_are_unreadable(pull):
    empty, no_json = (github_api.zip_of({"_results.json": text}) for text in ("{}", "{"))
    for data in (b"no zip", empty, no_json):
        pull.keep(pull.run, 1, data)
        code, second = pull.attempt(2, leaves=False)
        (reason,) = second["gate"]["reasons"]
        assert reason.startswith(f"attempt 1 of run {pull.run['id']} of this commit cannot be read")
        assert (code, pull.attempt(2, failures=6, leaves=False)[0]) == (3, 1)
        pull.api.artifacts.clear()


def test_expired_attempt_is_pooled_from_later_attempt_or_prevents_pass(pull):
    first = pull.first(2)
    whole = pull.api.artifacts[0]
    pull.attempt(2)
    whole["expired"] = True
    code, third = pull.attempt(3, leaves=False)
    assert (code, third["score"]) == (0, pytest.approx(100 * 16 / 18)), pull.log
    assert (not_pooled(third), third["counts"]["trials"]) == ([], 18)
    known = [(run["run"], run["ciRun"], run["attempt"]) for run in third["run"]["pooled"]]
    assert known[0] == (first["run"]["id"], str(pull.run["id"]), 1)
    del pull.api.artifacts[1:]
    assert_expired(pull, 2)


def test_expired_attempt_that_no_later_attempt_pooled_prevents_pass(pull):
    pull.attempt(1, run=pull.started())
    pull.first(6)
    pull.api.artifacts[1]["expired"] = True
    for number in (2, 3):
        code, later = pull.attempt(number)
        assert [run["attempt"] for run in later["run"]["pooled"]] == [1, *range(2, number)]
        assert (code, "has expired" in later["gate"]["reasons"][0]) == (3, True), pull.log


def test_expired_artifact_beside_pooled_one_of_same_attempt_prevents_pass(pull):
    pull.first(6)
    red = pull.api.artifacts.pop()
    first = pull.first()
    pull.attempt(2)
    pull.api.artifacts[0]["expired"] = True
    assert pull.attempt(3, leaves=False)[0] == 0
    pull.api.artifacts.append({**red, "expired": True})
    assert_expired(pull, 3)
    pull.api.artifacts.pop()
    pull.api.artifacts[0]["expired"] = False
    first["run"]["reruns"]["setup"] = "0" * 64
    pull.api.blobs[pull.api.artifacts[0]["id"]] = github_api.zip_of({"_results.json": json.dumps(first)})
    assert pull.attempt(3, leaves=False)[0] == 0
    pull.keep(pull.run, 1, b"nothing")["expired"] = True
    assert_expired(pull, 3)


def test_rerun_does_not_pass_if_github_does_not_list_attempts(pull):
    for number, expected in ((1, 0), (2, 3)):
        pull.api.fail("GET .*/actions/runs/", Answer(422, {"message": "No"}))
        code, results = pull.attempt(number, leaves=False)
        assert code == expected
        assert number == 2 or "earlier attempts at this commit are not known" in pull.log
    assert UNREADABLE in results["gate"]["reasons"][0]


RUN = "GET .*/actions/runs/[0-9]+"
NO_PERMISSION = Answer(403, {"message": "Resource not accessible by integration"})
FAULTS = {
    "not found": (f"{RUN}$", Answer(404, {"message": "Not Found"})),
    "403 without reason": (f"{RUN}$", Answer(403, raw=b"<html>Forbidden</html>")),
    "403 for other reason": (f"{RUN}$", Answer(403, {"message": "must have SSO"})),
    "403 of later request": (f"{RUN}/artifacts", NO_PERMISSION),
}


def test_api_fault_is_not_mistaken_for_missing_permission(pull):
    pull.first(6)
    for name, (request, fault) in FAULTS.items():
        pull.api.fail(request, fault)
        code, second = pull.attempt(2, "--baseline=none", leaves=False)
        assert (code, UNREADABLE in second["gate"]["reasons"][0]) == (3, True), (name, pull.log)


def test_replaced_rerun_is_not_pooled_and_pooling_needs_permission_to_read_actions(pull):
    pull.first(6)
    code, replaced = pull.attempt(2, "--reruns=replace", "--baseline=none", leaves=False)
    assert (code, replaced["run"]["reruns"], replaced["counts"]["trials"]) == (0, None, 6)
    pull.api.permissions.remove("actions: read")
    code, second = pull.attempt(2, "--baseline=none")
    assert (code, second["run"]["reruns"], "reruns are not pooled" in pull.log) == (0, None, True)
    code, _ = pull.attempt(2, "--baseline=none", "--reruns=pool")
    assert (code, "--reruns=pool" in pull.log) == (2, True)


@pytest.mark.parametrize(("options", "expected"), [((), 3), (("--reruns=replace",), 0)])
def test_rerun_has_no_verdict_if_earlier_attempt_could_not_be_pooled(pull, options, expected):
    pull.api.permissions.remove("actions: read")
    pull.attempt(1, "--baseline=none", *options, failures=6)
    pull.api.permissions.add("actions: read")
    code, second = pull.attempt(2, "--baseline=none", leaves=False)
    assert (code, second["run"]["pooled"]) == (expected, []), pull.log


def test_pooling_is_rejected_for_partial_runs_or_outside_github_and_skips_forks(folder, api):
    pull = PullRequest(folder, api, repository=FORK)
    pull.run["head_repository"] = {"id": FORK_ID}
    pull.attempt(1, "--reruns=pool", failures=6)
    _, second = pull.attempt(2, "--reruns=pool")
    assert (second["run"]["reruns"], "artifacts of forks are not trusted" in pull.log) == (None, True)
    pull = PullRequest(folder, api)
    for option in ("--shard=1/2", "--only-failed=results", "--changed-since=main"):
        code, _ = pull.attempt(1, "--reruns=pool", option)
        assert (code, f"it does not work with {option.partition('=')[0]}" in pull.log) == (2, True)
    done = ci_evals("run", "suite.json", "--provider=offline", "--reruns=pool", cwd=pull.folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--reruns=pool: earlier attempts are known only in jobs on GitHub" in done.stderr


COMPARED = ("--baseline=base", "--regression=significant", "--min-score=0")


def run_baseline(pull):
    (pull.folder / "failures").write_text("0")
    options = ("run", "suite.json", "--provider=offline", "--loops=3", "--output-dir=base")
    assert ci_evals(*options, cwd=pull.folder).returncode == 0


def regression_of(results) -> dict:
    (check,) = [check for check in results["gate"]["checks"] if check["kind"] == "regression"]
    return check


def test_significance_level_is_lowered_only_after_attempt_without_drop(pull):
    run_baseline(pull)
    code, first = pull.attempt(1, *COMPARED)
    assert (code, regression_of(first)["required"]) == (0, 0.045)
    code, second = pull.attempt(2, *COMPARED, failures=6, leaves=False)
    assert regression_of(second)["required"] == pytest.approx(0.005 * 6 / 3.14159265**2)
    assert (code, second["run"]["pooled"][0]["drop"]) == (0, False)
    assert second["comparison"]["level"] == regression_of(second)["required"]
    pull.api.artifacts.clear()
    assert pull.attempt(1, *COMPARED, failures=6)[0] == 1
    code, second = pull.attempt(2, *COMPARED, failures=6)
    assert (code, regression_of(second)["required"], second["run"]["pooled"][0]["drop"]) == (1, 0.045, True)
    assert regression_of(second)["seen"] < regression_of(pull.attempt(3, *COMPARED)[1])["seen"]


def test_errored_trials_are_replaced_by_rerun(pull):
    broken = "    if fails():\n        raise LookupError('no order')\n    return 'Hello!'\n"
    (pull.folder / "agent.py").write_text(f"{COUNTS}def reply(message):\n{broken}")
    code, first = pull.attempt(1, "--retries=0", failures=2)
    assert (code, first["counts"]["errors"]) == (3, 2)
    code, second = pull.attempt(2, "--retries=0")
    assert (code, second["counts"]["trials"], second["counts"]["errors"]) == (0, 10, 0)
    assert (second["run"]["pooled"][0]["trials"], second["run"]["pooled"][0]["passed"]) == (4, None)


def test_trials_of_rounds_and_base_agent_are_pooled_if_agent_options_agree(pull):
    (pull.folder / "base.py").write_text('def reply(message):\n    return "Hello!"\n')
    sides = ("--against=adapter=python:base:reply", "--both-sides=always")
    sides += ("--regression=significant", "--min-score=0", "--baseline=none")
    pull.attempt(1, *sides, repeat="--rounds=3")
    code, second = pull.attempt(2, *sides, repeat="--rounds=3")
    assert code == 0, pull.log
    counts = {arm["name"]: arm["counts"]["trials"] for arm in second["arms"]}
    assert counts == {"head": 12, "base": 12}
    assert second["run"]["pooled"][0]["trials"] == 6  # those of the agent that is decided on
    sides = (*sides[1:], "--against=adapter=python:base:reply\nagent-id=other")
    code, other = pull.attempt(3, *sides, repeat="--rounds=3")
    assert (code, other["run"]["pooled"]) == (0, [])
    assert {*not_pooled(other)} == {"the options of its agents differ"}


def test_attempt_that_is_the_baseline_is_not_pooled(pull):
    (pull.folder / "first.json").write_text(json.dumps(pull.first(6)))
    code, second = pull.attempt(2, "--baseline=first.json")
    assert (code, second["run"]["pooled"], second["counts"]["trials"]) == (3, [], 6)
    assert not_pooled(second) == ["this run is compared with it"]


def test_run_resumed_from_journal_without_pooled_trials_does_not_pass(pull):
    pull.attempt(1)
    journal = pull.folder / "results/journal.jsonl"
    whole = journal.read_text()
    code, second = pull.attempt(2, "--resume=results", leaves=False)
    assert (code, not_pooled(second)) == (0, [])
    journal.write_text("".join(whole.splitlines(keepends=True)[:3]))
    code, second = pull.attempt(2, "--resume=results", leaves=False)
    why = "this run is resumed from a journal that lacks trials of it"
    assert (code, not_pooled(second)) == (3, [why])


def test_run_that_left_two_artifacts_is_pooled_once_with_all_trials(pull):
    part, whole = (pull.first(2, leaves=False) for _ in range(2))
    for test in part["suites"][0]["tests"]:
        del test["trials"][1:]
    pull.keep(pull.run, 1, part)
    pull.keep(pull.run, 2, whole)
    _, third = pull.attempt(3)
    assert [run["trials"] for run in third["run"]["pooled"]] == [6]
    assert third["score"] == pytest.approx(100 * 10 / 12)
