"""The ports of the core: an agent to talk to, models to ask, functions to call, the world around a trial."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

from pydantic import JsonValue

from ci_evals.domain.errors import AgentError, LLMAnswerError, Paid
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import ProbeResult, Reply
from ci_evals.domain.world import Names, World
from ci_evals.support.redaction import Redactor

T = TypeVar("T")


def id_of(session: object) -> str | None:
    """Return the id of an agent's session: itself, or its `id`; None if it has none."""
    found = session if isinstance(session, str | int) else getattr(session, "id", None)
    return str(found) if isinstance(found, str | int) else None


class Agent(Protocol):
    """The agent under test. One object serves all trials of a suite, many at the same time.

    Every method raises `AgentError` if the agent cannot be reached or read, and `AgentAccessError` if it
    refuses the key.
    """

    async def open_session(self, test: Test) -> Any:
        """Begin a fresh conversation for this test's user, and return the session for the other methods."""

    async def send_message(self, session: Any, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # an adapter knows which waits do not count
        """Send `text` and return the agent's reply, waiting for it at most `timeout` seconds."""

    async def close(self, session: Any) -> None:
        """End the conversation and free what it held; a second time does nothing.

        Raises:
            AgentError: something came that was not asked for, so that the replies may answer other messages.
        """


@runtime_checkable
class KeyCheckingAgent(Agent, Protocol):
    """An agent whose key can be checked before the first message."""

    async def check(self) -> None:
        """Check the key at no cost; raise `AgentAccessError` if it is refused."""


@runtime_checkable
class StatefulAgent(Agent, Protocol):
    """An agent that reports its state, which is the probe `agent_state` of a conversation."""

    async def read_state(self, session: Any) -> JsonValue:
        """Return the state of the conversation, which has not been closed.

        Raises:
            AgentError: it cannot be had; a clause about why.
        """


async def read_state(agent: Agent, session: Any) -> JsonValue:
    """Return the state that an agent reports; raise `AgentError` if it reports none."""
    if isinstance(agent, StatefulAgent):
        return await agent.read_state(session)
    raise AgentError("the agent reports no state")


class FunctionError(Exception):
    """A function of a suite's author cannot be called, failed, or returned no JSON.

    Its text is a clause, without secrets.
    """


class CallFunction(Protocol):
    """Calls a Python function of a suite's author, in a process of its own."""

    async def __call__(self, function: str, arguments: Mapping[str, JsonValue]) -> JsonValue:
        """Call `module:attribute` with those arguments that it has parameters for, and return its result.

        Raises:
            FunctionError: it failed, or did not end in time.
        """


class WorldSteps(Protocol):
    """Does the steps and probes of tests' worlds. One object serves all trials of a run."""

    async def set_up(self, world: World, names: Names) -> None:
        """Do the setup, with `{{names}}` replaced; raise `WorldError` at the first step that fails."""

    async def probe_before(self, world: World, names: Names) -> dict[str, ProbeResult]:
        """Return what each probe returns before the first message; nothing where that is not known."""

    async def probe(self, world: World, names: Names) -> dict[str, ProbeResult]:
        """Return what each probe returns, or why it failed."""

    async def tear_down(self, world: World, names: Names) -> None:
        """Do all of the teardown, whatever fails; raise nothing."""

    def notes(self) -> Sequence[str]:
        """Return warnings about what failed."""


class EvidenceGaps(Protocol):
    """The turns of a run whose evidence turned out to be incomplete after it was read."""

    listen: Callable[..., None]
    """Called with the traces of trials that have a new gap; `earlier` if all that have ended have one too."""

    @property
    def found(self) -> bool:
        """True if there is any gap."""
        ...

    def reason(self, turn: str | None) -> str | None:
        """Return why the evidence of the turn with this `traceparent` is incomplete; None if it is not."""


class SpanReceiver(Protocol):
    """Receives the spans that agents export during a run: evidence of what they did."""

    @property
    def gaps(self) -> EvidenceGaps:
        """The gaps in the evidence."""
        ...

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return `environ` for an agent that we start: it exports its spans to this receiver."""
        ...

    def traced(self, agent: Agent, whose: Hashable, escalation_tools: Collection[str]) -> Agent:
        """Return an agent whose replies carry the calls in its spans; some tools hand over to a person.

        Agents with the same `whose` export in the same way.
        """
        ...

    async def start(self) -> None:
        """Begin to receive."""

    async def end(self) -> None:
        """Stop listening."""

    async def wait_for_late(self) -> None:
        """Wait until no span has come for a while after the last trial's end."""

    def finish(self) -> None:
        """Note what the spans until now mean for trials that have ended."""

    def notes(self, redactor: Redactor) -> Iterable[str]:
        """Return notes on spans that belong to no turn."""
        ...


LEAST_SHARED = 4_000
"""Characters from which providers keep the start of a prompt for later ones: some 1,024 tokens."""


@dataclass(frozen=True)
class Prompt:
    """A question to a model. With a `schema` the answer should be JSON of that form."""

    system: str
    text: str
    schema: dict[str, object] | None = None
    schema_name: str = "answer"
    sample_id: str = ""
    """Distinguishes questions in the same words that are each answered by themselves, such as votes."""
    shared: int = field(default=0, compare=False, repr=False)
    """Characters at the start of `text` that further prompts repeat, so that it pays to keep them."""


@dataclass(frozen=True)
class Completion:
    """A model's answer, and the tokens it took; None if the provider does not report them believably."""

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    """Its cost if the provider itself reports it; else the price of its tokens counts."""
    cached: bool = False
    """True if it is an earlier answer, which cost nothing now."""
    cached_input_tokens: int = 0
    """Of the input tokens, those that the provider had kept from an earlier prompt."""
    cache_write_tokens: int = 0
    """Of the input tokens, those that it keeps for later ones, where that has a price of its own."""
    accept: Callable[[], object] = field(default=lambda: None, compare=False, repr=False)
    """To be called if the answer is of use: then it may be cached."""

    @classmethod
    def of(cls, text: str, paid: Paid) -> "Completion":
        """Return an answer that was paid for now."""
        return cls(
            text,
            paid.input_tokens,
            paid.output_tokens,
            paid.cost_usd,
            cached_input_tokens=paid.cached_input_tokens,
            cache_write_tokens=paid.cache_write_tokens,
        )


@dataclass(frozen=True)
class Embeddings:
    """Vectors of texts, all of one length, and the tokens they took, if known."""

    vectors: tuple[tuple[float, ...], ...]
    input_tokens: int | None = None


class Embedder(Protocol):
    """A model that turns texts into vectors, so that meanings can be compared.

    `embed` raises as `LLM.complete` does.
    """

    model: str

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """A vector for each of `texts`, in their order."""


class LLM(Protocol):
    """The model behind judge or simulated user.

    `complete` raises `LLMError` if the model cannot be reached, `LLMAnswerError` if its answer is of no use
    (it refuses or breaks off, say), and `LLMAccessError` if the provider refuses the key.
    """

    model: str

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask once; retries of failed calls are the adapter's business."""


async def ask_twice(
    llm: LLM,
    prompt: Prompt,
    read: Callable[[Completion], T],
    note: Callable[[LLMAnswerError], None] = lambda _: None,
) -> T:
    """Ask a model, and once more if the answer is of no use to `read`, which then raises `LLMAnswerError`.

    A prompt with a sample id gets another one each time, so that no cache repeats the answer. `note` is
    called with the error of each answer of no use.

    Raises:
        LLMAnswerError: the second answer is of no use either.
        LLMError: the model cannot be asked.
    """
    for attempt in range(2):
        sample_id = prompt.sample_id and f"{prompt.sample_id}/{attempt}"
        try:
            return read(await llm.complete(replace(prompt, sample_id=sample_id)))
        except LLMAnswerError as error:
            note(error)
            last = error
    raise type(last)(f"{last} (asked twice)") from last
