"""The tasks (conversations) that the demo server has open."""

import threading
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import JsonValue

from ci_evals.demo_agent.fault_profile import Slip, Temper, opening_of
from ci_evals.demo_agent.playbook import Playbook
from ci_evals.demo_agent.reply import Move, Reply, State

MAX_TASKS = 5000
"""A server that runs for weeks forgets its oldest tasks beyond this many."""


@dataclass(frozen=True)
class TaskTurn:
    """One message of the user, and where the conversation stood before it.

    The reply is not kept: the agent's temper is pure, and plays it again, slip and all, for the few who ask.
    """

    id: str
    at: str
    text: str
    before: State
    variables: Mapping[str, JsonValue]
    slip: Slip | None = None


@dataclass
class Task:
    """One conversation."""

    id: str
    user_id: str
    agent_id: str
    playbook: Playbook
    temper: Temper
    state: State = field(default_factory=State)
    turns: list[TaskTurn] = field(default_factory=list)
    turned_away: bool = False
    """Whether a fault has turned a message away."""
    drawn_by: str = ""
    """What its slips are drawn by, from its first message on."""

    def reply_to(self, turn: TaskTurn) -> Reply:
        """What the agent said to a message of this task."""
        return self.move_after(turn).reply

    def move_after(self, turn: TaskTurn) -> Move:
        """The agent's move after a message of this task."""
        return self.temper.respond(self.playbook, turn.before, turn.text, turn.variables, turn.slip)


class Tasks:
    """All tasks of an agent of that temper. Its methods may be called from any thread."""

    def __init__(self, temper: Temper) -> None:
        self._temper = temper
        self._tasks: dict[str, Task] = {}
        self._openings: Counter[str] = Counter()
        self._lock = threading.Lock()

    def create(self, user_id: str, agent_id: str, playbook: Playbook) -> Task:
        """A new task."""
        task = Task(uuid.uuid4().hex[:24], user_id, agent_id, playbook, self._temper)
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

    def say(self, task: Task, text: str, variables: Mapping[str, JsonValue]) -> tuple[TaskTurn, Reply]:
        """Takes one message: the turn that it makes, and the agent's reply."""
        with self._lock:
            at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            slip = self._slip(task, text, variables) if self._temper.noise else None
            turn = TaskTurn(str(uuid.uuid4()), at, text, task.state, variables, slip)
            move = task.move_after(turn)
            task.state = move.state
            task.turns.append(turn)
        return turn, move.reply

    def _slip(self, task: Task, text: str, variables: Mapping[str, JsonValue]) -> Slip | None:
        """What goes wrong at the task's next message.

        A conversation is known by its opening, and by how many have begun with the same: trials of one test
        then meet the same slips between them, whichever comes first.
        """
        if not task.turns:
            opening = opening_of(task.agent_id, text, variables)
            task.drawn_by = f"{opening}/{self._openings[opening]}"
            self._openings[opening] += 1
        return self._temper.slip(task.drawn_by, len(task.turns))
