"""Commands in GitHub Actions: annotations, outputs, comments, baselines, and faults of GitHub."""

import json
import signal
import socket
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import github_api
import pytest
from commands import ci_evals, read_results, start, write_suite
from each_row import each_row
from exits import exits
from github_api import REPOSITORY, TOKEN

from ci_evals.extensions.demo.server import DemoServer

pytestmark = pytest.mark.slow
HELLO = {"evaluations": [{"criterion": "It answers", "strict": "regex", "pattern": "."}]}
IMPOSSIBLE = {"evaluations": [{"criterion": "It sings", "strict": "contains", "text": "la la la"}]}
DEMO = {"adapter": "demo", "agentId": "demo-hr", "apiKey": "none-needed"}
PUSH = {"before": "0" * 40, "repository": {"full_name": REPOSITORY}}
HEAD = "d" * 40
OF_THE_COMMIT = {
    "same repository": {"commit": "b" * 40, "repository": REPOSITORY},
    "other spelling": {"commit": "b" * 40, "repository": REPOSITORY.upper()},
    "unknown": {},
}


@pytest.fixture
def api():
    with github_api.serving() as served:
        yield served


def job(folder: Path, event: str = "push", payload=PUSH, api=None, **variables) -> dict[str, str]:
    path = folder / "event.json"
    path.write_text(json.dumps(payload))
    files = {"EVENT_PATH": str(path), "OUTPUT": f"{folder}/outputs", "STEP_SUMMARY": f"{folder}/step-summary"}
    known = {"ACTIONS": "true", "EVENT_NAME": event, "REPOSITORY": REPOSITORY, "SHA": HEAD, "RUN_ID": "99"}
    known |= files | {"TOKEN": TOKEN} | ({"API_URL": api.url} if api else {})
    return {f"GITHUB_{name}": value for name, value in known.items()} | variables


def pull_request_job(folder: Path, api=None, **variables) -> dict[str, str]:
    head = {"sha": HEAD, "ref": "topic", "repo": {"full_name": REPOSITORY}}
    base = {"sha": "b" * 40, "ref": "main", "repo": {"full_name": REPOSITORY}}
    payload = {"number": 7, "pull_request": {"number": 7, "head": head, "base": base}}
    return job(folder, "pull_request", payload, api, **variables)


@contextmanager
def hanging(api, request: str):
    """Let a kind of request hang until the block ends; gives an event that is set when it arrives."""
    arrived, over = threading.Event(), threading.Event()

    def hang():
        arrived.set()
        over.wait(300)

    api.before.append((request, hang))
    try:
        yield arrived
    finally:
        over.set()


def run(folder: Path, *options: str, env, code=None):
    """Run the suite of the folder, by default one that passes."""
    if not (folder / "suite.json").exists():
        write_suite(folder, HELLO, **DEMO)
    return exits(code, "run", "suite.json", "--provider=offline", *options, cwd=folder, env=env)


@contextmanager
def running(folder: Path, *options: str, env):
    process = start("run", "suite.json", "--provider=offline", *options, cwd=folder, env=env)
    try:
        yield process
    finally:
        process.kill()


def of_run(folder: Path, name: str):
    return read_results(folder)["run"][name]


def lines_of(name: str, text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(f"::{name}")]


def test_suite_and_option_errors_are_annotated_up_to_limit_and_logged_in_full(tmp_path):
    """The runner cuts long messages. The comment key is part of an artifact's name and a hidden marker."""
    for tag in ("none", f"{'x' * 5000}-end"):
        done = run(tmp_path, f"--thresholds=tag:{tag}=1", env=job(tmp_path))
        (error,) = lines_of("error", done.stderr)
        assert f"there is no tag '{tag[:4]}" in error
        assert done.stderr.count("there is no tag '") == (1 if tag == "none" else 2)
        assert f"{tag[-4:]}'" in done.stderr
    done = run(tmp_path, "--comment-key=a b/../-->", env={})
    assert (done.returncode, "--comment-key" in done.stderr) == (2, True)
    done = run(tmp_path, env=job(tmp_path, CI_EVALS_MAX_COST="$5"))
    (error,) = lines_of("error", done.stderr)
    assert (done.returncode, "CI_EVALS_MAX_COST" in error, "'$5'" in error) == (2, True, True)
    write_suite(tmp_path, *(HELLO | {"name": f"Test {n}", "turnz": 1} for n in range(12)), **DEMO)
    done = run(tmp_path, env=job(tmp_path))
    errors = lines_of("error", done.stderr)
    assert (done.returncode, len(errors)) == (2, 10)
    assert errors[0].startswith("::error file=suite.json,line=1,col=")
    assert "tests[0].turnz" in errors[0]
    assert "suite.json:1:" in done.stderr
    assert done.stderr.count("did you mean 'turns'?") == 12  # once each: GitHub shows the command as a line


def test_log_groups_trial_lines_and_masks_keys(tmp_path):
    with DemoServer() as server:
        options = (f"--base-url={server.base_url}", "--agent-key=a-key-of-agents")
        done = run(tmp_path, *options, env=job(tmp_path))
    masks = lines_of("add-mask", done.stdout)
    assert {"::add-mask::a-key-of-agents", f"::add-mask::{TOKEN}"} <= set(masks)
    stderr = done.stderr.splitlines()
    begin, end = stderr.index("::group::Playing 1 trial"), stderr.index("::endgroup::")
    assert any(line.startswith("[1/1]") for line in stderr[begin:end])


def test_github_gets_no_request_unless_baseline_or_comment_needs_one(tmp_path, api):
    write_suite(tmp_path, HELLO, IMPOSSIBLE | {"name": "Sings"}, **DEMO)
    env = pull_request_job(tmp_path, api, GITHUB_ACTIONS="")
    done = run(tmp_path, "--baseline=none", "--comment=never", env=env, code=1)
    assert [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("::")] == []
    assert api.requests == []
    env = pull_request_job(tmp_path, api)
    run(tmp_path, "--baseline=none", "--comment=never", env=env)
    assert (api.requests, of_run(tmp_path, "baselineNote")) == ([], None)
    api.add_pull(7, HEAD)
    run(tmp_path, env=job(tmp_path, api=api))
    assert api.requests == []
    run(tmp_path, "--comment=always", env=job(tmp_path, api=api), code=1)
    assert len(api.comments[7]) == 1


def test_failed_tests_are_annotated_up_to_limit_and_cannot_inject_commands(tmp_path):
    """GitHub keeps ten of a level."""
    write_suite(tmp_path, *(IMPOSSIBLE | {"name": f"Test {n}"} for n in range(15)), **DEMO)
    done = run(tmp_path, env=job(tmp_path))
    assert len(lines_of("error", done.stdout)) == 10
    assert "and 6 more errors" in done.stdout
    hostile = "::error::owned\n::set-output name=score::1 ##[add-mask]a"
    test = {"name": hostile, "turns": [{"user": hostile}]}
    test["evaluations"] = [{"criterion": hostile, "strict": "contains", "text": hostile}]
    write_suite(tmp_path, test, **DEMO)
    suite = json.loads((tmp_path / "suite.json").read_text())
    (tmp_path / "suite.json").write_text(json.dumps(suite | {"name": hostile}))
    done = run(tmp_path, "--verbose", env=job(tmp_path), code=1)
    own = ("::error file=suite.json", "::error title=ci-evals", "::group::", "::endgroup::", "::add-mask::")
    for line in (done.stdout + done.stderr).splitlines():
        assert "##[" not in line
        assert not line.strip().startswith("::") or line.startswith(own)


def test_baseline_auto_on_push_is_previous_commit_and_none_outside_github(results_of, tmp_path, api):
    before = "e" * 40
    api.add_commits(before, HEAD)
    api.add_run(before, results_of())
    env = job(tmp_path, payload=PUSH | {"before": before}, api=api, GITHUB_REF="refs/heads/main")
    done = run(tmp_path, "--baseline=auto", env=env, code=0)
    assert read_results(tmp_path)["comparison"]["delta"] == 0
    done = run(tmp_path, "--baseline=auto", env={})
    assert (done.returncode, read_results(tmp_path)["comparison"]) == (0, None)
    assert "no baseline: GITHUB_REPOSITORY" in done.stderr


@pytest.fixture(scope="module")
def whole_results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    run(folder, env={})
    return read_results(folder)


@pytest.fixture
def results_of(whole_results):
    """The artifact of a run that says of itself which commit it is of."""

    def artifact(**git) -> bytes:
        info = whole_results["run"]
        results = whole_results | {"run": info | {"git": info["git"] | git}}
        return github_api.zip_of({"_results.json": json.dumps(results)})

    return artifact


def run_for_pull_7(folder: Path, api, artifact: bytes, *options: str, code=None):
    api.add_commits("a" * 40, "b" * 40, HEAD)
    api.add_run("b" * 40, artifact)
    api.add_pull(7, HEAD)
    return run(folder, "--pr-number=7", *options, env=job(folder, "workflow_dispatch", {}, api), code=code)


@pytest.mark.parametrize("git", OF_THE_COMMIT.values(), ids=OF_THE_COMMIT.keys())
def test_pr_number_compares_with_base_commit_and_comments(results_of, tmp_path, api, git):
    """Results that do not name their commit are those of the artifact's commit."""
    run_for_pull_7(tmp_path, api, results_of(**git), code=0)
    assert "the base commit" in of_run(tmp_path, "baselineNote")
    assert len(api.comments[7]) == 1


def test_results_of_earlier_schema_version_are_not_used_as_baseline(tmp_path, api):
    run_for_pull_7(tmp_path, api, github_api.zip_of({"_results.json": '{"schemaVersion": 1}'}), code=0)
    note = of_run(tmp_path, "baselineNote")
    assert note.startswith("no baseline: the results of commit bbbbbbb: schemaVersion 1 cannot be read")
    assert read_results(tmp_path)["comparison"] is None


OF_ANOTHER = {
    "a commit": ({"commit": "f" * 40}, "commit fffffff"),
    "a pull request": ({"commit": "b" * 40, "pullRequest": 8}, "pull request 8"),
    "the pull request alone": ({"pullRequest": 8}, "pull request 8"),
    "a repository": ({"commit": "b" * 40, "repository": "else/where"}, "the repository else/where"),
}


@pytest.mark.parametrize(("git", "of"), OF_ANOTHER.values(), ids=OF_ANOTHER.keys())
def test_results_of_other_commit_are_skipped_for_next_valid_baseline(results_of, tmp_path, api, git, of):
    """A run by hand for a pull request leaves them under main's commit: they would hide its regression.

    They also count in no history, and take nobody's baseline away.
    """
    run_for_pull_7(tmp_path, api, results_of(**git), code=0)
    why = f"the artifact 'ci-evals-results-default' of commit bbbbbbb holds results of {of}"
    assert of_run(tmp_path, "baselineNote") == f"no baseline: {why}"
    assert read_results(tmp_path)["comparison"] is None
    env = job(tmp_path, "workflow_dispatch", {}, api)
    assert run(tmp_path, "--pr-number=7", "--baseline=required", env=env).returncode == 3
    before = "a" * 40
    api.add_run(before, results_of(commit=before))
    api.add_run(before, results_of(**git | {"commit": git.get("commit", before)}))
    run(tmp_path, "--pr-number=7", "--max-drop=5", "--history=5", env=env, code=0)
    note = of_run(tmp_path, "baselineNote")
    assert ("commit aaaaaaa" in note, of in note) == (True, False)
    assert read_results(tmp_path)["comparison"]["delta"] == 0


def test_unreachable_github_causes_warning_and_run_passes(tmp_path):
    for url in ("http://127.0.0.1:1", "http://127.0.0.1:1/\t\n/x", "nonsense", "http://[::1"):
        done = run(tmp_path, env=pull_request_job(tmp_path, GITHUB_API_URL=url), code=0)
        assert "no baseline: " in done.stderr
        assert "Traceback" not in done.stderr
        (warning,) = lines_of("warning", done.stderr)
        assert "no comment was posted" in warning


def test_unreadable_event_payload_does_not_fail_run(tmp_path):
    env = job(tmp_path)
    for payload in ("", "not JSON", "[]", '{"pull_request": 1}', "[" * 100_000):
        Path(env["GITHUB_EVENT_PATH"]).write_text(payload)
        assert run(tmp_path, env=env).returncode == 0, payload[:20]


def test_cancelled_job_does_not_wait_for_comment(tmp_path, api):
    """GitHub kills it soon; the result of the run stands."""
    write_suite(tmp_path, HELLO, **DEMO)
    env = pull_request_job(tmp_path, api)
    with hanging(api, "POST") as arrived, running(tmp_path, "--baseline=none", env=env) as process:
        assert arrived.wait(300)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=300)
    assert (process.returncode, "no comment" in err) == (0, True)
    assert (tmp_path / "results/_results.json").is_file()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_job_cancelled_during_baseline_search_writes_reports(tmp_path, api, number):
    write_suite(tmp_path, HELLO, **DEMO)
    env = pull_request_job(tmp_path, api)
    with hanging(api, "/actions/artifacts") as arrived, running(tmp_path, env=env) as process:
        assert arrived.wait(300)
        process.send_signal(number)
        process.communicate(timeout=300)
    assert (process.returncode, of_run(tmp_path, "status")) == (130, "interrupted")
    assert "result<<" in (tmp_path / "outputs").read_text()
    assert (tmp_path / "step-summary").read_text()


def test_second_signal_does_not_prevent_reports(tmp_path):
    write_suite(tmp_path, HELLO, HELLO | {"name": "Again"}, **DEMO | {"adapter": "aui"})
    with socket.create_server(("127.0.0.1", 0)) as silent:
        options = (f"--base-url=http://127.0.0.1:{silent.getsockname()[1]}", "--agent-key=a-key-of-agents")
        silent.settimeout(300)
        with running(tmp_path, *options, env=job(tmp_path)) as process, silent.accept()[0]:
            process.send_signal(signal.SIGINT)
            time.sleep(0.02)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=300)
    assert (process.returncode, of_run(tmp_path, "status")) == (130, "interrupted")
    assert "result<<" in (tmp_path / "outputs").read_text()


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("failed")
    write_suite(folder, HELLO, IMPOSSIBLE | {"name": "Sings"}, **DEMO)
    assert run(folder, env={}).returncode == 1
    return str(folder / "results")


def test_comment_dry_run_needs_no_github_but_posting_needs_repository_and_token(tmp_path, results):
    done = exits(0, "comment", results, "--dry-run", cwd=tmp_path)
    assert "Sings" in done.stdout
    for env, missing in (({}, "GITHUB_REPOSITORY"), ({"GITHUB_REPOSITORY": REPOSITORY}, "GITHUB_TOKEN")):
        done = ci_evals("comment", results, cwd=tmp_path, env=env)
        assert (done.returncode, missing in done.stderr) == (2, True)


@pytest.mark.end_to_end
def test_comment_command_posts_once_with_action_outputs_if_a_pull_request_is_open(tmp_path, results, api):
    env = {"GITHUB_REPOSITORY": REPOSITORY, "GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": api.url}
    for what in ("created", "unchanged"):
        done = exits(0, "comment", results, "--pr-number=7", cwd=tmp_path, env=env)
        assert what in done.stderr
    assert len(api.comments[7]) == 1
    done = exits(0, "comment", results, cwd=tmp_path, env=pull_request_job(tmp_path, api))
    outputs = (tmp_path / "outputs").read_text()
    assert ("failed" in outputs, "results/_results.json" in outputs) == (True, True)
    done = ci_evals("comment", results, cwd=tmp_path, env=job(tmp_path, api=api))  # it may be merged by now
    assert (done.returncode, "no open pull request" in done.stderr) == (0, True)


def test_comment_command_rejects_invalid_results_and_posts_nothing(tmp_path, api):
    """The second workflow takes what a stranger's job uploaded."""
    for text in ("", "{}", "[" * 100_000, '{"schemaVersion": 99}'):
        (tmp_path / "_results.json").write_text(text)
        done = exits(2, "comment", "_results.json", "--pr-number=7", cwd=tmp_path, env=job(tmp_path, api=api))
        assert "Traceback" not in done.stderr
        assert "result<<" in (tmp_path / "outputs").read_text()
    # It looks for an earlier comment to withdraw.
    requests = {(request.method, request.path) for request in api.requests}
    assert requests == {("GET", "/repos/octo/agent/issues/7/comments")}


@each_row(
    ("arguments", "message"),
    [
        (("run", "suite.json", "--min-score=85%"), "'--min-score': '85%'"),
        (("run", "suite.json", "--regression=some"), "'--regression': 'some' is not one of"),
        (("merge", "--shards=three", "x"), "'--shards': 'three'"),
        (("coment", "results"), "No such command 'coment'. Did you mean 'comment'"),
        (("run",), "Missing argument 'SUITE'"),
        (("run", "suite.json", "--min-scor=9"), "No such option: --min-scor"),
        ((), "no command was given"),
    ],
)
def test_invalid_arguments_are_annotated_without_naming_variables(tmp_path, arguments, message):
    done = exits(2, *arguments, cwd=tmp_path, env=job(tmp_path))
    (error,) = lines_of("error", done.stderr)
    assert message in error.replace("%25", "%")
    assert "CI_EVALS_" not in error
    assert "Usage:" not in done.stderr or not arguments


@pytest.mark.parametrize(
    "arguments", [("run", "away.json"), ("run",), ("merge", "away"), ("merge", "--shards=x", "a")]
)
def test_rejected_run_writes_step_summary(tmp_path, arguments):
    """It is what the page of the workflow shows; an empty one looks like success."""
    assert ci_evals(*arguments, cwd=tmp_path, env=job(tmp_path)).returncode == 2
    summary = (tmp_path / "step-summary").read_text()
    assert summary.startswith("## ⚠️ Evals did not run\n\n```\n")
    assert summary.endswith("\n```\n")
    assert (tmp_path / "outputs").read_text().count("invalid") == 1


def test_step_summary_has_no_rejection_of_validate_or_of_run_without_verdict(tmp_path):
    """A step has one summary, and several commands may write to it."""
    env = job(tmp_path)
    assert ci_evals("validate", "away.json", cwd=tmp_path, env=env).returncode == 2
    assert not Path(env["GITHUB_STEP_SUMMARY"]).exists()
    write_suite(tmp_path, IMPOSSIBLE | {"name": "Sings"}, **DEMO)
    assert run(tmp_path, env=env).returncode == 1
    assert run(tmp_path, "--base-url=http://127.0.0.1:9", "--retries=0", env=env).returncode == 3
    assert "did not run" not in Path(env["GITHUB_STEP_SUMMARY"]).read_text()


def test_step_summary_of_rejected_run_is_truncated_and_sanitized(tmp_path):
    hostile = "```\n## owned @someone <img src=x> key-of-llm-1\x1b[31m"
    tests = [HELLO | {"name": f"Test {n}", f"{hostile}{n}": 1} for n in range(900)]
    write_suite(tmp_path, *tests, **DEMO)
    env = job(tmp_path, LLM_API_KEY="key-of-llm-1")
    assert run(tmp_path, env=env).returncode == 2
    summary = Path(env["GITHUB_STEP_SUMMARY"]).read_text()
    assert 15_000 < len(summary.encode()) < 20_500
    assert "the log has it whole" in summary
    assert "key-of-llm-1" not in summary
    assert "\x1b" not in summary
    fence = summary.splitlines()[2]
    assert len(fence) > 3
    assert summary.rstrip().splitlines()[-1] == fence
