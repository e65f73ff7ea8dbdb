"""Stored runs in a folder, in every layout of artifacts and output folders."""

from dataclasses import replace
from datetime import timedelta

import builders as build
import pytest
import report_texts
from each_row import each_row

from ci_evals.cli.files.stored_runs import history_in, read_stored_runs
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Git, Origin, PooledRun, Results


def run(name: str, day: int = 0, *suites: str) -> Results:
    """A run of these suites, with its start shifted by days."""
    info = build.run_info(id=name, started_at=build.STARTED_AT + timedelta(days=day))
    parts = [build.suite_result(suite, file=f"evals/{suite}.json") for suite in suites or ("Refunds",)]
    return build.results(*parts, run=info)


def store(folder, results: Results) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_results.json").write_text(report_texts.results_json_text(results))


def ids(folder) -> list[str]:
    return [results.run.id for results in read_stored_runs(folder).runs]


def test_stored_runs_are_unique_and_ordered_by_start_in_any_folder(tmp_path):
    store(tmp_path / "b", run("first", 1))
    store(tmp_path / "a", run("third", 3))
    store(tmp_path / "run-7" / "ci-evals-results-default", run("second", 2))
    store(tmp_path, run("fourth", 4))
    store(tmp_path / "c", run("fourth", 4))
    store(tmp_path / "results" / "Refunds" / "time", run("fourth", 4))
    assert ids(tmp_path) == ["first", "second", "third", "fourth"]


def test_runs_with_same_id_but_different_starts_are_separate_runs(tmp_path):
    """Two runs of `gate` on equal files have one id."""
    starts = [run("one", day).run.started_at for day in (1, 2)]
    store(tmp_path / "a", run("one", 2))
    store(tmp_path / "b", run("one", 1))
    stored = read_stored_runs(tmp_path)
    assert [results.run.started_at for results in stored.runs] == starts
    assert not stored.left_out


def test_run_is_assembled_from_files_of_its_suites_unless_whole_file_exists(tmp_path):
    """An output folder keeps only those of earlier runs: `results/SUITE/TIME`."""
    whole = run("one", 0, "Billing", "Refunds")
    for suite in whole.suites:
        store(tmp_path / "results" / suite.name / "time", replace(whole, suites=(suite,)))
    (result,) = read_stored_runs(tmp_path).runs
    assert [suite.name for suite in result.suites] == ["Billing", "Refunds"]
    assert result.counts.tests == 2
    store(tmp_path, whole)
    assert read_stored_runs(tmp_path).runs == (whole,)


def test_unreadable_and_linked_result_files_are_reported_and_skipped(tmp_path):
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


def test_stored_results_of_earlier_version_are_skipped(tmp_path):
    text = report_texts.results_json_text(run("one")).replace('"schemaVersion": 3', '"schemaVersion": 2')
    assert '"schemaVersion": 2' in text
    (tmp_path / "_results.json").write_text(text)
    (left,) = read_stored_runs(tmp_path).left_out
    assert "earlier version" in left.why


def test_folder_without_results_is_rejected(tmp_path):
    for name in ("", "missing"):
        with pytest.raises(UsageError, match=r"no such folder|contains no _results\.json"):
            read_stored_runs(tmp_path / name)


def test_history_ends_with_the_baseline(tmp_path):
    newest = run("two", 2)
    store(tmp_path / "a", run("one", 1))
    store(tmp_path / "b", newest)
    store(tmp_path / "c", run("three", 3))
    history = history_in(tmp_path, newest)
    assert [results.run.id for results in history.runs] == ["one", "two"]
    assert history.left_out == 1


MAIN = {"git": Git(ref="refs/heads/main")}


@each_row(
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
)
def test_history_contains_only_complete_runs_of_the_branch(tmp_path, fields, counts):
    def of(name: str, day: int, **info) -> Results:
        started = build.STARTED_AT + timedelta(days=day)
        return build.results(run=build.run_info(id=name, started_at=started, **info))

    store(tmp_path, of("earlier", 1, **fields))
    history = history_in(tmp_path, of("newest", 2, **MAIN))
    assert [results.run.id for results in history.runs] == ["earlier"] * counts + ["newest"]
    assert history.left_out == (not counts)


def test_history_without_branch_contains_all_branches_but_no_pull_requests(tmp_path):
    day = build.STARTED_AT - timedelta(days=1)
    for name, git in {"main": MAIN["git"], "pull": Git(pull_request=7)}.items():
        store(tmp_path / name, build.results(run=build.run_info(id=name, started_at=day, git=git)))
    history = history_in(tmp_path, run("newest"))
    assert [results.run.id for results in history.runs] == ["main", "newest"]


def test_history_with_unreadable_file_is_rejected(tmp_path):
    """A missing run may change the decision."""
    store(tmp_path / "a", run("one", 1))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "_results.json").write_text("[]")
    with pytest.raises(UsageError, match="schemaVersion"):
        history_in(tmp_path, run("two", 2))
