"""The ports of the core: an agent to talk to, models to ask."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from ci_evals.domain.errors import LLMAnswerError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply

T = TypeVar("T")


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


@dataclass(frozen=True)
class Prompt:
    """A question to a model. With a `schema` the answer should be JSON of that form."""

    system: str
    text: str
    schema: dict[str, Any] | None = None
    schema_name: str = "answer"
    sample_id: str = ""
    """Distinguishes questions in the same words that are each answered by themselves, such as votes."""


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
    accept: Callable[[], object] = field(default=lambda: None, compare=False, repr=False)
    """To be called if the answer is of use: then it may be cached."""


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


async def ask_twice(llm: LLM, prompt: Prompt, read: Callable[[Completion], T]) -> T:
    """Ask a model, and once more if the answer is of no use to `read`, which then raises `LLMAnswerError`.

    A prompt with a sample id gets another one each time, so that no cache repeats the answer.

    Raises:
        LLMAnswerError: the second answer is of no use either.
        LLMError: the model cannot be asked.
    """
    for attempt in range(2):
        sample_id = prompt.sample_id and f"{prompt.sample_id}/{attempt}"
        try:
            return read(await llm.complete(replace(prompt, sample_id=sample_id)))
        except LLMAnswerError as error:
            last = error
    raise type(last)(f"{last} (asked twice)") from last
