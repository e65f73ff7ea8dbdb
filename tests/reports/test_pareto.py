"""Which runs are worth their cost."""

from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.reports.page.charts.quality import PricedRun, frontier

A, B, C, D, E = (
    PricedRun(name, cost, score)
    for name, score, cost in (
        ("A", 95, 1.50),
        ("B", 90, 0.80),
        ("C", 85, 0.40),
        ("D", 80, 0.30),
        ("E", 70, 0.90),
    )
)


def names(found) -> str:
    return "".join(one.name for one in found)


def test_frontier_of_five_agents_excludes_the_dominated_one():
    """The exercise of the lecture on evaluation: E costs more than B, C and D, and is worse than all."""
    assert names(frontier([A, B, C, D, E])) == "DCBA"
    assert [one.name for one in (A, B, C, D) if one.dominates(E)] == ["B", "C", "D"]


@each_row(
    ("runs", "best"),
    [
        ([], ""),
        ([("a", 1, 50)], "a"),
        ([("a", 1, 50), ("b", 1, 50)], "ab"),
        ([("a", 1, 50), ("b", 1, 60)], "b"),
        ([("a", 1, 50), ("b", 2, 50)], "a"),
        ([("a", 0, 0), ("b", 5, 100)], "ab"),
    ],
)
def test_frontier_keeps_equal_runs_and_breaks_ties_by_the_other_value(runs, best):
    assert names(frontier(PricedRun(*one) for one in runs)) == best


candidates = st.lists(
    st.builds(PricedRun, st.text(max_size=1), st.sampled_from([0.0, 0.1, 0.5, 2.0]), st.integers(0, 4)),
    max_size=8,
)


@given(candidates)
def test_frontier_contains_exactly_the_undominated_runs(found):
    best = frontier(found)
    for one in found:
        assert (one in best) is not any(other.dominates(one) for other in found)
    assert list(map(id, best)) == list(map(id, sorted(best, key=lambda one: (one.cost, -one.score))))
