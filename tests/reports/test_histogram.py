"""The chart of how much tests changed."""

import cases
import comment_cases
import whole_text
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.reports.markdown import baseline, documents


def drawn(*deltas: float) -> str | None:
    """The section of a comparison in which the tests' scores changed so."""
    found = cases.unproven().comparison.model_copy(update={"deltas": deltas})
    section = baseline.histogram(found)
    return section.text if section else None


def test_one_broken_flow_looks_other_than_a_slight_fall_of_everything():
    """No mean tells them apart."""
    broken = baseline._ranges([-100.0] * 8 + [5.0, -3.0, 30.0])
    assert broken[0][:2] == ["-100 to -80", "-80 to -60"]
    assert broken[1] == [8, 0, 0, 0, 1, 1, 1]
    labels, bars = baseline._ranges([-9.0] * 4 + [-6.5] * 5 + [-1.0])
    assert (labels[0], labels[-1]) == ("-9 to -8", "-1 to 0")
    assert bars == [4, 0, 5, 0, 0, 0, 0, 0, 1]


def test_a_change_on_a_border_is_the_smaller_one():
    """Of binary arithmetic's making too: 20 points are 20 points."""
    labels, bars = baseline._ranges([-100.0, -20.000000000001, -19.999999999999, -20.0, 40.0])
    assert dict(zip(labels, bars, strict=True))["-20 to 0"] == 3
    assert dict(zip(labels, bars, strict=True))["+20 to +40"] == 1


@given(st.lists(st.floats(-100, 100).filter(lambda delta: abs(delta) > 1e-6), min_size=1))
def test_every_change_is_in_one_bar(changes):
    """And there are few enough bars to be read."""
    labels, bars = baseline._ranges(changes)
    assert sum(bars) == len(changes)
    assert len(labels) == len(bars) == len(set(labels)) <= 12


def test_few_changes_need_no_chart():
    """A list says it all; what did not change is no change."""
    assert drawn(*[-5.0] * 9, *[0.0] * 50) is None
    assert "10 fell, 0 rose, 50 did not change" in drawn(*[-5.0] * 10, *[0.0] * 50)
    assert baseline.histogram(None) is None


def test_the_comparison_tells_how_every_test_changed():
    """Also of tests that neither passed before nor fell far."""
    found = comment_cases.bad().comparison
    assert len(found.deltas) == found.tests
    assert abs(sum(found.deltas) / found.tests - found.delta) < 1e-9
    assert list(found.deltas) == sorted(found.deltas)
    assert "xychart-beta" in documents.comparison(comment_cases.bad())


def test_the_chart_is_in_the_runs_reports_and_in_no_suites():
    """Which change belongs to which suite is not told."""
    results = comment_cases.bad()
    assert documents.summary(results).count("```mermaid") == 1
    texts = [text for path, text in whole_text.files(results).items() if path.endswith("_summary.md")]
    assert not [text for text in texts if "mermaid" in text]
