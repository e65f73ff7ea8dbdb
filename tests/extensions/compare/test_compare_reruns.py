"""`compare` decides a run that pools reruns at that run's level, and not without attempts that are unread."""

import builders as build
import pytest
import report_texts
from plans import trial

from ci_evals.cli.app import invoke
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.results.run import Reruns, UnpooledRun

UNREAD = UnpooledRun(source="attempt 1 of run 7", why="its artifact has expired", unread=True)


def store(folder, outcome: str, reruns: Reruns | None = None):
    """Results of twenty tests, three trials each: in every second test one trial came to this."""
    tests = []
    for number in range(20):
        outcomes = ("passed", "passed", outcome if number % 2 else "passed")
        trials = tuple(trial(each, index=index) for index, each in enumerate(outcomes, start=1))
        tests.append(build.test_result(f"Test {number}", trials=trials))
    info = build.run_info(id=folder.name, reruns=reruns)
    folder.mkdir()
    results = build.results(build.suite_result("S", *tests), run=info)
    (folder / "_results.json").write_text(report_texts.results_json_text(results))
    return str(folder)


@pytest.mark.parametrize(
    ("outcome", "reruns", "code"),
    [
        ("failed", None, 1),
        ("failed", Reruns(level=0.045), 1),
        ("failed", Reruns(level=1e-12), 0),
        ("passed", Reruns(level=0.045), 0),
        ("passed", Reruns(level=0.045, not_pooled=(UNREAD,)), 3),
        ("failed", Reruns(level=0.045, not_pooled=(UNREAD,)), 1),
    ],
    ids=["no reruns", "first attempt", "level spent", "no drop", "unread attempt", "drop and unread attempt"],
)
def test_compare_uses_recorded_significance_level_and_needs_all_attempts(tmp_path, outcome, reruns, code):
    head, base = store(tmp_path / "head", outcome, reruns), store(tmp_path / "base", "passed")
    with pytest.raises(SystemExit) as ended:
        invoke(["compare", head, base, "--regression=significant"], RunContext({}))
    assert ended.value.code == code
