"""The tasks (conversations) that the demo server has open."""

import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import JsonValue

from ci_evals.demo_agent import engine
from ci_evals.demo_agent.playbook import Playbook
from ci_evals.demo_agent.reply import Reply, State

MAX_TASKS = 5000
"""A server that runs for weeks forgets its oldest tasks beyond this many."""


@dataclass(frozen=True)
class Exchange:
    """One message of the user, and where the conversation stood before it.

    The reply is not kept: the engine is pure, and plays it again for the few who ask.
    """

    id: str
    at: str
    text: str
    before: State
    variables: Mapping[str, JsonValue]


@dataclass
class Task:
    """One conversation."""

    id: str
    user_id: str
    playbook: Playbook
    state: State = field(default_factory=State)
    exchanges: list[Exchange] = field(default_factory=list)
    turned_away: bool = False
    """Whether a fault has turned a message away."""

    def reply_to(self, exchange: Exchange) -> Reply:
        """What the agent said to a message of this task."""
        return engine.respond(self.playbook, exchange.before, exchange.text, exchange.variables).reply


class Tasks:
    """All tasks. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}
        self._lock = threading.Lock()

    def create(self, user_id: str, playbook: Playbook) -> Task:
        """A new task."""
        task = Task(uuid.uuid4().hex[:24], user_id, playbook)
        with self._lock:
            self._tasks[task.id] = task
            if len(self._tasks) > MAX_TASKS:
                del self._tasks[next(iter(self._tasks))]
        return task

    def get(self, task_id: str) -> Task | None:
        """The task of that id."""
        return self._tasks.get(task_id)

    def of_user(self, user_id: str) -> list[Task]:
        """A user's tasks, the newest first."""
        with self._lock:
            return [task for task in reversed(self._tasks.values()) if task.user_id == user_id]

    def say(self, task: Task, text: str, variables: Mapping[str, JsonValue]) -> tuple[Exchange, Reply]:
        """Takes one message: the exchange that it makes, and the agent's reply."""
        with self._lock:
            at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            exchange = Exchange(str(uuid.uuid4()), at, text, task.state, variables)
            move = engine.respond(task.playbook, task.state, text, variables)
            task.state = move.state
            task.exchanges.append(exchange)
        return exchange, move.reply
