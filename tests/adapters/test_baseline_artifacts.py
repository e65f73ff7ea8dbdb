"""The baseline on GitHub: which artifact of which run is taken, and one plain line where there is none."""

import asyncio
import json
from dataclasses import dataclass, field, replace

import github_api
import pytest
from github_api import FORK, FORK_ID, REPOSITORY, TOKEN, Answer, GitHubApi, zip_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from property_examples import examples

from ci_evals.adapters.github.api import GitHub
from ci_evals.adapters.github.baseline import BaselineArtifact, NoBaseline, find
from ci_evals.adapters.github.context import Base, GitHubEvent, WorkflowRun

NAME = "ci-evals-results-default"
LINE = tuple(f"{place:x}" * 40 for place in range(1, 10))
"""Commits of main, the oldest first, one a day from the first of the month."""
BASE, HEAD, MERGE, ELSEWHERE = LINE[-1], "d" * 40, "e" * 40, "f" * 40

PULL_REQUEST = GitHubEvent(
    event="pull_request",
    repository=REPOSITORY,
    number=7,
    base=Base("main", LINE[-2], MERGE),
    own_run=WorkflowRun(900),
)


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


def found(api: GitHubApi, context: GitHubEvent = PULL_REQUEST, **wanted) -> BaselineArtifact | NoBaseline:
    """What is found, with waits that take no time."""

    async def no_wait(_seconds: float) -> None:
        pass

    async def search() -> BaselineArtifact | NoBaseline:
        async with GitHub(api.url, TOKEN, sleep=no_wait) as hub:
            return await find(hub, context, **({"key": "default"} | wanted))

    outcome = asyncio.run(search())
    assert outcome.note.isprintable()
    return outcome


def name_of(outcome: BaselineArtifact | NoBaseline) -> str:
    assert isinstance(outcome, BaselineArtifact), outcome
    return json.loads(outcome.data)["run"]


# -- further runs


def test_the_runs_before_the_baseline_are_its_history(api):
    """The nearest first, and no more than are asked for."""
    for number, commit in enumerate(LINE):
        api.add_run(commit, artifact(str(number)))
    outcome = found(api, earlier=3)
    assert name_of(outcome) == "8"
    assert [name_of(each) for each in outcome.earlier] == ["7", "6", "5"]
    assert found(api).earlier == ()


def test_an_earlier_run_that_cannot_be_had_is_left_out(api):
    """It costs neither the baseline nor the other runs."""
    api.add_run(LINE[-4], artifact("old"))
    api.add_run(LINE[-3], b"no zip file")
    api.add_run(LINE[-2], artifact("a pull request's"), event="pull_request")
    api.add_run(BASE, artifact("base"))
    outcome = found(api, earlier=9)
    assert name_of(outcome) == "base"
    assert [name_of(each) for each in outcome.earlier] == ["old"]
    assert outcome.skipped == 1


# -- which one


def test_the_run_of_the_base_commit_is_the_baseline(api):
    """The first parent of the tested merge: main may have moved on since the event told of its base."""
    api.add_run(LINE[-2], artifact("what the event calls the base"))
    api.add_run(BASE, artifact("base"))
    assert found(api) == BaselineArtifact(
        results("base"),
        f"the baseline is commit {BASE[:7]} of main, the base commit",
        BASE,
        of_base_commit=True,
    )


def test_without_the_base_commits_run_the_nearest_one_before_it_serves(api):
    """A base run that was skipped, or is still going: it has no artifact yet."""
    api.add_run(LINE[2], artifact("far"))
    api.add_run(LINE[5], artifact("near"))
    api.add_run(BASE, status="in_progress", conclusion=None)
    outcome = found(api)
    assert name_of(outcome) == "near"
    assert outcome.note == f"the baseline is commit {LINE[5][:7]} of main, 3 commits before the base"
    assert not outcome.of_base_commit


def test_one_commit_is_one_commit(api):
    """In words too."""
    api.add_run(LINE[-2], artifact("before"))
    assert found(api).note == f"the baseline is commit {LINE[-2][:7]} of main, 1 commit before the base"


def test_nearness_is_told_by_commits_and_not_by_the_age_of_runs(api):
    """An old commit's run that was started again is the newest, and not the nearest."""
    api.add_run(LINE[5], artifact("near"))
    api.add_run(LINE[2], artifact("far, but played again today"))
    assert name_of(found(api)) == "near"


@pytest.mark.parametrize("conclusion", ["success", "failure", "cancelled"])
def test_a_run_that_missed_its_gate_serves_as_well(api, conclusion):
    """Its scores are as good, and without them recoveries would not be seen."""
    api.add_run(LINE[5], artifact("held"))
    api.add_run(BASE, artifact("this"), conclusion=conclusion)
    assert name_of(found(api)) == "this"


def test_of_several_artifacts_of_a_commit_the_last_is_taken(api):
    """Attempts of a run, and a second run, whatever order GitHub lists them in."""
    run = api.add_run(BASE, artifact("first attempt"))
    api.add_artifact(run, artifact("second attempt"), name=NAME)
    assert name_of(found(api)) == "second attempt"
    api.artifacts.reverse()
    assert name_of(found(api)) == "second attempt"


def test_artifacts_of_every_page_are_looked_at(api):
    """Main's run may stand behind those of a hundred pull requests, and no order is relied on."""
    api.add_run(BASE, artifact("base"))
    for _ in range(130):
        api.add_run(HEAD, b"", event="pull_request", head_branch="topic")
    assert name_of(found(api)) == "base"
    assert len(api.requests_to("/actions/artifacts$")) == 2


def test_there_is_an_end_to_pages(api):
    """Of 500 artifacts at most: a job has better things to do."""
    api.add_run(BASE, artifact("base"))
    for _ in range(501):
        api.add_run(HEAD, b"", event="pull_request", head_branch="topic")
    assert isinstance(found(api), NoBaseline)
    assert len(api.requests_to("/actions/artifacts$")) == 5


def test_five_requests_are_enough(api):
    """The list, the merge, the commits, the run and the download; and one to the store of artifacts."""
    api.add_run(BASE, artifact("base"))
    found(api)
    assert len(api.requests) == 5
    assert len(api.blob_requests) == 1


def test_one_request_shows_that_there_is_none(api):
    """Commits are not read in vain."""
    found(api)
    assert [str(request) for request in api.requests] == [f"GET /repos/{REPOSITORY}/actions/artifacts"]


def test_the_key_chooses_the_artifact(api):
    """Two suites of one repository have two baselines."""
    api.add_run(BASE, artifact("default"))
    api.add_run(BASE, artifact("nightly"), name="ci-evals-results-nightly")
    assert name_of(found(api, key="nightly")) == "nightly"


def test_this_very_run_is_not_its_own_baseline(api):
    """Started again, it finds what its first attempt left."""
    earlier = api.add_run(BASE, artifact("earlier"))
    again = api.add_run(BASE, artifact("this"))
    pushed = GitHubEvent(
        event="schedule", repository=REPOSITORY, base=Base("main", BASE), own_run=WorkflowRun(again["id"], 2)
    )
    assert name_of(found(api, pushed)) == "earlier"
    first = replace(pushed, own_run=WorkflowRun(earlier["id"], 2))
    api.artifacts = [one for one in api.artifacts if one["workflow_run"]["id"] == earlier["id"]]
    assert isinstance(found(api, first), NoBaseline)


def test_a_push_is_compared_with_the_commit_before_it(api):
    """There is no merge to be looked up."""
    api.add_run(LINE[3], artifact("before"))
    api.add_run(LINE[5], artifact("after"))
    pushed = GitHubEvent(event="push", repository=REPOSITORY, base=Base("main", LINE[3]))
    assert name_of(found(api, pushed)) == "before"
    assert len(api.requests) == 4


@pytest.mark.parametrize("parents", [[BASE], []], ids=["one parent", "none"])
def test_what_is_no_merge_is_not_taken_for_one(api, parents):
    """Its first parent would be a commit of the pull request itself."""
    api.add_commit(MERGE, *parents)
    api.add_run(LINE[-2], artifact("as the event says"))
    api.add_run(BASE, artifact("newer"))
    assert name_of(found(api)) == "as the event says"


def test_a_merge_that_cannot_be_read_leaves_the_events_base(api):
    """GitHub makes that commit anew with every push, and forgets the old one."""
    del api.commits[MERGE]
    api.add_run(LINE[-2], artifact("as the event says"))
    assert found(api).note.endswith("the base commit")


# -- what is not among the last commits


def test_a_run_of_a_commit_long_ago_serves_if_it_was_before_the_base(api):
    """Or one whose commit was pushed away: the newest that was there when the base was made."""
    api.add_run(ELSEWHERE, artifact("old"), created_at="2026-11-03T09:00:00Z")
    api.add_run(ELSEWHERE, artifact("before"), created_at="2026-11-08T09:00:00Z")
    api.add_run(ELSEWHERE, artifact("after"), created_at="2026-11-12T09:00:00Z")
    outcome = found(api)
    assert name_of(outcome) == "before"
    assert outcome.note == (
        f"the baseline is commit {ELSEWHERE[:7]} of main, the newest run of main before the base; "
        "not among the last 100 commits"
    )


def test_a_run_that_is_newer_than_the_base_does_not_serve(api):
    """It would tell of changes that the pull request has not seen."""
    api.add_run(ELSEWHERE, artifact("after"), created_at="2026-11-12T09:00:00Z")
    assert found(api) == NoBaseline(
        f"all runs of main that left the artifact '{NAME}' are newer than the base"
    )


def test_only_the_last_hundred_commits_are_read(api):
    """One page. What lies before is told as such."""
    line = [f"{place:040x}" for place in range(150)]
    for place, sha in enumerate(line):
        api.add_commit(sha, *line[max(0, place - 1) : place])
    api.add_run(line[10], artifact("long ago"), created_at="2026-11-08T09:00:00Z")
    pushed = GitHubEvent(event="push", repository=REPOSITORY, base=Base("main", line[-1]))
    assert found(api, pushed).note.endswith("not among the last 100 commits")
    assert len(api.requests_to("/commits$")) == 1
    api.add_run(line[50], artifact("the last that is read"))
    assert found(api, pushed).note.endswith("of main, 99 commits before the base")


def test_without_the_right_to_read_commits_the_newest_run_serves(api):
    """And it is said that it may be newer than the base, and which permission is missing."""
    api.permissions.remove("contents: read")
    api.add_run(LINE[2], artifact("old"))
    api.add_run(LINE[5], artifact("new"))
    outcome = found(api)
    assert name_of(outcome) == "new"
    assert outcome.note == (
        f"the baseline is commit {LINE[5][:7]} of main, the newest run of main; it may be newer than the "
        "base, since the commits cannot be read: GitHub answered 403 "
        "(Resource not accessible by integration): the token lacks the permission 'contents: read'"
    )


# -- another branch


def test_another_branch_has_its_own_newest_run(api):
    """The base of the event says nothing of it."""
    release = ("a1" * 20, "a2" * 20, "a3" * 20)
    api.add_commits(*release)
    api.add_run(release[0], artifact("old"), head_branch="release")
    api.add_run(release[1], artifact("new"), head_branch="release")
    api.add_run(BASE, artifact("main"))
    outcome = found(api, branch="release")
    assert name_of(outcome) == "new"
    assert outcome.note == f"the baseline is commit {release[1][:7]} of release, the newest run of release"
    assert api.requests_to("/commits$")[0].query["sha"] == "release"


def test_the_events_own_branch_by_name_changes_nothing(api):
    """`--baseline-branch=main` in a pull request into main: its base is known."""
    api.add_run(BASE, artifact("base"))
    assert found(api, branch="main") == found(api)


def test_a_new_branch_is_compared_with_its_newest_run(api):
    """There is no commit before the first push."""
    api.add_run(LINE[2], artifact("there"), head_branch="topic")
    pushed = GitHubEvent(event="push", repository=REPOSITORY, base=Base("topic", None))
    assert (
        found(api, pushed).note == f"the baseline is commit {LINE[2][:7]} of topic, the newest run of topic"
    )


# -- the merge queue

QUEUE = "gh-readonly-queue/main/pr-6-" + LINE[5]


def test_a_run_of_the_merge_queue_serves_once_it_is_on_the_branch(api):
    """The queue's commit becomes that of main, where nothing has to be played again."""
    api.add_run(LINE[2], artifact("old"))
    api.add_run(LINE[5], artifact("queued"), event="merge_group", head_branch=QUEUE)
    outcome = found(api)
    assert name_of(outcome) == "queued"
    assert outcome.note.endswith("of main, 3 commits before the base")


def test_a_merge_group_is_compared_with_the_one_before_it(api):
    """Which may still wait to be merged: then it is no commit of main yet."""
    api.add_commit("c" * 40, BASE)
    api.add_run("c" * 40, artifact("in front"), event="merge_group", head_branch=QUEUE)
    queued = GitHubEvent(event="merge_group", repository=REPOSITORY, base=Base("main", "c" * 40))
    assert name_of(found(api, queued)) == "in front"


@pytest.mark.parametrize(
    "fields",
    [
        {"sha": ELSEWHERE, "event": "merge_group", "head_branch": QUEUE},
        {"sha": BASE, "event": "push", "head_branch": QUEUE},
        {"sha": BASE, "event": "merge_group", "head_branch": "gh-readonly-queue/main-2/pr-6-" + BASE},
        {"sha": BASE, "event": "merge_group", "head_branch": "gh-readonly-queue/main"},
    ],
    ids=["thrown out of the queue", "no queue", "another branch's queue", "only begins so"],
)
def test_only_runs_of_the_merge_queue_are_baselines(api, fields):
    """A queue's runs count by their commits; without commits to read they do not count."""
    api.add_run(fields.pop("sha"), artifact("planted"), **fields)
    assert "no baseline yet: only" in found(api).note
    api.permissions.remove("contents: read")
    assert "no baseline yet: only" in found(api).note


def test_a_night_is_compared_with_the_night_before(api):
    """Its base is the tested commit itself, so the line speaks of that."""
    night = GitHubEvent(event="schedule", repository=REPOSITORY, sha=BASE, base=Base("main", BASE))
    api.add_run(LINE[-2], artifact("before"))
    assert (
        found(api, night).note == f"the baseline is commit {LINE[-2][:7]} of main, 1 commit before this one"
    )
    api.add_run(BASE, artifact("same"))
    assert found(api, night).note.endswith("of main, the same commit in an earlier run")


def test_too_many_other_artifacts_are_reported(api):
    """Those of main may be older than all that are looked at: it is not said that there are none."""
    api.add_run(BASE, artifact("hidden"))
    for _ in range(500):
        api.add_run(HEAD, b"", event="pull_request", head_branch="topic")
    assert found(api).note.startswith("no baseline: none of the newest 500 artifacts ")


# -- attacks

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
    *(
        Attack(f"a run of {event}", {"event": event})
        for event in ("pull_request_target", "workflow_run", "issue_comment", "pull_request_review", "", None)
    ),
]


def plant(api: GitHubApi, attack: Attack) -> None:
    api.add_run(BASE, artifact("planted"), **attack.run)
    api.artifacts[-1]["workflow_run"] |= attack.listed


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.what)
def test_planted_baseline_is_not_used(api, attack):
    """It is newer, and of the base commit itself; an honest one far before it is taken."""
    api.add_run(LINE[2], artifact("honest"))
    plant(api, attack)
    assert name_of(found(api)) == "honest"
    assert all(str(api.artifacts[-1]["id"]) not in str(request) for request in api.requests)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.what)
def test_alone_it_is_no_baseline_either(api, attack):
    """Whether commits can be read or not, and GitHub filters the list by name or not."""
    plant(api, attack)
    assert found(api).note.startswith("no baseline yet: ")
    api.permissions.remove("contents: read")
    api.fail("/actions/artifacts$", Answer(200, {"artifacts": api.artifacts}))
    assert found(api).note.startswith("no baseline yet: ")
    assert not api.blob_requests


def test_runs_of_pull_requests_alone_are_told_as_such(api):
    """What is met first: the artifact is there, but only of the pull request that brought the workflow."""
    api.add_run(HEAD, artifact("own"), event="pull_request", head_branch="topic")
    assert found(api) == ONLY_OTHERS


def test_there_is_an_end_to_refused_runs(api):
    """Ten are asked for, and not hundreds."""
    for _ in range(12):
        api.add_run(BASE, artifact("planted"), event="issue_comment")
    assert found(api) == ONLY_OTHERS
    assert len(api.requests_to("/actions/runs/")) == 10


def test_forks_and_expired_ones_use_up_nothing(api):
    """The list alone shows that they do not serve, however many there are: their runs are not asked for."""
    api.add_run(LINE[5], artifact("honest"))
    for _ in range(12):
        api.add_run(BASE, artifact("forked"), event="pull_request", **FORKED)
        api.add_run(BASE, artifact("old"), expired=True)
    assert name_of(found(api)) == "honest"
    assert len(api.requests_to("/actions/runs/")) == 1


# -- none


def test_before_the_first_run_of_the_base_there_is_none(api):
    """One line, and what will change it."""
    assert found(api) == NoBaseline(
        yet=True,
        reason=f"no run on main has left the artifact '{NAME}'; it is uploaded by the first run there",
    )


def test_expired_ones_are_told_as_such(api):
    """They are still listed."""
    api.add_run(BASE, artifact("old"), expired=True)
    api.add_run(HEAD, artifact("own"), event="pull_request", head_branch="topic")
    assert found(api) == NoBaseline(
        f"all artifacts '{NAME}' of main have expired; the next run there uploads a new one"
    )


def test_interrupted_run_is_skipped(api):
    """Killed, it leaves what its folder said before its end: the run before it serves."""
    unfinished = zip_of({"_results.json": json.dumps({"run": {"status": "unfinished"}}).encode()})
    api.add_run(BASE, unfinished)
    assert found(api) == NoBaseline(f"the runs of main that left the artifact '{NAME}' did not finish")
    api.add_run(LINE[2], artifact("old"))
    assert name_of(found(api)) == "old"


@pytest.mark.parametrize("status", [404, 410])
def test_expired_artifacts_are_skipped(api, status):
    """Between the list and the download: the next one serves."""
    api.add_run(LINE[2], artifact("old"))
    api.add_run(BASE, artifact("gone"))
    api.fail("/zip$", Answer(status, {"message": "gone"}))
    assert name_of(found(api)) == "old"
    api.fail("/zip$", *[Answer(status, {"message": "gone"})] * 2)
    assert "have expired" in found(api).note


def test_run_deleted_meanwhile_is_skipped(api):
    """Nobody can say any more what it was."""
    api.add_run(LINE[2], artifact("old"))
    run = api.add_run(BASE, artifact("deleted"))
    del api.runs[run["id"]]
    assert name_of(found(api)) == "old"


def test_without_the_permission_it_is_named(api):
    """The best-known complaint of all such actions."""
    api.permissions.remove("actions: read")
    assert found(api) == NoBaseline(
        "GitHub answered 403 (Resource not accessible by integration): "
        "the token lacks the permission 'actions: read'"
    )


LIMITED = Answer(
    403,
    {"message": "API rate limit exceeded"},
    {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "4102444800"},
)


@pytest.mark.parametrize("place", ["/artifacts$", "/runs/", "/zip$"])
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(404, {"message": "Not Found"}), "or the token lacks the permission 'actions: read'"),
        (Answer(401, {"message": "Bad credentials"}), "the token is not valid there"),
        (LIMITED, "the rate limit is used up"),
        (Answer(503, {"message": "Unavailable"}), "GitHub answered 503 (Unavailable)"),
        (Answer(200, raw=b"<html>"), ""),
        (Answer(200, []), ""),
        (Answer(302, None, {"Location": "http://127.0.0.1:1/nothing"}), ""),
        (Answer(302, None, {"Location": "http://[::"}), ""),
    ],
    ids=["private", "bad token", "limit", "down", "a page", "nothing", "moved", "nowhere"],
)
def test_every_error_is_one_line(api, place, answer, words):
    """At any step; of what happens at a run or a download of an artifact some means the next one."""
    api.add_run(BASE, artifact("base"))
    api.fail(place, *[answer] * 3)
    why = found(api).note
    assert why.startswith("no baseline")
    assert words in why or (answer.status == 404 and place != "/artifacts$")
    assert "sig=" not in why


def test_unreachable_github_is_reported():
    """Its host is named."""
    with github_api.serving() as server:
        pass
    why = found(server).note
    assert why.startswith("no baseline: GitHub at 127.0.0.1:")
    assert "cannot be reached" in why


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is neither a zip nor the file _results.json"),
        (artifact("x")[:-30], "is damaged, and cannot be unpacked"),
        (zip_of({"junit.xml": "<x/>"}), "holds no file _results.json; upload the one in the output folder"),
    ],
    ids=["empty", "half", "another file"],
)
def test_unreadable_artifact_is_reported_with_its_commit(api, data, words):
    """An older one is not taken in silence: the upload has to be mended."""
    api.add_run(LINE[2], artifact("old"))
    api.add_run(BASE, data)
    assert found(api) == NoBaseline(f"the artifact '{NAME}' of commit {BASE[:7]} {words}")


def test_a_file_that_was_uploaded_unzipped_serves(api):
    """As the upload step can do it."""
    api.add_run(BASE, results("plain"))
    assert name_of(found(api)) == "plain"


def test_event_without_a_base_is_reported(api):
    """A release, say; a branch can be named for it."""
    nowhere = GitHubEvent(event="release", repository=REPOSITORY)
    assert found(api, nowhere) == NoBaseline(
        "the event 'release' names no base branch; name one with baseline-branch"
    )
    assert not api.requests
    api.add_run(BASE, artifact("main"))
    api.commits["main"] = api.commits[BASE]
    assert name_of(found(api, nowhere, branch="main")) == "main"


# -- any answer

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


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


LISTED = {
    "artifacts": [
        {
            "id": 5,
            "name": NAME,
            "expired": False,
            "created_at": "2026-11-20T09:00:00Z",
            "workflow_run": {
                "id": 3,
                "repository_id": 1,
                "head_repository_id": 1,
                "head_branch": "main",
                "head_sha": BASE,
            },
        }
    ]
}
RUN = {
    "id": 3,
    "event": "push",
    "head_branch": "main",
    "head_sha": BASE,
    "repository": {"id": 1},
    "head_repository": {"id": 1},
}
COMMIT = {
    "sha": BASE,
    "parents": [{"sha": HEAD}, {"sha": LINE[2]}],
    "commit": {"committer": {"date": "2026-11-20T08:00:00Z"}},
}


@pytest.fixture(scope="module")
def any_api():
    """A server that answers what an example says."""
    with github_api.serving() as server:
        yield server


@given(spoiled(LISTED), spoiled(RUN), spoiled(COMMIT), spoiled([COMMIT]))
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
def test_every_answer_of_github_is_used_or_reported(any_api, listed, run, merge, commits):
    """Wrong kinds, missing keys: nothing is raised, and nothing is taken that no run confirms."""
    any_api.faults = []
    answers = {
        "/actions/artifacts$": listed,
        "/actions/runs/": run,
        "/commits/": merge,
        "/commits$": commits,
    }
    for place, body in answers.items():
        any_api.fail(place, *[Answer(200, body)] * 12)
    any_api.fail("/zip$", *[Answer(200, raw=results("there"))] * 12)
    outcome = found(any_api)
    if isinstance(outcome, BaselineArtifact):
        assert (outcome.commit, run["event"], run["head_repository"]["id"]) == (BASE, "push", 1)
    else:
        assert outcome.note.startswith("no baseline")
