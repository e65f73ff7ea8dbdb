from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from ci_evals.domain.results.trial import passed_share
from ci_evals.domain.verdict import DimensionGrade, Finding, Grade, Outcome

# The rubric for coding tasks of the lecture among the project's sources: weights by dimension.
CODING = {
    "correctness": 0.40,
    "code_quality": 0.20,
    "efficiency": 0.15,
    "error_handling": 0.15,
    "process_quality": 0.10,
}


def grade(scores: dict[str, float], weights: dict[str, float] = CODING, pass_at: float = 0.7) -> Grade:
    return Grade.of(
        pass_at,
        tuple(
            DimensionGrade(name=name, level="l", score=score, weight=weights[name], reason="r")
            for name, score in scores.items()
        ),
    )


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


def of(pairs: list[tuple[float, float]], pass_at: float = 0.7) -> Grade:
    return grade(
        {str(i): score for i, (score, _) in enumerate(pairs)},
        {str(i): weight for i, (_, weight) in enumerate(pairs)},
        pass_at,
    )


def test_the_lectures_formula():
    """The grade is what it comes to, but exactly."""
    scores = dict(zip(CODING, [0.75, 1, 0.5, 0.5, 1], strict=True))
    assert grade(scores).exact() == Fraction("0.75")
    assert abs(grade(scores).score - rubric_evaluate(scores, CODING)) < 1e-12


@given(st.tuples(*[levels] * 5))
def test_the_lectures_formula_for_any_scores(scores):
    """In floats, as the lecture has it, they differ by nothing that shows."""
    result = dict(zip(CODING, scores, strict=True))
    assert abs(grade(result).score - rubric_evaluate(result, CODING)) < 1e-12


def test_a_threshold_is_reached_exactly():
    """By the numbers as they were written: three tenths of floats would fall short of it, or pass it."""
    tenths = [(1, 0.1), (1, 0.2), (0, 0.7)]
    assert of(tenths, pass_at=0.3).passes()
    assert 0.1 + 0.2 > 0.3
    assert of([(0.7, 0.1), (0.7, 0.2)]).passes()
    assert not of([(0.7, 0.1), (0.7, 0.2)], pass_at=0.7000000000000001).passes()


@given(dimensions)
def test_a_grade_lies_between_its_scores(pairs):
    """And so between nothing and all."""
    scores = [score for score, _ in pairs]
    assert 0 <= min(scores) <= of(pairs).score <= max(scores) <= 1


@given(dimensions, st.data())
def test_a_better_level_never_lowers_the_grade(pairs, data):
    """In any dimension."""
    place = data.draw(st.integers(0, len(pairs) - 1))
    better = max(pairs[place][0], data.draw(levels))
    raised = [(better, weight) if i == place else (score, weight) for i, (score, weight) in enumerate(pairs)]
    assert of(raised).exact() >= of(pairs).exact()
    assert of(raised).passes() or not of(pairs).passes()


@given(dimensions, st.randoms())
def test_the_order_of_dimensions_does_not_matter(pairs, luck):
    """Nor does it change the last digit."""
    mixed = luck.sample(pairs, len(pairs))
    assert of(mixed).exact() == of(pairs).exact()
    assert of(mixed).score == of(pairs).score


def test_a_grade_counts_in_the_score_of_the_trial():
    """With weight times grade, in place of weight times one or nothing; what is undecided counts nothing."""
    whole = finding(None, Outcome.PASSED, 1)
    part = finding(of([(0.1, 0.1), (0.3, 0.2)]), Outcome.FAILED, 3)
    assert passed_share([whole, part]) == 100 * (1 + 3 * Fraction(7, 30)) / 4
    undecided = finding(of([(1, 1)]), Outcome.UNDECIDED)
    assert passed_share([whole, undecided]) == 50


@given(dimensions, st.lists(st.tuples(st.booleans(), weights), max_size=4))
def test_a_graded_score_lies_between_failed_and_passed(pairs, others):
    """Whatever stands beside it."""
    beside = [finding(None, Outcome.PASSED if ok else Outcome.FAILED, weight) for ok, weight in others]
    low, mid, high = (
        passed_share([*beside, one])
        for one in (
            finding(None, Outcome.FAILED),
            finding(of(pairs), Outcome.FAILED),
            finding(None, Outcome.PASSED),
        )
    )
    assert low <= mid <= high
