"""The runs of a folder, however artifacts and output folders lay them out."""

from dataclasses import replace
from datetime import timedelta

import builders as build
import pytest
import report_texts

from ci_evals.cli.files.stored_runs import history_in, read_stored_runs
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Git, Origin, PooledRun, Results


def run(name: str, day: int = 0, *suites: str) -> Results:
    """A run of these suites, begun so many days later."""
    info = build.run_info(id=name, started_at=build.STARTED_AT + timedelta(days=day))
    parts = [build.suite_result(suite, file=f"evals/{suite}.json") for suite in suites or ("Refunds",)]
    return build.results(*parts, run=info)


def store(folder, results: Results) -> None:
    """Write results as a run leaves them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_results.json").write_text(report_texts.results_json_text(results))


def ids(folder) -> list[str]:
    """The runs of a folder by their ids."""
    return [results.run.id for results in read_stored_runs(folder).runs]


def test_runs_come_oldest_first_whatever_their_folders_are_called(tmp_path):
    """Names of artifacts say nothing of time."""
    store(tmp_path / "b", run("first", 1))
    store(tmp_path / "a", run("third", 3))
    store(tmp_path / "run-7" / "ci-evals-results-default", run("second", 2))
    store(tmp_path, run("fourth", 4))
    assert ids(tmp_path) == ["first", "second", "third", "fourth"]


def test_same_run_twice_counts_once(tmp_path):
    """As an artifact, and once more in the output folder."""
    store(tmp_path / "a", run("one"))
    store(tmp_path / "b", run("one"))
    store(tmp_path / "results" / "Refunds" / "time", run("one"))
    assert ids(tmp_path) == ["one"]


def test_runs_of_one_id_that_began_at_different_times_are_two(tmp_path):
    """Two runs of `gate` on equal files have one id."""
    first, second = run("one", 1), run("one", 2)
    store(tmp_path / "a", second)
    store(tmp_path / "b", first)
    stored = read_stored_runs(tmp_path)
    assert [results.run.started_at for results in stored.runs] == [
        first.run.started_at,
        second.run.started_at,
    ]
    assert not stored.left_out


def test_run_is_put_together_from_the_files_of_its_suites(tmp_path):
    """An output folder keeps only those of earlier runs: `results/SUITE/TIME`."""
    whole = run("one", 0, "Billing", "Refunds")
    for suite in whole.suites:
        store(tmp_path / "results" / suite.name / "time", replace(whole, suites=(suite,)))
    (found,) = read_stored_runs(tmp_path).runs
    assert [suite.name for suite in found.suites] == ["Billing", "Refunds"]
    assert found.counts.tests == 2


def test_whole_run_is_used_rather_than_the_file_of_a_suite(tmp_path):
    """Its suites are not counted twice."""
    whole = run("one", 0, "Billing", "Refunds")
    store(tmp_path / "Billing" / "time", replace(whole, suites=whole.suites[:1]))
    store(tmp_path, whole)
    (found,) = read_stored_runs(tmp_path).runs
    assert found == whole


def test_broken_and_hostile_files_are_named_and_left_out(tmp_path):
    """The others still count."""
    store(tmp_path / "good", run("one"))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "_results.json").write_text('{"schemaVersion": 3')
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "_results.json").symlink_to(tmp_path / "good" / "_results.json")
    (tmp_path / "loop").symlink_to(tmp_path)
    stored = read_stored_runs(tmp_path)
    assert [results.run.id for results in stored.runs] == ["one"]
    named = {one.file.parent.name: one.why for one in stored.left_out}
    assert named.keys() == {"broken", "link"}
    assert "not JSON" in named["broken"]
    assert "is a link" in named["link"]


def test_results_of_the_version_before_are_read_only_if_wanted(tmp_path):
    """Baselines and histories may be old; what decides by itself may not."""
    text = report_texts.results_json_text(run("one")).replace('"schemaVersion": 3', '"schemaVersion": 2')
    assert '"schemaVersion": 2' in text
    (tmp_path / "_results.json").write_text(text)
    (left,) = read_stored_runs(tmp_path).left_out
    assert "earlier version" in left.why


@pytest.mark.parametrize("name", ["", "missing"])
def test_folder_without_results_is_refused(tmp_path, name):
    """With what should be there."""
    with pytest.raises(UsageError, match=r"no such folder|contains no _results\.json"):
        read_stored_runs(tmp_path / name)


def test_history_ends_with_the_run_that_is_compared_with(tmp_path):
    """Also if the folder holds it too, and newer runs."""
    newest = run("two", 2)
    store(tmp_path / "a", run("one", 1))
    store(tmp_path / "b", newest)
    store(tmp_path / "c", run("three", 3))
    history = history_in(tmp_path, newest)
    assert [results.run.id for results in history.runs] == ["one", "two"]
    assert history.left_out == 1


MAIN = {"git": Git(ref="refs/heads/main")}


@pytest.mark.parametrize(
    ("fields", "counts"),
    [
        (MAIN, True),
        ({"git": Git(ref="refs/heads/feature")}, False),
        ({"git": Git(ref="refs/heads/main", pull_request=7)}, False),
        ({"git": Git()}, False),
        (MAIN | {"status": "interrupted"}, False),
        (MAIN | {"status": "unfinished"}, False),
        (MAIN | {"origin": Origin(how="rejudge", run="run-0", started_at=build.STARTED_AT)}, False),
        (MAIN | {"shard": build.shard()}, False),
        (MAIN | {"pooled": (PooledRun(run="run-0", trials=3, started_at=build.STARTED_AT),)}, False),
    ],
    ids=[
        "of the branch",
        "another branch",
        "pull request",
        "no branch",
        "interrupted",
        "unfinished",
        "rejudged",
        "shard",
        "pooled",
    ],
)
def test_only_whole_runs_of_the_branch_are_its_history(tmp_path, fields, counts):
    def of(name: str, day: int, **info) -> Results:
        started = build.STARTED_AT + timedelta(days=day)
        return build.results(run=build.run_info(id=name, started_at=started, **info))

    store(tmp_path, of("earlier", 1, **fields))
    history = history_in(tmp_path, of("newest", 2, **MAIN))
    assert [results.run.id for results in history.runs] == ["earlier"] * counts + ["newest"]
    assert history.left_out == (not counts)


def test_a_baseline_that_names_no_branch_has_runs_of_all_branches_but_not_of_pull_requests(tmp_path):
    day = build.STARTED_AT - timedelta(days=1)
    for name, git in {"main": MAIN["git"], "pull": Git(pull_request=7)}.items():
        store(tmp_path / name, build.results(run=build.run_info(id=name, started_at=day, git=git)))
    history = history_in(tmp_path, run("newest"))
    assert [results.run.id for results in history.runs] == ["main", "newest"]


def test_history_with_a_file_that_cannot_be_read_is_refused(tmp_path):
    """A run less may change the decision."""
    store(tmp_path / "a", run("one", 1))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "_results.json").write_text("[]")
    with pytest.raises(UsageError, match="schemaVersion"):
        history_in(tmp_path, run("two", 2))
