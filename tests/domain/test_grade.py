from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from ci_evals.domain.results.trial import passed_share
from ci_evals.domain.verdict import DimensionGrade, Finding, Grade, Outcome

CODING = {
    "correctness": 0.40, "code_quality": 0.20, "efficiency": 0.15, "error_handling": 0.15,
    "process_quality": 0.10,
}  # fmt: skip


def grade(scores: dict[str, float], weights: dict[str, float] = CODING, pass_at: float = 0.7) -> Grade:
    dimensions = (
        DimensionGrade(name=name, level="l", score=score, weight=weights[name], reason="r")
        for name, score in scores.items()
    )
    return Grade.of(pass_at, tuple(dimensions))


def rubric_evaluate(scores: dict[str, float], rubric: dict[str, float]) -> float:
    """The lecture's formula, in floats: the weighted mean of the scores that are there."""
    total = sum(scores[name] * weight for name, weight in rubric.items() if name in scores)
    total_weight = sum(weight for name, weight in rubric.items() if name in scores)
    return total / total_weight if total_weight > 0 else 0.0


def finding(graded: Grade | None, outcome: Outcome, weight: float = 1) -> Finding:
    return Finding(criterion="c", kind="judged", outcome=outcome, reason="r", weight=weight, grade=graded)


levels = st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.7, 0.75, 1.0])
weights = st.sampled_from([0.1, 0.15, 0.4, 1.0, 3.0, 7.25])
dimensions = st.lists(st.tuples(levels, weights), min_size=1, max_size=6)


def grade_of(pairs: list[tuple[float, float]], pass_at: float = 0.7) -> Grade:
    """The grade of dimensions with these scores and weights."""
    scores, weights = ({str(i): pair[part] for i, pair in enumerate(pairs)} for part in (0, 1))
    return grade(scores, weights, pass_at)


def test_grade_is_the_exact_weighted_mean_and_compared_without_rounding_error():
    scores = dict(zip(CODING, [0.75, 1, 0.5, 0.5, 1], strict=True))
    assert grade(scores).exact() == Fraction("0.75")
    tenths = [(1, 0.1), (1, 0.2), (0, 0.7)]
    assert grade_of(tenths, pass_at=0.3).passes()
    assert 0.1 + 0.2 > 0.3
    assert grade_of([(0.7, 0.1), (0.7, 0.2)]).passes()
    assert not grade_of([(0.7, 0.1), (0.7, 0.2)], pass_at=0.7000000000000001).passes()


@given(st.tuples(*[levels] * 5))
def test_grade_equals_weighted_mean_computed_in_floats(scores):
    by_name = dict(zip(CODING, scores, strict=True))
    assert abs(grade(by_name).score - rubric_evaluate(by_name, CODING)) < 1e-12


@given(dimensions, st.randoms())
def test_grade_lies_between_lowest_and_highest_score_in_any_order_of_dimensions(pairs, luck):
    scores = [score for score, _ in pairs]
    assert 0 <= min(scores) <= grade_of(pairs).score <= max(scores) <= 1
    mixed = luck.sample(pairs, len(pairs))
    assert grade_of(mixed).exact() == grade_of(pairs).exact()
    assert grade_of(mixed).score == grade_of(pairs).score


@given(dimensions, st.data())
def test_better_level_never_lowers_the_grade(pairs, data):
    place = data.draw(st.integers(0, len(pairs) - 1))
    better = max(pairs[place][0], data.draw(levels))
    raised = [(better, weight) if i == place else (score, weight) for i, (score, weight) in enumerate(pairs)]
    assert grade_of(raised).exact() >= grade_of(pairs).exact()
    assert grade_of(raised).passes() or not grade_of(pairs).passes()


def test_grade_counts_with_its_weight_in_the_score_of_the_trial():
    whole = finding(None, Outcome.PASSED, 1)
    part = finding(grade_of([(0.1, 0.1), (0.3, 0.2)]), Outcome.FAILED, 3)
    assert passed_share([whole, part]) == 100 * (1 + 3 * Fraction(7, 30)) / 4
    undecided = finding(grade_of([(1, 1)]), Outcome.UNDECIDED)
    assert passed_share([whole, undecided]) == 50


@given(dimensions, st.lists(st.tuples(st.booleans(), weights), max_size=4))
def test_score_with_a_grade_lies_between_failed_and_passed(pairs, others):
    others = [finding(None, Outcome.PASSED if ok else Outcome.FAILED, weight) for ok, weight in others]
    graded = finding(grade_of(pairs), Outcome.FAILED)
    failed, passed = finding(None, Outcome.FAILED), finding(None, Outcome.PASSED)
    low, middle, high = (passed_share([*others, one]) for one in (failed, graded, passed))
    assert low <= middle <= high
