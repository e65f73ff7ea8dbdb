"""`/evaluate`: grades what was said so far by the criteria of a test."""

from contextlib import AsyncExitStack

from ci_evals.domain.checks.evaluation import Judged
from ci_evals.domain.errors import UsageError
from ci_evals.domain.suite import PlannedTurn, Suite
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import Cause, Finding, Verdict
from ci_evals.grading.grade import NO_JUDGE, grade
from ci_evals.grading.judge import Judge
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.functions import function_caller
from ci_evals.wiring.models import RunModels


async def evaluate(
    suite: Suite, transcript: Transcript, connections: Connections, redactor: Redactor
) -> tuple[Finding, ...]:
    """Return the verdicts on the criteria of a suite's only test.

    Without a key nothing is judged. The world is looked up only after a conversation, so checks of it are
    undecided.
    """
    [test] = suite.tests
    said = tuple(PlannedTurn(user=turn.user) for turn in transcript.turns)
    async with AsyncExitStack() as stack:
        judge: Judge | Verdict = NO_JUDGE
        if not connections.offline and any(isinstance(one, Judged) for one in test.evaluations):
            models = RunModels(connections, redactor, stack, "chat")
            try:
                llms = [models.judge(name) for name in connections.models(suite).judges]
            except UsageError as error:
                judge = Verdict.undecided(Cause.NO_JUDGE, str(error))
            else:
                judge = Judge(llms, redactor)
        call = function_caller(connections.environ, redactor)
        found = await grade(test, said, transcript, judge, call_function=call)
    return tuple(redactor.model(one) for one in found)
