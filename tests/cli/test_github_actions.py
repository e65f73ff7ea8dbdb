"""What the commands say to GitHub Actions, and what GitHub cannot make them do."""

import json
import signal
import socket
import threading
import time
from pathlib import Path

import github_api
import pytest
from commands import ci_evals, read_results, start, write_suite
from github_api import REPOSITORY, TOKEN

from ci_evals.extensions.demo.server import DemoServer

pytestmark = pytest.mark.slow

HELLO = {"evaluations": [{"criterion": "It answers", "strict": "regex", "pattern": "."}]}
IMPOSSIBLE = {"evaluations": [{"criterion": "It sings", "strict": "contains", "text": "la la la"}]}
DEMO = {"adapter": "demo", "agentId": "demo-hr", "apiKey": "none-needed"}
PUSH = {"before": "0" * 40, "repository": {"full_name": REPOSITORY}}
HEAD = "d" * 40


@pytest.fixture
def api():
    with github_api.serving() as served:
        yield served


def job(folder: Path, event: str = "push", payload=PUSH, api=None, **variables) -> dict[str, str]:
    """The environment of a job."""
    place = folder / "event.json"
    place.write_text(json.dumps(payload))
    known = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": event,
        "GITHUB_EVENT_PATH": str(place),
        "GITHUB_OUTPUT": str(folder / "outputs"),
        "GITHUB_STEP_SUMMARY": str(folder / "step-summary"),
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_SHA": HEAD,
        "GITHUB_RUN_ID": "99",
        "GITHUB_TOKEN": TOKEN,
    }
    return known | ({"GITHUB_API_URL": api.url} if api else {}) | variables


def on_pull_request(number: int = 7) -> dict:
    head = {"sha": HEAD, "ref": "topic", "repo": {"full_name": REPOSITORY}}
    base = {"sha": "b" * 40, "ref": "main", "repo": {"full_name": REPOSITORY}}
    return {"number": number, "pull_request": {"number": number, "head": head, "base": base}}


def run(folder: Path, *options: str, env):
    return ci_evals("run", "suite.json", "--provider=offline", *options, cwd=folder, env=env)


def lines_of(name: str, text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(f"::{name}")]


def test_every_problem_of_a_suite_stands_at_its_line(tmp_path):
    """Where the reviewer reads the suite; no more than GitHub shows, and all of them in the log."""
    tests = [HELLO | {"name": f"Test {n}", "turnz": 1} for n in range(12)]
    write_suite(tmp_path, *tests, **DEMO)
    done = run(tmp_path, env=job(tmp_path))
    assert done.returncode == 2
    errors = lines_of("error", done.stderr)
    assert len(errors) == 10
    assert errors[0].startswith("::error file=suite.json,line=1,col=")
    assert "tests[0].turnz" in errors[0]
    assert done.stderr.count("did you mean 'turns'?") == 12


def test_a_wrong_option_is_an_annotation_too(tmp_path):
    """It is what one sees on the page of the run."""
    write_suite(tmp_path, HELLO, **DEMO)
    done = run(tmp_path, "--thresholds=tag:none=1", env=job(tmp_path))
    (error,) = lines_of("error", done.stderr)
    assert "there is no tag 'none'" in error


def test_the_conversations_are_folded_in_the_log(tmp_path):
    """A group around one line for each trial; the results stand outside of it."""
    write_suite(tmp_path, HELLO, **DEMO)
    done = run(tmp_path, env=job(tmp_path))
    stderr = done.stderr.splitlines()
    begin, end = stderr.index("::group::Playing 1 trial"), stderr.index("::endgroup::")
    assert any(line.startswith("[1/1]") for line in stderr[begin:end])


def test_elsewhere_nothing_is_said_to_github(tmp_path, api):
    """No command on any stream, and no request, although the variables of a job are about."""
    write_suite(tmp_path, HELLO, IMPOSSIBLE | {"name": "Sings"}, **DEMO)
    env = job(tmp_path, "pull_request", on_pull_request(), api) | {"GITHUB_ACTIONS": ""}
    done = run(tmp_path, "--baseline=none", "--comment=never", env=env)
    assert done.returncode == 1
    assert [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("::")] == []
    assert api.requests == []


def test_ten_annotations_and_how_many_more(tmp_path):
    """GitHub keeps ten of a level, so the rest is only counted."""
    tests = [IMPOSSIBLE | {"name": f"Test {n}"} for n in range(15)]
    write_suite(tmp_path, *tests, **DEMO)
    done = run(tmp_path, env=job(tmp_path))
    assert len(lines_of("error", done.stdout)) == 10
    assert "and 6 more errors" in done.stdout


def test_what_the_agent_says_gives_no_command(tmp_path):
    """Commands of either syntax, in names and texts."""
    hostile = "::error::owned\n::set-output name=score::1 ##[add-mask]a"
    test = IMPOSSIBLE | {"name": hostile, "turns": [{"user": hostile}]}
    test["evaluations"] = [{"criterion": hostile, "strict": "contains", "text": hostile}]
    write_suite(tmp_path, test, **DEMO)
    suite = json.loads((tmp_path / "suite.json").read_text())
    (tmp_path / "suite.json").write_text(json.dumps(suite | {"name": hostile}))
    done = run(tmp_path, "--verbose", env=job(tmp_path))
    assert done.returncode == 1
    for line in (done.stdout + done.stderr).splitlines():
        assert "##[" not in line
        assert not line.strip().startswith("::") or line.startswith(
            ("::error file=suite.json", "::error title=ci-evals", "::group::", "::endgroup::", "::add-mask::")
        )


def test_a_key_must_be_fit_for_a_name(tmp_path):
    """It becomes part of an artifact's name and of a hidden marker."""
    write_suite(tmp_path, HELLO, **DEMO)
    done = run(tmp_path, "--comment-key=a b/../-->", env={})
    assert done.returncode == 2
    assert "--comment-key" in done.stderr


def test_a_pushed_commit_gets_its_comment_only_where_asked(tmp_path, api):
    """`auto` comments in events of a pull request alone, `always` looks for those of the commit."""
    write_suite(tmp_path, HELLO, **DEMO)
    api.add_pull(7, HEAD)
    run(tmp_path, env=job(tmp_path, api=api))
    assert api.requests == []
    done = run(tmp_path, "--comment=always", env=job(tmp_path, api=api))
    assert done.returncode == 0, done.stderr
    assert len(api.comments[7]) == 1


def test_a_baseline_may_be_asked_for_anywhere(tmp_path, api):
    """On a push it is the commit before; outside of GitHub there is none, and that is said."""
    write_suite(tmp_path, HELLO, **DEMO)
    run(tmp_path, env={})
    data = (tmp_path / "results/_results.json").read_text()
    before = "e" * 40
    api.add_commits(before, HEAD)
    api.add_run(before, github_api.zip_of({"_results.json": data}))
    done = run(
        tmp_path,
        "--baseline=auto",
        env=job(tmp_path, payload=PUSH | {"before": before}, api=api) | {"GITHUB_REF": "refs/heads/main"},
    )
    assert done.returncode == 0, done.stderr
    assert read_results(tmp_path)["comparison"]["delta"] == 0
    done = run(tmp_path, "--baseline=auto", env={})
    assert done.returncode == 0
    assert "no baseline: GITHUB_REPOSITORY" in done.stderr
    assert read_results(tmp_path)["comparison"] is None


def test_a_run_by_hand_for_a_pull_request(tmp_path, api):
    """`pr-number` says which: it is compared with that one's base, and commented on."""
    write_suite(tmp_path, HELLO, **DEMO)
    run(tmp_path, env={})
    data = (tmp_path / "results/_results.json").read_text()
    api.add_commits("b" * 40, HEAD)
    api.add_run("b" * 40, github_api.zip_of({"_results.json": data}))
    api.add_pull(7, HEAD)
    env = job(tmp_path, "workflow_dispatch", {}, api)
    done = run(tmp_path, "--pr-number=7", env=env)
    assert done.returncode == 0, done.stderr
    assert "the base commit" in read_results(tmp_path)["run"]["baselineNote"]
    assert len(api.comments[7]) == 1


def test_results_of_an_earlier_version_are_no_baseline(tmp_path, api):
    """They are compared with nothing, and the run says why."""
    write_suite(tmp_path, HELLO, **DEMO)
    api.add_commits("b" * 40, HEAD)
    api.add_run("b" * 40, github_api.zip_of({"_results.json": '{"schemaVersion": 1}'}))
    api.add_pull(7, HEAD)
    done = run(tmp_path, "--pr-number=7", env=job(tmp_path, "workflow_dispatch", {}, api))
    assert done.returncode == 0, done.stderr
    note = read_results(tmp_path)["run"]["baselineNote"]
    assert note.startswith("no baseline: the results of commit bbbbbbb: schemaVersion 1 cannot be read")
    assert read_results(tmp_path)["comparison"] is None


OF_ANOTHER = {
    "a commit": ({"commit": "f" * 40}, "commit fffffff"),
    "a pull request": ({"commit": "b" * 40, "pullRequest": 8}, "pull request 8"),
    "the pull request alone": ({"pullRequest": 8}, "pull request 8"),
    "a repository": ({"commit": "b" * 40, "repository": "else/where"}, "the repository else/where"),
}
OF_THE_COMMIT = {
    "itself": {"commit": "b" * 40, "repository": REPOSITORY},
    "spelled otherwise": {"commit": "b" * 40, "repository": REPOSITORY.upper()},
    "unknown": {},
}


def with_git(folder: Path, git: dict) -> bytes:
    """The artifact of a run that says of itself which commit it is of."""
    results = read_results(folder)
    results["run"]["git"] |= git
    return github_api.zip_of({"_results.json": json.dumps(results)})


@pytest.mark.parametrize(("git", "of"), OF_ANOTHER.values(), ids=OF_ANOTHER.keys())
def test_results_of_another_commit_than_their_artifact_are_no_baseline(tmp_path, api, git, of):
    """A run by hand for a pull request leaves them under main's commit: they would hide its regression."""
    write_suite(tmp_path, HELLO, **DEMO)
    run(tmp_path, env={})
    api.add_commits("b" * 40, HEAD)
    api.add_run("b" * 40, with_git(tmp_path, git))
    api.add_pull(7, HEAD)
    done = run(tmp_path, "--pr-number=7", env=job(tmp_path, "workflow_dispatch", {}, api))
    assert done.returncode == 0, done.stderr
    why = f"the artifact 'ci-evals-results-default' of commit bbbbbbb holds results of {of}"
    assert read_results(tmp_path)["run"]["baselineNote"] == f"no baseline: {why}"
    assert read_results(tmp_path)["comparison"] is None
    required = run(
        tmp_path,
        "--pr-number=7",
        "--baseline=required",
        env=job(tmp_path, "workflow_dispatch", {}, api),
    )
    assert required.returncode == 3


@pytest.mark.parametrize("git", OF_THE_COMMIT.values(), ids=OF_THE_COMMIT.keys())
def test_results_of_their_artifact_are_a_baseline(tmp_path, api, git):
    """What results do not say contradicts nothing."""
    write_suite(tmp_path, HELLO, **DEMO)
    run(tmp_path, env={})
    api.add_commits("b" * 40, HEAD)
    api.add_run("b" * 40, with_git(tmp_path, git))
    api.add_pull(7, HEAD)
    run(tmp_path, "--pr-number=7", env=job(tmp_path, "workflow_dispatch", {}, api))
    assert "the base commit" in read_results(tmp_path)["run"]["baselineNote"]


@pytest.mark.parametrize(("git", "of"), OF_ANOTHER.values(), ids=OF_ANOTHER.keys())
def test_the_next_results_serve_instead(tmp_path, api, git, of):
    """As a baseline and in the history: one run by hand takes nobody's baseline away."""
    write_suite(tmp_path, HELLO, **DEMO)
    run(tmp_path, env={})
    before = "a" * 40
    api.add_commits(before, "b" * 40, HEAD)
    api.add_run(before, with_git(tmp_path, {"commit": before}))
    api.add_run(before, with_git(tmp_path, git | {"commit": git.get("commit", before)}))
    api.add_run("b" * 40, with_git(tmp_path, git))
    api.add_pull(7, HEAD)
    options = ("--pr-number=7", "--max-drop=5", "--history=5")
    done = run(tmp_path, *options, env=job(tmp_path, "workflow_dispatch", {}, api))
    assert done.returncode == 0, done.stderr
    assert "commit aaaaaaa" in read_results(tmp_path)["run"]["baselineNote"]
    assert read_results(tmp_path)["comparison"]["delta"] == 0
    assert of not in read_results(tmp_path)["run"]["baselineNote"]


def test_none_is_no_baseline(tmp_path, api):
    """Also in a pull request."""
    write_suite(tmp_path, HELLO, **DEMO)
    env = job(tmp_path, "pull_request", on_pull_request(), api)
    run(tmp_path, "--baseline=none", "--comment=never", env=env)
    assert api.requests == []
    assert read_results(tmp_path)["run"]["baselineNote"] is None


def test_github_that_is_not_there_is_a_warning(tmp_path):
    """The run stands."""
    write_suite(tmp_path, HELLO, **DEMO)
    env = job(tmp_path, "pull_request", on_pull_request(), GITHUB_API_URL="http://127.0.0.1:1")
    done = run(tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert "no baseline: " in done.stderr
    (warning,) = lines_of("warning", done.stderr)
    assert "no comment was posted" in warning


@pytest.mark.parametrize("payload", ["", "not JSON", "[]", '{"pull_request": 1}', "[" * 100_000])
def test_an_unreadable_event_is_no_reason_to_fail(tmp_path, payload):
    """What it would tell is not known, and the run goes on."""
    write_suite(tmp_path, HELLO, **DEMO)
    env = job(tmp_path, "push")
    Path(env["GITHUB_EVENT_PATH"]).write_text(payload)
    assert run(tmp_path, env=env).returncode == 0


def test_a_cancelled_job_does_not_wait_for_the_comment(tmp_path, api):
    """GitHub kills it soon; the run's outcome stands."""
    write_suite(tmp_path, HELLO, **DEMO)
    asked, over = threading.Event(), threading.Event()

    def hang():
        asked.set()
        over.wait(300)

    api.before.append(("POST", hang))
    env = job(tmp_path, "pull_request", on_pull_request(), api)
    process = start("run", "suite.json", "--provider=offline", "--baseline=none", cwd=tmp_path, env=env)
    try:
        assert asked.wait(120)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0
        assert "no comment" in err
    finally:
        over.set()
        process.kill()
    assert (tmp_path / "results/_results.json").is_file()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_that_is_cancelled_while_it_looks_for_a_baseline_writes_its_reports(tmp_path, api, number):
    """The search is cut off, nothing is played, and everything says so."""
    write_suite(tmp_path, HELLO, **DEMO)
    asked, over = threading.Event(), threading.Event()

    def hang():
        asked.set()
        over.wait(300)

    api.before.append(("/actions/artifacts", hang))
    env = job(tmp_path, "pull_request", on_pull_request(), api)
    process = start("run", "suite.json", "--provider=offline", cwd=tmp_path, env=env)
    try:
        assert asked.wait(120)
        process.send_signal(number)
        process.communicate(timeout=120)
        assert process.returncode == 130
    finally:
        over.set()
        process.kill()
    assert read_results(tmp_path)["run"]["status"] == "interrupted"
    assert "result<<" in (tmp_path / "outputs").read_text()
    assert (tmp_path / "step-summary").read_text()


def test_a_second_signal_right_after_the_first_loses_nothing(tmp_path):
    """As where a job is cancelled twice: the reports of what had finished are being written."""
    write_suite(tmp_path, HELLO, HELLO | {"name": "Again"}, **DEMO | {"adapter": "aui"})
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        env = job(tmp_path)
        options = ["--provider=offline", f"--base-url={address}", "--agent-key=a-key-of-agents"]
        process = start("run", "suite.json", *options, cwd=tmp_path, env=env)
        try:
            silent.settimeout(20)
            connection, _ = silent.accept()
            with connection:
                process.send_signal(signal.SIGINT)
                time.sleep(0.02)
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=120)
            assert process.returncode == 130
        finally:
            process.kill()
    assert read_results(tmp_path)["run"]["status"] == "interrupted"
    assert "result<<" in (tmp_path / "outputs").read_text()


def test_an_address_of_github_that_is_none_is_one_line(tmp_path):
    """The run goes on."""
    write_suite(tmp_path, HELLO, **DEMO)
    for wrong in ("http://127.0.0.1:1/\t\n/x", "nonsense", "http://[::1"):
        env = job(tmp_path, "pull_request", on_pull_request(), GITHUB_API_URL=wrong)
        done = run(tmp_path, env=env)
        assert done.returncode == 0, done.stderr
        assert "no baseline: " in done.stderr
        assert "Traceback" not in done.stderr


@pytest.fixture
def results(tmp_path):
    write_suite(tmp_path, HELLO, IMPOSSIBLE | {"name": "Sings"}, **DEMO)
    ci_evals("run", "suite.json", "--provider=offline", cwd=tmp_path)
    return "results"


def test_a_comment_can_be_looked_at_first(tmp_path, results):
    """Without a token, and outside of GitHub."""
    done = ci_evals("comment", results, "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Sings" in done.stdout


@pytest.mark.end_to_end
def test_a_comment_goes_to_the_number_that_is_given(tmp_path, results, api):
    """From any machine with a token."""
    env = {"GITHUB_REPOSITORY": REPOSITORY, "GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": api.url}
    for what in ("created", "unchanged"):
        done = ci_evals("comment", results, "--pr-number=7", cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stderr
        assert what in done.stderr
    assert len(api.comments[7]) == 1


def test_a_comment_writes_the_outputs_too(tmp_path, results, api):
    """Those of the run that it tells of."""
    env = job(tmp_path, "pull_request", on_pull_request(), api)
    done = ci_evals("comment", results, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    outputs = (tmp_path / "outputs").read_text()
    assert "failed" in outputs
    assert "results/_results.json" in outputs


def test_a_comment_needs_a_place(tmp_path, results):
    """Wrong usage, said in full."""
    done = ci_evals("comment", results, cwd=tmp_path)
    assert done.returncode == 2
    assert "GITHUB_REPOSITORY" in done.stderr
    done = ci_evals("comment", results, cwd=tmp_path, env={"GITHUB_REPOSITORY": REPOSITORY})
    assert done.returncode == 2
    assert "GITHUB_TOKEN" in done.stderr


def test_a_comment_without_a_pull_request_is_no_error(tmp_path, results, api):
    """It may have been merged meanwhile."""
    done = ci_evals("comment", results, cwd=tmp_path, env=job(tmp_path, api=api))
    assert done.returncode == 0
    assert "no open pull request" in done.stderr


def test_results_that_are_none_are_refused(tmp_path, api):
    """The second workflow takes what a stranger's job uploaded."""
    for text in ("", "{}", "[" * 100_000, '{"schemaVersion": 99}'):
        (tmp_path / "_results.json").write_text(text)
        done = ci_evals("comment", "_results.json", "--pr-number=7", cwd=tmp_path, env=job(tmp_path, api=api))
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert "result<<" in (tmp_path / "outputs").read_text()
    # An earlier comment would be withdrawn, since nothing it says is of this commit; there is none.
    assert {(asked.method, asked.path) for asked in api.requests} == {
        ("GET", "/repos/octo/agent/issues/7/comments")
    }


def test_a_demo_agent_of_another_address_is_no_secret(tmp_path):
    """The masks of the log are keys, and nothing short or common."""
    write_suite(tmp_path, HELLO, **DEMO)
    with DemoServer() as server:
        done = run(
            tmp_path, f"--base-url={server.base_url}", "--agent-key=a-key-of-agents", env=job(tmp_path)
        )
    masks = lines_of("add-mask", done.stdout)
    assert "::add-mask::a-key-of-agents" in masks
    assert f"::add-mask::{TOKEN}" in masks


@pytest.mark.parametrize(
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
def test_unreadable_settings_are_annotations(tmp_path, arguments, message):
    """With what was found, and without a variable that the user never saw."""
    done = ci_evals(*arguments, cwd=tmp_path, env=job(tmp_path))
    assert done.returncode == 2
    (error,) = lines_of("error", done.stderr)
    assert message in error.replace("%25", "%")
    assert "CI_EVALS_" not in error
    assert "Usage:" not in done.stderr or not arguments


def test_a_wrong_variable_is_named(tmp_path):
    """Where it is what the user has set."""
    env = job(tmp_path, CI_EVALS_MAX_COST="$5")
    done = ci_evals("run", "suite.json", cwd=tmp_path, env=env)
    assert done.returncode == 2
    (error,) = lines_of("error", done.stderr)
    assert "CI_EVALS_MAX_COST" in error
    assert "'$5'" in error


def test_error_is_logged_once(tmp_path):
    """GitHub itself shows the command as a line of it."""
    write_suite(tmp_path, HELLO, **DEMO)
    done = run(tmp_path, "--thresholds=tag:none=1", env=job(tmp_path))
    assert done.stderr.count("there is no tag 'none'") == 1
    write_suite(tmp_path, HELLO | {"turnz": 1}, **DEMO)
    done = run(tmp_path, env=job(tmp_path))
    assert done.stderr.count("turnz") == 1
    assert "suite.json:1:" in done.stderr


def test_error_too_long_for_a_command_is_logged_in_full(tmp_path):
    """The runner cuts messages."""
    write_suite(tmp_path, HELLO, **DEMO)
    done = run(tmp_path, f"--thresholds=tag:{'x' * 5000}-end=1", env=job(tmp_path))
    assert len(lines_of("error", done.stderr)) == 1
    assert "-end'" in done.stderr


@pytest.mark.parametrize(
    "arguments", [("run", "away.json"), ("run",), ("merge", "away"), ("merge", "--shards=x", "a")]
)
def test_a_run_that_was_refused_has_a_summary(tmp_path, arguments):
    """It is what the page of the workflow shows; an empty one looks like success."""
    env = job(tmp_path)
    done = ci_evals(*arguments, cwd=tmp_path, env=env)
    assert done.returncode == 2
    summary = Path(env["GITHUB_STEP_SUMMARY"]).read_text()
    assert summary.startswith("## ⚠️ Evals did not run\n\n```\n")
    assert summary.endswith("\n```\n")
    assert Path(env["GITHUB_OUTPUT"]).read_text().count("invalid") == 1


def test_other_commands_leave_the_summary_alone(tmp_path):
    """A step has one summary, and several commands may write to it."""
    env = job(tmp_path)
    assert ci_evals("validate", "away.json", cwd=tmp_path, env=env).returncode == 2
    assert not Path(env["GITHUB_STEP_SUMMARY"]).exists()


def test_a_run_has_no_other_summary_than_its_own(tmp_path):
    """Also where evals failed, and where there is no verdict."""
    write_suite(tmp_path, HELLO, IMPOSSIBLE | {"name": "Sings"}, **DEMO)
    env = job(tmp_path)
    assert run(tmp_path, env=env).returncode == 1
    assert run(tmp_path, "--base-url=http://127.0.0.1:9", env=env).returncode == 3
    assert "did not run" not in Path(env["GITHUB_STEP_SUMMARY"]).read_text()


def test_a_summary_of_a_refusal_is_short_and_harmless(tmp_path):
    """A suite of a stranger's may have any number of faults, with any text in them."""
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
