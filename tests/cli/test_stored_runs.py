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
    info = build.run_info(id=name, started_at=build.STARTED_AT + timedelta(days=day))
    parts = [build.suite_result(suite, file=f"evals/{suite}.json") for suite in suites or ("Refunds",)]
    return build.results(*parts, run=info)


def store(folder, results: Results) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_results.json").write_text(report_texts.results_json_text(results))


def ids(folder) -> list[str]:
    return [results.run.id for results in read_stored_runs(folder).runs]


def test_stored_runs_are_unique_and_ordered_by_start_in_any_folder(tmp_path):
    """Two runs of `gate` on equal files have one id: runs with other starts are other runs."""
    folders = (("b", 1), ("a", 3), ("run-7/ci-evals-results-default", 2), ("", 4), ("c", 4))
    for folder, day in (*folders, ("results/Refunds/time", 4)):
        store(tmp_path / folder, run(f"run {day}", day))
    assert ids(tmp_path) == ["run 1", "run 2", "run 3", "run 4"]
    starts = [run("one", day).run.started_at for day in (5, 6)]
    store(tmp_path / "d", run("one", 6))
    store(tmp_path / "e", run("one", 5))
    stored = read_stored_runs(tmp_path)
    assert [results.run.started_at for results in stored.runs[4:]] == starts
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


def test_unreadable_linked_and_earlier_result_files_are_reported_and_skipped(tmp_path):
    store(tmp_path / "good", run("one"))
    for name in ("broken", "link", "old"):
        (tmp_path / name).mkdir()
    (tmp_path / "broken" / "_results.json").write_text('{"schemaVersion": 3')
    (tmp_path / "link" / "_results.json").symlink_to(tmp_path / "good" / "_results.json")
    (tmp_path / "loop").symlink_to(tmp_path)
    text = report_texts.results_json_text(run("one")).replace('"schemaVersion": 3', '"schemaVersion": 2')
    assert '"schemaVersion": 2' in text
    (tmp_path / "old" / "_results.json").write_text(text)
    stored = read_stored_runs(tmp_path)
    assert [results.run.id for results in stored.runs] == ["one"]
    named = {one.file.parent.name: one.why for one in stored.left_out}
    reasons = {"broken": "not JSON", "link": "is a link", "old": "earlier version"}
    assert named.keys() == reasons.keys()
    assert [name for name, reason in reasons.items() if reason not in named[name]] == []


def test_folder_without_results_is_rejected(tmp_path):
    for name in ("", "missing"):
        with pytest.raises(UsageError, match=r"no such folder|contains no _results\.json"):
            read_stored_runs(tmp_path / name)


def test_history_ends_with_the_baseline_and_rejects_an_unreadable_file(tmp_path):
    """A missing run may change the decision."""
    newest = run("two", 2)
    for name, results in {"a": run("one", 1), "b": newest, "c": run("three", 3)}.items():
        store(tmp_path / name, results)
    history = history_in(tmp_path, newest)
    assert ([results.run.id for results in history.runs], history.left_out) == (["one", "two"], 1)
    (tmp_path / "b" / "_results.json").write_text("[]")
    with pytest.raises(UsageError, match="schemaVersion"):
        history_in(tmp_path, newest)


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
