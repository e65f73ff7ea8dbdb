"""What holds for every kind of strict check, also for those that come."""

import builders as build
import pytest
from every_evaluation import EVALUATIONS
from pydantic import TypeAdapter

from ci_evals.domain.checks.evaluation import STRICT_CHECKS, Strict
from ci_evals.domain.checks.strict_check import StrictCheck
from ci_evals.domain.transcript import EndState, Transcript
from ci_evals.domain.verdict import Outcome

CHECKS = {
    name: TypeAdapter(Strict).validate_python({"criterion": "c", **form})
    for name, form in EVALUATIONS.items()
    if "strict" in form
}
OF_TRACES = {name: check for name, check in CHECKS.items() if check.evidence() is not None}


def kinds_below(base):
    """All classes below one that have a name of their own in suites."""
    for kind in base.__subclasses__():
        if "strict" in kind.model_fields:
            yield kind
        yield from kinds_below(kind)


def test_every_kind_is_in_a_family():
    """A kind that no family lists is one that no suite can name."""
    assert {*kinds_below(StrictCheck)} == {*STRICT_CHECKS}
    assert len({kind.kind() for kind in STRICT_CHECKS}) == len(STRICT_CHECKS)


@pytest.mark.parametrize("name", OF_TRACES)
def test_without_its_evidence_a_check_is_undecided(name):
    """It neither passes nor fails if no reply reports what it looks at."""
    nothing = dict.fromkeys(("workflows", "params", "rules", "integrations", "error_response"))
    turns = tuple(build.turn(number, **nothing) for number in (1, 2))
    check = OF_TRACES[name]
    evidence = check.evidence()
    assert [evidence.of(turn) for turn in turns] == [None, None]
    verdict = check.decide(Transcript(turns=turns, status=EndState.COMPLETED))
    assert verdict.outcome is Outcome.UNDECIDED, verdict


@pytest.mark.parametrize("name", CHECKS)
def test_without_a_reply_a_check_is_undecided(name):
    """Nothing is known then."""
    verdict = CHECKS[name].decide(Transcript(turns=(), status=EndState.FAILED, unanswered=1))
    assert verdict.outcome is Outcome.UNDECIDED
    assert set(CHECKS[name].undone_by([3, 4])) <= {3, 4}
