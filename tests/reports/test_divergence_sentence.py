"""Where a conversation parts from the baseline's, in a sentence."""

from dataclasses import replace

from each_row import each_row

from ci_evals.domain.actions import LogicKind
from ci_evals.domain.results.comparison import Divergence, DivergentAction
from ci_evals.reports.story import changes

RAN = DivergentAction(kind=LogicKind.WORKFLOW, name="RETURN_REQUEST")
UNDERSTOOD = DivergentAction(kind=LogicKind.PARAMETER, name="amount", value=5)
APPLIED = DivergentAction(kind=LogicKind.RULE, name="window-open")
CALLED = DivergentAction(kind=LogicKind.INTEGRATION, name="orders", value=503)
ASKED = DivergentAction(kind=LogicKind.INTEGRATION, name="faq")
USER_DIFFERS = "The user's message differs in turn 2."
GONE = "there it ran RETURN_REQUEST; now it did not."
ALL_GONE = "there it ran RETURN_REQUEST, understood amount as 5 and called orders (status 503)"


TURN_2 = "Diverges from the baseline in turn 2:"


def sentence_of(turn: int | None = 2, *, head=(), base=(), trials=(1, 1), **fields) -> str:
    here, there = trials
    where = Divergence(turn=turn, head_trial=here, base_trial=there, head=head, base=base, **fields)
    return changes.divergence_sentence(where)


@each_row(("sentence", "expected"), [
    (sentence_of(None, agent_differs=2, unknown=(1, 3)),
     "Same steps as the baseline as far as known: one of them does not report turns 1, 3."),
    (sentence_of(base=(RAN,)), f"{TURN_2} {GONE}"),
    (sentence_of(head=(RAN,)), f"{TURN_2} now it ran RETURN_REQUEST; there it did not."),
    (sentence_of(head=(APPLIED, ASKED), base=(RAN, UNDERSTOOD, CALLED)),
     f"{TURN_2} {ALL_GONE}; now it applied window-open and called faq."),
    (sentence_of(base=(RAN,), trials=(3, 1), user_differs=1),
     f"Trial 3 diverges from trial 1 of the baseline in turn 2: {GONE} {USER_DIFFERS[:-2]}1."),
    (sentence_of(base=(RAN,), only="base"),
     "Ends before turn 2 of the baseline: there it ran RETURN_REQUEST."),
    (sentence_of(only="base"), "Ends before turn 2 of the baseline."),
    (sentence_of(only="head"), "Continues where the baseline ended: in turn 2 it only spoke."),
    (sentence_of(head=(ASKED,), only="head", trials=(2, 3)),
     "Trial 2 continues where trial 3 of the baseline ended: in turn 2 it called faq."),
    (sentence_of(None, agent_differs=2), "Same steps as the baseline; the answer changed in turn 2."),
    (sentence_of(None, agent_differs=2, user_differs=2),
     f"Same steps as the baseline; the answer changed in turn 2. {USER_DIFFERS}"),
    (sentence_of(None, user_differs=2), f"Same steps and answers as the baseline. {USER_DIFFERS}"),
    (sentence_of(None, trials=(2, 1)),
     "Trial 2: same conversation as trial 1 of the baseline, word for word: only the verdict differs."),
    (sentence_of(head=(RAN,), user_differs=2),
     f"{TURN_2} now it ran RETURN_REQUEST; there it did not. The user's message differs there too."),
])  # fmt: skip
def test_divergence_names_first_the_missing_then_the_new_actions(sentence, expected):
    assert sentence == expected


def test_long_divergence_is_shortened():
    many = tuple(DivergentAction(kind=LogicKind.RULE, name=f"r{i}") for i in range(12))
    assert "applied r0, r1, r2 and 9 more;" in sentence_of(head=many)
    long_value = sentence_of(head=(replace(UNDERSTOOD, value="x" * 900),))
    assert f"amount as {'x' * 39}…;" in long_value
    assert 'amount as ["é", null];' in sentence_of(head=(replace(UNDERSTOOD, value=["é", None]),))


def test_divergence_sentence_formats_names_and_values_with_given_function():
    where = Divergence(head_trial=1, base_trial=1, turn=1, head=(RAN, UNDERSTOOD))
    sentence = changes.divergence_sentence(where, "<{}>".format)
    assert "ran <RETURN_REQUEST> and understood <amount> as <5>;" in sentence
