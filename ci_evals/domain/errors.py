"""The error tree and the exit codes. What leaves the program otherwise is a bug of ours (exit 70).

CiEvalsError
├── UsageError            2  a wrong option, configuration or file: nothing was run
│   ├── SuiteError        2  one or more problems in suite files, each with its place
│   └── SeveralError      2  several of both
├── AgentError               the agent could not be reached or read: ends the trial
│   ├── AgentAccessError     it refused the key: ends the run, no other trial can do better
│   └── LostAgentError       nothing listens there, or the connection broke: its program may have died
├── WorldError               a step around a conversation failed: a setup ends the trial, as an agent's error
├── PlatformError            the API of GitHub or GitLab refused something: a warning, never a verdict
│   ├── GitHubError
└── LLMError                 the model behind judge or simulated user could not be reached or read
    ├── LLMAccessError       it refused the key: ends the run
    └── LLMAnswerError       it answered with what cannot be used: worth asking once more
"""

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple


class Exit(IntEnum):
    """Exit codes of the process."""

    PASSED = 0
    """Passed; or skipped, since a pull request of a fork or of Dependabot has no secrets."""

    FAILED = 1
    """Failed: a check of the gate failed, or a trial with the option `fail-fast`."""

    USAGE = 2
    """Wrong usage, configuration or suite. Nothing ran."""

    INVALID = 3
    """No verdict: too many errored trials, nothing scored, a judge that failed its check, a required
    comparison that could not be made, or a run that was stopped before its end."""

    BUG = 70
    """A bug in ci-evals."""

    INTERRUPTED = 130
    """Interrupted by Ctrl-C or a signal."""


class CiEvalsError(Exception):
    """Every error that the tool foresees. Its text is for the user: what, where, what to do.

    A setting stands in it as code in Python, `` `min_score=` `` or `` `provider=offline` ``: the command line
    and the action spell it as their users do.
    """


class UsageError(CiEvalsError):
    """The user's mistake, found before anything was run."""


_EXHAUSTED = {
    errno.EMFILE: "no more files or connections can be opened; raise ulimit -n or lower `parallel=`",
    errno.ENOMEM: "out of memory; give the run more, or lower `parallel=`",
    errno.ENOSPC: "the disk is full; free some space",
    errno.EIO: "a disk failed to read or write (I/O error); look at its health",
    errno.EAGAIN: "no more processes can be started; raise ulimit -u or lower `parallel=`",
}
_EXHAUSTED |= {errno.ENFILE: _EXHAUSTED[errno.EMFILE], errno.EDQUOT: _EXHAUSTED[errno.ENOSPC]}


def exhausted(error: BaseException) -> str | None:
    """Return what the machine ran out of or failed at, in words; None if the error has another cause."""
    if isinstance(error, BaseExceptionGroup):
        return next((words for one in error.exceptions if (words := exhausted(one))), None)
    if isinstance(error, MemoryError):
        return _EXHAUSTED[errno.ENOMEM]
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return "no more threads can be started; raise the limits of memory or processes, or lower `parallel=`"
    words = _EXHAUSTED.get(error.errno or 0) if isinstance(error, OSError) else None
    return words or (exhausted(error.__cause__) if error.__cause__ else None)


@dataclass(frozen=True)
class Problem:
    """One fault of a suite file: `file:line:col: path: message`."""

    file: str
    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}"
        return f"{where}: {self.path}: {self.message}" if self.path else f"{where}: {self.message}"


class SuiteError(UsageError):
    """Suites that cannot be run, with every problem found in them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in problems))


class SeveralError(UsageError):
    """Mistakes that were found together, of which not all have a place in a suite."""

    def __init__(self, faults: Sequence[UsageError]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(dict.fromkeys(map(str, faults))))


class AgentError(CiEvalsError):
    """The agent could not be reached, did not answer in time, or gave an unreadable answer."""


class AgentAccessError(AgentError):
    """The agent refused the key (401, 403)."""


class LostAgentError(AgentError):
    """Nothing listens at the agent's address, or the connection broke before the answer was whole."""


class WorldError(CiEvalsError):
    """A step of a test's world failed: its setup, a probe or its teardown."""


class PlatformError(CiEvalsError):
    """The API of the platform that hosts the repository could not be reached, or would not do what was asked.

    Its text says what was refused, and which permission is missing where that is the cause. `status` is the
    answer's HTTP status, None if there was none.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)


class GitHubError(PlatformError):
    """GitHub's API. `not_permitted`: GitHub said that the token may not use what was asked for."""

    def __init__(self, message: str, status: int | None = None, *, not_permitted: bool = False) -> None:
        self.not_permitted = not_permitted
        super().__init__(message, status)


class LLMError(CiEvalsError):
    """The model could not be reached or gave nothing that can be read."""


class LLMAccessError(LLMError):
    """The model's provider refused the key (401, 403), or has no quota left for it."""


class Paid(NamedTuple):
    """Tokens and cost of an answer, as far as its provider reports them believably."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    cached_input_tokens: int = 0
    """Of the input tokens, those that the provider had kept from an earlier prompt."""
    cache_write_tokens: int = 0
    """Of the input tokens, those that it keeps for later ones, where that has a price of its own."""


class LLMAnswerError(LLMError):
    """The model answered with nothing that can be used: empty, broken off, refused, or not an answer.

    `paid` is what the answer took; None if a model gave none, so that nothing is charged. `answer` is the
    answer as it came, without secrets, if there was one.
    """

    def __init__(self, message: str, paid: Paid | None = None, answer: str = "") -> None:
        self.paid = paid
        self.answer = answer
        super().__init__(message)
