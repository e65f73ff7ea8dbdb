"""Phrases that all reports share: sentences, moments, commits, roles. Not yet sanitized."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol

ROLES = {
    "user": "simulated user",
    "judge": "judge",
    "auditor": "auditor of the user",
    "embedder": "embedding model",
    "agent": "agent",
}
"""Roles that use tokens."""
COMMIT = 7
"""Characters of a commit's id that people know it by."""
NO_REASON = "no reason was given"


def spaced(name: str) -> str:
    """A name of an end state, a rule or an attack as people read it: `agent error`."""
    return name.replace("_", " ")


def sentence(text: str) -> str:
    """`text` with one full stop at its end."""
    return f"{text.strip().rstrip('.')}."


def capitalized(text: str) -> str:
    """`text` with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def joined(parts: Sequence[str]) -> str:
    """`a, b and c`; empty for none."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def moment(at: datetime) -> str:
    """`2026-11-20 09:30 UTC`."""
    return f"{utc(at).isoformat(sep=' ', timespec='minutes')[:16]} UTC"


def utc(at: datetime) -> datetime:
    """The moment in UTC, which is assumed where it has no zone."""
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


class OfCommit(Protocol):
    """A run, as far as its commit is known."""

    @property
    def commit(self) -> str | None:
        """The commit's id."""

    @property
    def uncommitted_changes(self) -> bool:
        """True if files differed from the commit."""


def commit_name(run: OfCommit) -> str:
    """Return the commit that a run tested, shortened, such as `abc1234 with changes`; empty if unknown."""
    return f"{run.commit[:COMMIT]}{with_changes(run)}" if run.commit else ""


def with_changes(run: OfCommit) -> str:
    """Return what follows a commit's id if files differed from it; empty if they did not."""
    return " with changes" if run.uncommitted_changes else ""
