"""Real conversations as a run: each is a test, and its drafted checks are graded. Nothing is played."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ci_evals.domain.results.run import Results
from ci_evals.domain.results.usage import Latency
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply, Turn
from ci_evals.extension_support.drafting.conversation import RecordedConversation
from ci_evals.extension_support.drafting.draft import DraftedTest
from ci_evals.extensions.importers.imported import ImportedSuite, suite_text
from ci_evals.gate.policy import Policy
from ci_evals.job import Job, RunFacts, evaluate
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load
from ci_evals.planning.selection import Selection, plan
from ci_evals.runner import Options, Participants
from ci_evals.support.redaction import Redactor

_FILE = "conversations.json"
_BY_CONSTRUCTION = (
    "the checks were drafted from these conversations, so all of them pass: the score says nothing of the "
    "agent before people have added criteria"
)
_NO_TIMES = "the file has no times: the latency of this run is unknown"


async def results_of(
    conversations: Sequence[RecordedConversation],
    drafts: Sequence[DraftedTest],
    imported: ImportedSuite,
    form: str,
    redactor: Redactor,
) -> Results:
    """Return a run with each conversation as the only trial of a test, without secrets.

    Args:
        conversations: In the order of the file.
        drafts: Of each conversation, in the same order.
        imported: An empty suite, which the tests are added to.
        form: The format, which stands for the adapter.
        redactor: Of the run.

    Raises:
        UsageError: nothing can become a test.
    """
    replies: dict[str, Sequence[Turn]] = {}
    for conversation, one in zip(conversations, drafts, strict=True):
        imported.add(one.title, one.fields, one.place)
        replies[imported.tests[-1]["name"]] = conversation.turns
    source = conversations[0].place.file
    imported.fields["adapter"] = form
    suite = load(_text(imported, form, source), _FILE, Reading(plugins=frozenset({form})))
    times = any(turn.latency_seconds for conversation in conversations for turn in conversation.turns)
    job = Job(
        plan=plan([suite], Selection.of(None, None), 1),
        policy=Policy(),
        options=Options(retries=0),
        redactor=redactor,
        facts=RunFacts(
            config={"imported": form},
            warnings=(_BY_CONSTRUCTION,) if times else (_BY_CONSTRUCTION, _NO_TIMES),
        ),
    )
    results = await evaluate(job, Participants(_RecordedAgent(replies)))
    # Zeros would meet any limit.
    return results if times else replace(results, latency=Latency())


def _text(imported: ImportedSuite, form: str, source: str) -> str:
    return suite_text(imported, form, source, _FILE, plugins=frozenset({form}))


class _RecordedAgent:
    """Gives the replies of recorded conversations, by the names of their tests."""

    def __init__(self, replies: Mapping[str, Sequence[Turn]]) -> None:
        self._replies = replies

    async def open_session(self, test: Test) -> list[Turn]:
        return [*self._replies[test.name]]

    async def send_message(self, session: list[Turn], text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # the port's own
        del text, timeout
        turn = session.pop(0)
        return Reply(
            agent=turn.agent,
            latency_seconds=turn.latency_seconds,
            tool_calls=turn.tool_calls,
            tool_calls_partial=turn.tool_calls_partial,
            handed_over=turn.handed_over,
            handed_over_apart=turn.handed_over_apart,
        )

    async def close(self, session: list[Turn]) -> None:
        session.clear()
