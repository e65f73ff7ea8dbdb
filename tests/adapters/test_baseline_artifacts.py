"""The baseline on GitHub: which artifact of which run is taken, and one plain line where there is none."""

import asyncio
import json
import re
from dataclasses import dataclass, field, replace

import github_api
import pytest
from github_api import FORK, FORK_ID, REPOSITORY, Answer, GitHubApi, zip_of
from hubs import hub_of
from hypothesis import given, settings
from hypothesis import strategies as st
from json_values import json_values
from property_examples import examples

from ci_evals.adapters.github.baseline import BaselineArtifact, NoBaseline, find
from ci_evals.adapters.github.context import Base, GitHubEvent, WorkflowRun

NAME = "ci-evals-results-default"
LINE = tuple(f"{index:x}" * 40 for index in range(1, 10))
"""Commits of main, the oldest first, one a day from the first of the month."""
BASE, HEAD, MERGE, ELSEWHERE = LINE[-1], "d" * 40, "e" * 40, "f" * 40

PULL_REQUEST = GitHubEvent(
    "pull_request", REPOSITORY, number=7, base=Base("main", LINE[-2], MERGE), own_run=WorkflowRun(900)
)


def event(name: str, branch: str, commit: str | None, **fields) -> GitHubEvent:
    return GitHubEvent(event=name, repository=REPOSITORY, base=Base(branch, commit), **fields)


def results(name: str) -> bytes:
    return json.dumps({"run": name}).encode()


def artifact(name: str) -> bytes:
    return zip_of({"_results.json": results(name)})


@pytest.fixture
def api():
    """A repository with nine commits on main, and a pull request merged onto the last of them."""
    with github_api.serving() as server:
        server.add_commits(*LINE)
        server.add_commit(HEAD, LINE[-2])
        server.add_commit(MERGE, BASE, HEAD)
        yield server


def find_baseline(api: GitHubApi, context: GitHubEvent = PULL_REQUEST, **wanted):
    async def search() -> BaselineArtifact | NoBaseline:
        async with hub_of(api) as hub:
            return await find(hub, context, **({"key": "default"} | wanted))

    outcome = asyncio.run(search())
    assert outcome.note.isprintable()
    return outcome


def name_of(outcome: BaselineArtifact | NoBaseline) -> str:
    assert isinstance(outcome, BaselineArtifact), outcome
    return json.loads(outcome.data)["run"]


def found_run(*args, **wanted) -> str:
    return name_of(find_baseline(*args, **wanted))


def note(*args, **wanted) -> str:
    return find_baseline(*args, **wanted).note


def test_usable_runs_before_the_baseline_are_its_history(api):
    for number, commit in enumerate(LINE):
        api.add_run(commit, artifact(str(number)))
    outcome = find_baseline(api, earlier=3)
    assert (name_of(outcome), [name_of(each) for each in outcome.earlier]) == ("8", ["7", "6", "5"])
    assert find_baseline(api).earlier == ()
    api.artifacts.clear()
    api.add_run(LINE[-4], artifact("old"))
    api.add_run(LINE[-3], b"no zip file")
    api.add_run(LINE[-2], artifact("a pull request's"), event="pull_request")
    api.add_run(BASE, artifact("base"))
    outcome = find_baseline(api, earlier=9)
    assert (name_of(outcome), [name_of(each) for each in outcome.earlier]) == ("base", ["old"])
    assert outcome.skipped == 1


def test_run_of_first_parent_of_merge_is_used_as_baseline(api):
    """The first parent of the tested merge: main may have moved on since the event told of its base."""
    api.add_run(LINE[-2], artifact("what the event calls the base"))
    api.add_run(BASE, artifact("base"))
    line = f"the baseline is commit {BASE[:7]} of main, the base commit"
    assert find_baseline(api) == BaselineArtifact(results("base"), line, BASE, of_base_commit=True)


def test_nearest_run_before_the_base_is_used_if_the_base_has_none(api):
    """By commits, not by the age of runs: an old commit's run that was started again is the newest."""
    api.add_run(LINE[5], artifact("near"))
    api.add_run(LINE[2], artifact("far, but run again today"))
    api.add_run(BASE, status="in_progress", conclusion=None)
    outcome = find_baseline(api)
    assert (name_of(outcome), outcome.of_base_commit) == ("near", False)
    assert outcome.note == f"the baseline is commit {LINE[5][:7]} of main, 3 commits before the base"
    api.add_run(LINE[-2], artifact("before"))
    assert note(api) == f"the baseline is commit {LINE[-2][:7]} of main, 1 commit before the base"


@pytest.mark.parametrize("conclusion", ["success", "failure", "cancelled"])
def test_run_with_any_conclusion_is_used_as_baseline(api, conclusion):
    """Its scores are as good, and without them recoveries would not be seen."""
    api.add_run(LINE[5], artifact("passed"))
    api.add_run(BASE, artifact("this"), conclusion=conclusion)
    assert found_run(api) == "this"


def test_last_artifact_of_a_commit_with_the_key_is_used_zipped_or_not(api):
    run = api.add_run(BASE, artifact("first attempt"))
    api.add_artifact(run, artifact("second attempt"), name=NAME)
    assert found_run(api) == "second attempt"
    api.artifacts.reverse()
    assert found_run(api) == "second attempt"
    api.artifacts.clear()
    api.add_run(BASE, artifact("default"))
    api.add_run(BASE, artifact("nightly"), name="ci-evals-results-nightly")
    assert found_run(api, key="nightly") == "nightly"
    # The upload step can upload a file as it is.
    api.add_run(BASE, results("plain"))
    assert found_run(api) == "plain"


def test_baseline_search_reads_at_most_500_artifacts(api):
    """Main's run may stand behind those of many pull requests, and no order is relied on."""

    def add_others(count):
        for _ in range(count):
            api.add_run(HEAD, b"", event="pull_request", head_branch="topic")

    api.add_run(BASE, artifact("base"))
    add_others(130)
    assert (found_run(api), len(api.requests_to("/actions/artifacts$"))) == ("base", 2)
    add_others(371)
    assert note(api).startswith("no baseline: none of the newest 500 artifacts ")
    assert len(api.requests_to("/actions/artifacts$")) == 2 + 5


def test_search_takes_five_requests_or_one_if_there_is_no_artifact(api):
    """The list, the merge, the commits, the run and the download; and one to the store of artifacts."""
    find_baseline(api)
    assert [str(request) for request in api.requests] == [f"GET /repos/{REPOSITORY}/actions/artifacts"]
    api.add_run(BASE, artifact("base"))
    find_baseline(api)
    assert (len(api.requests), len(api.blob_requests)) == (1 + 5, 1)


def test_artifact_of_earlier_attempt_of_same_run_is_not_used_as_baseline(api):
    """Started again, a run finds what its first attempt left."""
    earlier = api.add_run(BASE, artifact("earlier"))
    again = api.add_run(BASE, artifact("this"))
    pushed = event("schedule", "main", BASE, own_run=WorkflowRun(again["id"], 2))
    assert found_run(api, pushed) == "earlier"
    first = replace(pushed, own_run=WorkflowRun(earlier["id"], 2))
    api.artifacts = [one for one in api.artifacts if one["workflow_run"]["id"] == earlier["id"]]
    assert isinstance(find_baseline(api, first), NoBaseline)


def test_push_and_schedule_use_previous_run_of_the_branch_as_baseline(api):
    """There is no merge to be looked up; of a new branch, the newest run serves."""
    api.add_run(LINE[3], artifact("before"))
    api.add_run(LINE[5], artifact("after"))
    assert (found_run(api, event("push", "main", LINE[3])), len(api.requests)) == ("before", 4)
    api.add_run(LINE[2], artifact("there"), head_branch="topic")
    line = f"the baseline is commit {LINE[2][:7]} of topic, the newest run of topic"
    assert note(api, event("push", "topic", None)) == line
    api.artifacts.clear()
    # The base of a schedule is the tested commit itself, so the line speaks of that.
    night = event("schedule", "main", BASE, sha=BASE)
    api.add_run(LINE[-2], artifact("before"))
    assert note(api, night) == f"the baseline is commit {LINE[-2][:7]} of main, 1 commit before this one"
    api.add_run(BASE, artifact("same"))
    assert note(api, night).endswith("of main, the same commit in an earlier run")


@pytest.mark.parametrize("parents", [[BASE], [], None], ids=["one parent", "no parent", "unreadable"])
def test_event_base_commit_is_used_if_checkout_is_not_a_merge_commit(api, parents):
    """Its first parent would be a commit of the pull request. GitHub drops merges that it has replaced."""
    if parents is None:
        del api.commits[MERGE]
    else:
        api.add_commit(MERGE, *parents)
    api.add_run(LINE[-2], artifact("as the event says"))
    api.add_run(BASE, artifact("newer"))
    outcome = find_baseline(api)
    assert (name_of(outcome), outcome.note[-15:]) == ("as the event says", "the base commit")


def test_run_of_an_old_commit_is_used_only_if_older_than_the_base(api):
    """Its commit was force-pushed away, or is far back. A newer run has changes that the base lacks."""
    api.add_run(ELSEWHERE, artifact("after"), created_at="2026-11-12T09:00:00Z")
    newer = f"all runs of main that left the artifact '{NAME}' are newer than the base"
    assert find_baseline(api) == NoBaseline(newer)
    api.add_run(ELSEWHERE, artifact("old"), created_at="2026-11-03T09:00:00Z")
    api.add_run(ELSEWHERE, artifact("before"), created_at="2026-11-08T09:00:00Z")
    outcome = find_baseline(api)
    assert name_of(outcome) == "before"
    assert outcome.note == (
        f"the baseline is commit {ELSEWHERE[:7]} of main, the newest run of main before the base; "
        "not among the last 100 commits"
    )


def test_only_the_last_hundred_commits_are_read(api):
    line = [f"{index:040x}" for index in range(150)]
    for index, sha in enumerate(line):
        api.add_commit(sha, *line[max(0, index - 1) : index])
    api.add_run(line[10], artifact("long ago"), created_at="2026-11-08T09:00:00Z")
    pushed = event("push", "main", line[-1])
    assert note(api, pushed).endswith("not among the last 100 commits")
    assert len(api.requests_to("/commits$")) == 1
    api.add_run(line[50], artifact("the last that is read"))
    assert note(api, pushed).endswith("of main, 99 commits before the base")


def test_newest_run_is_used_without_permission_to_read_commits(api):
    api.permissions.remove("contents: read")
    api.add_run(LINE[2], artifact("old"))
    api.add_run(LINE[5], artifact("new"))
    outcome = find_baseline(api)
    assert name_of(outcome) == "new"
    assert outcome.note == (
        f"the baseline is commit {LINE[5][:7]} of main, the newest run of main; it may be newer than the "
        "base, since the commits cannot be read: GitHub answered 403 "
        "(Resource not accessible by integration): the token lacks the permission 'contents: read'"
    )


def test_newest_run_of_named_branch_is_used_unless_it_is_base_branch(api):
    release = ("a1" * 20, "a2" * 20, "a3" * 20)
    api.add_commits(*release)
    api.add_run(release[0], artifact("old"), head_branch="release")
    api.add_run(release[1], artifact("new"), head_branch="release")
    api.add_run(BASE, artifact("main"))
    outcome = find_baseline(api, branch="release")
    assert name_of(outcome) == "new"
    assert outcome.note == f"the baseline is commit {release[1][:7]} of release, the newest run of release"
    assert api.requests_to("/commits$")[0].query["sha"] == "release"
    assert find_baseline(api, branch="main") == find_baseline(api)


QUEUE = "gh-readonly-queue/main/pr-6-" + LINE[5]
QUEUED = {"event": "merge_group", "head_branch": QUEUE}


def test_merge_queue_run_is_baseline_of_the_next_group_and_once_merged_of_its_branch(api):
    """The queue's commit becomes that of main, where nothing has to be run again."""
    api.add_run(LINE[2], artifact("old"))
    api.add_run(LINE[5], artifact("queued"), **QUEUED)
    outcome = find_baseline(api)
    assert name_of(outcome) == "queued"
    assert outcome.note.endswith("of main, 3 commits before the base")
    # The group in front may still wait to be merged: then it is no commit of main yet.
    api.add_commit("c" * 40, BASE)
    api.add_run("c" * 40, artifact("in front"), **QUEUED)
    assert found_run(api, event("merge_group", "main", "c" * 40)) == "in front"


@pytest.mark.parametrize("fields", [
    {"sha": ELSEWHERE, **QUEUED},
    {"sha": BASE, **QUEUED, "event": "push"},
    {"sha": BASE, **QUEUED, "head_branch": "gh-readonly-queue/main-2/pr-6-" + BASE},
    {"sha": BASE, **QUEUED, "head_branch": "gh-readonly-queue/main"},
], ids=["thrown out of the queue", "no queue", "another branch's queue", "only begins so"])  # fmt: skip
def test_unverified_merge_queue_run_is_not_used_as_baseline(api, fields):
    """A queue's runs count by their commits; without commits to read they do not count."""
    api.add_run(fields.pop("sha"), artifact("planted"), **fields)
    assert "no baseline yet: only" in note(api)
    api.permissions.remove("contents: read")
    assert "no baseline yet: only" in note(api)


ONLY_OTHERS = NoBaseline(
    yet=True,
    reason="only pull requests, forks, other branches or untrusted events have left the artifact "
    f"'{NAME}'; it is uploaded by the first run on main",
)


@dataclass(frozen=True)
class Attack:
    """A run with an artifact that must not become the baseline."""

    what: str
    run: dict = field(default_factory=dict)
    listed: dict = field(default_factory=dict)
    """What the list of artifacts says otherwise than the run."""


FORKED = {"head_repository": {"id": FORK_ID, "full_name": FORK}}
UNTRUSTED = ("pull_request_target", "workflow_run", "issue_comment", "pull_request_review", "", None)
ATTACKS = [
    Attack("a fork's pull request from its branch main", {"event": "pull_request", **FORKED}),
    Attack("a fork's run that claims a push", {"event": "push", **FORKED}),
    Attack("a fork's run, listed as our own", FORKED, {"head_repository_id": github_api.REPOSITORY_ID}),
    Attack("a pull request from main into a release branch", {"event": "pull_request"}),
    Attack("a pull request's branch", {"event": "pull_request", "head_branch": "topic"}),
    Attack("another branch's push", {"head_branch": "topic"}),
    Attack("a branch that only begins so", {"head_branch": "main2"}),
    Attack("another branch, listed as main", {"head_branch": "topic"}, {"head_branch": "main"}),
    Attack("another commit, listed as the base", {"head_sha": HEAD}, {"head_sha": BASE}),
    Attack("a longer name", {"name": NAME + "-2"}),
    Attack("a name in capitals", {"name": NAME.upper()}),
    Attack("a deleted fork", {"event": "pull_request"}, {"head_repository_id": None}),
    *(Attack(f"a run of {name}", {"event": name}) for name in UNTRUSTED),
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.what)
def test_forged_baseline_artifact_is_not_used(api, attack):
    """It is newer, and of the base commit itself; an honest one far before it is taken.

    Alone it is no baseline either, whether commits can be read or not, and GitHub filters by name or not.
    """

    def plant() -> None:
        api.add_run(BASE, artifact("planted"), **attack.run)
        api.artifacts[-1]["workflow_run"] |= attack.listed

    plant()
    assert note(api).startswith("no baseline yet: ")
    api.permissions.remove("contents: read")
    api.fail("/actions/artifacts$", Answer(200, {"artifacts": api.artifacts}))
    assert note(api).startswith("no baseline yet: ")
    assert not api.blob_requests
    api.permissions.add("contents: read")
    api.artifacts.clear()
    api.requests.clear()
    api.add_run(LINE[2], artifact("honest"))
    plant()
    assert found_run(api) == "honest"
    assert all(str(api.artifacts[-1]["id"]) not in str(request) for request in api.requests)


def test_at_most_ten_runs_are_checked_for_trust_not_counting_forks_or_expired(api):
    """Forks and expired artifacts use up nothing: the list alone shows that they do not serve."""
    for _ in range(12):
        api.add_run(BASE, artifact("planted"), event="issue_comment")
    assert (find_baseline(api), len(api.requests_to("/actions/runs/"))) == (ONLY_OTHERS, 10)
    api.artifacts.clear()
    api.add_run(LINE[5], artifact("honest"))
    for _ in range(12):
        api.add_run(BASE, artifact("forked"), event="pull_request", **FORKED)
        api.add_run(BASE, artifact("old"), expired=True)
    assert (found_run(api), len(api.requests_to("/actions/runs/"))) == ("honest", 10 + 1)


def test_missing_baseline_is_explained_by_runs_artifacts_expiry_or_permission(api):
    first = f"no run on main has left the artifact '{NAME}'; it is uploaded by the first run there"
    assert find_baseline(api) == NoBaseline(yet=True, reason=first)
    api.add_run(HEAD, artifact("own"), event="pull_request", head_branch="topic")
    assert find_baseline(api) == ONLY_OTHERS
    api.add_run(BASE, artifact("old"), expired=True)
    expired = f"all artifacts '{NAME}' of main have expired; the next run there uploads a new one"
    assert find_baseline(api) == NoBaseline(expired)
    api.permissions.remove("actions: read")
    assert find_baseline(api) == NoBaseline(
        "GitHub answered 403 (Resource not accessible by integration): "
        "the token lacks the permission 'actions: read'"
    )


def test_unfinished_run_is_skipped_in_favor_of_the_run_before_it(api):
    """Killed, it leaves what its folder said before its end: the run before it serves."""
    unfinished = zip_of({"_results.json": json.dumps({"run": {"status": "unfinished"}}).encode()})
    api.add_run(BASE, unfinished)
    unfinished = f"the runs of main that left the artifact '{NAME}' did not finish"
    assert find_baseline(api) == NoBaseline(unfinished)
    api.add_run(LINE[2], artifact("old"))
    assert found_run(api) == "old"


@pytest.mark.parametrize("status", [404, 410])
def test_artifact_expired_or_run_deleted_during_search_is_skipped(api, status):
    api.add_run(LINE[2], artifact("old"))
    run = api.add_run(BASE, artifact("gone"))
    api.fail("/zip$", Answer(status, {"message": "gone"}))
    assert found_run(api) == "old"
    api.fail("/zip$", *[Answer(status, {"message": "gone"})] * 2)
    assert "have expired" in note(api)
    del api.runs[run["id"]]
    assert found_run(api) == "old"


USED_UP = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "4102444800"}
LIMITED = Answer(403, {"message": "API rate limit exceeded"}, USED_UP)


@pytest.mark.parametrize("step", ["/artifacts$", "/runs/", "/zip$"])
@pytest.mark.parametrize(("answer", "words"), [
    (Answer(404, {"message": "Not Found"}), "or the token lacks the permission 'actions: read'"),
    (Answer(401, {"message": "Bad credentials"}), "the token is not valid there"),
    (LIMITED, "the rate limit is used up"),
    (Answer(503, {"message": "Unavailable"}), "GitHub answered 503 (Unavailable)"),
    (Answer(200, raw=b"<html>"), ""),
    (Answer(200, []), ""),
    (Answer(302, None, {"Location": "http://127.0.0.1:1/nothing"}), ""),
    (Answer(302, None, {"Location": "http://[::"}), ""),
], ids=["private", "bad token", "limit", "down", "a page", "nothing", "moved", "nowhere"])  # fmt: skip
def test_error_of_any_step_means_no_baseline_and_the_reason_hides_the_signature(api, step, answer, words):
    api.add_run(BASE, artifact("base"))
    api.fail(step, *[answer] * 3)
    why = note(api)
    assert why.startswith("no baseline")
    assert words in why or (answer.status == 404 and step != "/artifacts$")
    assert "sig=" not in why


def test_unreachable_github_is_reported_with_its_host():
    with github_api.serving() as server:
        pass
    assert re.match(r"no baseline: GitHub at 127\.0\.0\.1:.*cannot be reached", note(server))


@pytest.mark.parametrize(("data", "words"), [
    (b"", "is neither a zip nor the file _results.json"),
    (artifact("x")[:-30], "is damaged, and cannot be unpacked"),
    (zip_of({"junit.xml": "<x/>"}), "holds no file _results.json; upload the one in the output folder"),
], ids=["empty", "half", "another file"])  # fmt: skip
def test_unreadable_artifact_is_reported_with_its_commit(api, data, words):
    """An older one is not taken in silence: the upload has to be mended."""
    api.add_run(LINE[2], artifact("old"))
    api.add_run(BASE, data)
    assert find_baseline(api) == NoBaseline(f"the artifact '{NAME}' of commit {BASE[:7]} {words}")


def test_event_without_a_base_needs_a_named_branch(api):
    nowhere = GitHubEvent(event="release", repository=REPOSITORY)
    why = "the event 'release' names no base branch; name one with baseline-branch"
    assert find_baseline(api, nowhere) == NoBaseline(why)
    assert not api.requests
    api.add_run(BASE, artifact("main"))
    api.commits["main"] = api.commits[BASE]
    assert found_run(api, nowhere, branch="main") == "main"


JSON = json_values()


@st.composite
def spoiled(draw, value):
    """`value` with some parts of it replaced or left out."""
    if draw(st.integers(0, 9)) == 0:
        return draw(JSON)
    match value:
        case dict():
            lost = draw(st.sets(st.sampled_from(sorted(value)), max_size=1))
            return {key: draw(spoiled(part)) for key, part in value.items() if key not in lost}
        case list():
            return [draw(spoiled(part)) for part in value]
    return value


OF_MAIN = {"id": 3, "head_branch": "main", "head_sha": BASE}
LISTED = {"id": 5, "name": NAME, "expired": False, "created_at": "2026-11-20T09:00:00Z"}
LISTED |= {"workflow_run": OF_MAIN | {"repository_id": 1, "head_repository_id": 1}}
RUN = OF_MAIN | {"event": "push", "repository": {"id": 1}, "head_repository": {"id": 1}}
COMMIT = {"sha": BASE, "parents": [{"sha": HEAD}, {"sha": LINE[2]}]}
COMMIT |= {"commit": {"committer": {"date": "2026-11-20T08:00:00Z"}}}


@pytest.fixture(scope="module")
def any_api():
    """A server that answers what an example says."""
    with github_api.serving() as server:
        yield server


@given(spoiled({"artifacts": [LISTED]}), spoiled(RUN), spoiled(COMMIT), spoiled([COMMIT]))
@settings(max_examples=examples(60))
def test_malformed_answers_of_github_give_a_trusted_baseline_or_a_reason(
    any_api, listed, run, merge, commits
):
    any_api.faults = []
    answers = {"/actions/artifacts$": listed, "/actions/runs/": run, "/commits/": merge, "/commits$": commits}
    for path, body in answers.items():
        any_api.fail(path, *[Answer(200, body)] * 12)
    any_api.fail("/zip$", *[Answer(200, raw=results("there"))] * 12)
    outcome = find_baseline(any_api)
    if isinstance(outcome, BaselineArtifact):
        assert (outcome.commit, run["event"], run["head_repository"]["id"]) == (BASE, "push", 1)
    else:
        assert outcome.note.startswith("no baseline")
