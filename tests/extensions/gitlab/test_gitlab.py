"""On GitLab: the note on the merge request, and the baseline from the target branch's artifacts."""

from pathlib import Path

import gitlab_api
import pytest
import yaml
from commands import ci_evals, read_results
from doc_pages import ROOT
from each_row import each_row
from werkzeug import Response

pytestmark = pytest.mark.slow
MARKER = "<!-- ci-evals comment: default -->"


@pytest.fixture
def gitlab():
    with gitlab_api.serving() as api:
        yield api


@pytest.fixture(scope="module")
def saved_runs(tmp_path_factory):
    """The results of a run that passed, and of one that failed."""
    folder = tmp_path_factory.mktemp("saved_runs")
    for name, more in (("passed", []), ("failed", ["--max-p95-latency=0.000001"])):
        options = ["--test=Refuses", "--provider=offline", f"--output-dir={name}", *more]
        ci_evals("run", "demo:hr", *options, cwd=folder)
    return folder


def comment(gitlab, results: Path, **environ):
    return ci_evals("comment", str(results), cwd=results.parent, env=gitlab.environ(**environ))


def test_own_note_is_created_updated_deduplicated_or_left_to_a_newer_pipeline(gitlab, saved_runs):
    gitlab.add_note("Please look", {"id": 5})
    gitlab.add_note(f"{MARKER}\n\nmine now", {"id": 5})
    first = comment(gitlab, saved_runs / "failed")
    assert (first.returncode, "note on !7 created" in first.stderr + first.stdout) == (0, True)
    second = comment(gitlab, saved_runs / "passed")
    assert "note on !7 updated" in second.stderr + second.stdout
    same = comment(gitlab, saved_runs / "passed")
    assert "note on !7 unchanged" in same.stderr + same.stdout
    (own,) = [note for note in gitlab.notes if note["author"] == gitlab_api.BOT]
    assert own["body"].startswith(f"{MARKER}\n<!-- ci-evals pipeline: 500 -->")
    assert ("Evals passed" in own["body"], len(gitlab.notes)) == (True, 3)
    gitlab.notes.clear()
    gitlab.add_note(f"{MARKER}\n<!-- ci-evals pipeline: 501 -->\n\nnewer", gitlab_api.BOT)
    ran = comment(gitlab, saved_runs / "passed")
    assert "note on !7 stale" in ran.stderr + ran.stdout
    assert gitlab.notes[0]["body"].endswith("newer")
    gitlab.notes.clear()
    gitlab.add_note(f"{MARKER}\n\none")
    gitlab.add_note(f"{MARKER}\n\ntwo")
    comment(gitlab, saved_runs / "passed")
    assert [note["id"] for note in gitlab.notes] == [1000]
    gitlab.faults.append(("^PUT", gitlab_api.error_response(404, "404 Not found")))  # it was deleted
    ran = comment(gitlab, saved_runs / "failed")
    assert (ran.returncode, "Evals failed" in gitlab.notes[0]["body"]) == (0, True)
    gitlab.faults.append(("^GET /user", gitlab_api.error_response(429, "Retry later", retry_after="0")))
    ran = comment(gitlab, saved_runs / "passed")
    assert "note on !7 updated" in ran.stderr + ran.stdout


@each_row(("answer", "words"), [
    (gitlab_api.error_response(401, "401 Unauthorized"), "CI_EVALS_GITLAB_TOKEN or GITLAB_TOKEN"),
    (gitlab_api.error_response(403, "403 Forbidden"), "scope api, role Reporter"),
    (gitlab_api.error_response(403, "403 Forbidden - The project is archived"), "or the project is archived"),
    (gitlab_api.error_response(403, "It is locked"), "GitLab answered 403 (It is locked)"),
    (gitlab_api.error_response(404, "404 Merge Request Not Found"), "or the token may not see it"),
    (gitlab_api.error_response(500, "Internal error"), "the server has a problem; try again later"),
    (Response("<html>Bad</html>", 502, content_type="text/html"), "GitLab answered 502: the server has"),
    (gitlab_api.error_response(404, "404 Project Not Found"), "not found, or"),
    (gitlab_api.error_response(409, "Conflict"), "GitLab answered 409 (Conflict)"),
    (gitlab_api.error_response(422, "Note is too long"), "GitLab answered 422 (Note is too long)"),
    (Response("<html>Wrong door</html>", 200, content_type="text/html"), "something other than JSON"),
])  # fmt: skip
def test_refusal_by_gitlab_is_a_warning_that_says_what_to_do(gitlab, saved_runs, answer, words):
    gitlab.faults.append(("^POST", answer))
    ran = comment(gitlab, saved_runs / "failed")
    assert (ran.returncode, words in ran.stderr + ran.stdout) == (0, True)
    assert gitlab_api.TOKEN not in ran.stderr + ran.stdout


def test_comment_on_failure_creates_no_note_for_a_passed_run_but_updates_one(gitlab, saved_runs):
    environ = gitlab.environ()
    for name, lines, status in (
        ("passed", 0, "no note on !7: there is none to update, and none was wanted"),
        ("failed", 1, "note on !7 created"),
        ("passed", 1, "note on !7 updated"),
    ):
        ran = ci_evals("comment", name, "--comment-on=failure", cwd=saved_runs, env=environ)
        assert (ran.returncode, len(gitlab.notes)) == (0, lines)
        assert status in ran.stderr + ran.stdout


def test_comment_outside_gitlab_is_refused_but_can_be_previewed(saved_runs):
    ran = ci_evals("comment", "passed", "--platform=gitlab", cwd=saved_runs)
    assert (ran.returncode, "this is no job of GitLab" in ran.stderr) == (2, True)
    shown = ci_evals("comment", "passed", "--platform=gitlab", "--dry-run", cwd=saved_runs)
    assert (shown.returncode, "Evals passed" in shown.stdout) == (0, True)


@pytest.mark.parametrize(("environ", "words"), [
    ({"token": None}, "no note was posted: there is no token for GitLab: set CI_EVALS_GITLAB_TOKEN"),
    ({"CI_MERGE_REQUEST_IID": ""}, "no note was posted: this pipeline is not one of a merge request"),
])  # fmt: skip
def test_missing_token_or_merge_request_posts_no_note(gitlab, saved_runs, environ, words):
    """The job's own token may not write notes."""
    ran = comment(gitlab, saved_runs / "passed", **environ)
    assert (ran.returncode, gitlab.notes) == (0, [])
    assert words in ran.stderr + ran.stdout


def run(gitlab, folder, *options, **environ):
    options = ["--test=Refuses", "--provider=offline", *options]
    return ci_evals("run", "demo:hr", *options, cwd=folder, env=gitlab.environ(**environ))


def results(saved_runs, name="passed") -> bytes:
    return (saved_runs / name / "_results.json").read_bytes()


def test_baseline_is_the_newest_finished_pipeline_or_passed_one_for_a_job_token(gitlab, saved_runs, tmp_path):
    # A job token can list no pipelines.
    gitlab.add_pipeline(1, results(saved_runs))
    gitlab.add_pipeline(2, results(saved_runs, "failed"), status="failed")
    ran = run(gitlab, tmp_path, token=None)
    assert "the newest pipeline of main that passed" in ran.stdout + ran.stderr
    assert read_results(tmp_path)["comparison"]
    # Another token takes the newest, whether it passed or not.
    gitlab.add_pipeline(3, results(saved_runs), ref="topic")
    gitlab.add_pipeline(4, results(saved_runs), job="other")
    gitlab.add_pipeline(5, None)
    gitlab.add_pipeline(6, results(saved_runs), status="running")
    ran = run(gitlab, tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"commit {2:040x}"[:14] in ran.stdout + ran.stderr
    assert read_results(tmp_path)["comparison"]["comparable"]


@pytest.mark.parametrize(("answer", "words"), [
    (None, "none of the last 0 finished pipelines of main has 'results/_results.json'"),
    (gitlab_api.error_response(403, "403 Forbidden"), "the token lacks a right"),
    (Response("<html>", 200), "something other than JSON"),
])  # fmt: skip
def test_missing_baseline_is_explained_and_fails_only_if_required(gitlab, tmp_path, answer, words):
    if answer is not None:
        gitlab.faults += [("pipelines", answer), ("pipelines", answer)]
    ran = run(gitlab, tmp_path)
    assert (ran.returncode, words in " ".join((ran.stdout + ran.stderr).split())) == (0, True)
    assert run(gitlab, tmp_path, "--baseline=required", "--max-drop=5").returncode == 3


def test_unreadable_artifact_or_unavailable_gitlab_leaves_the_run_without_baseline(gitlab, tmp_path):
    gitlab.add_pipeline(1, b"{" + b" " * 1000)
    ran = run(gitlab, tmp_path)
    assert (ran.returncode, "baseline" in ran.stdout + ran.stderr) == (0, True)
    gitlab.requests.clear()
    gitlab.faults += [("pipelines", gitlab_api.error_response(503, "Busy", retry_after="0"))] * 20
    ran = run(gitlab, tmp_path)
    assert ran.returncode == 0
    message = " ".join((ran.stdout + ran.stderr).split())
    assert "GitLab answered 503 (Busy): the server has a problem" in message
    assert 1 < len(gitlab.requests) < 10


def test_ci_component_has_its_inputs_commands_and_artifacts():
    spec, job = yaml.safe_load_all((ROOT / "templates/ci-evals.yml").read_text())
    assert set(spec["spec"]["inputs"]) == {"suites", "options", "job", "stage", "image"}
    (evals,) = job.values()
    assert (evals["image"]["entrypoint"], evals["artifacts"]["when"]) == ([""], "always")
    assert "ci-evals comment results/ --platform=gitlab" in evals["after_script"][0]
