"""The tasks (conversations) that the demo server has open."""

import threading
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import JsonValue

from ci_evals.extensions.demo.demo_world import DemoWorld
from ci_evals.extensions.demo.faults import FaultProfile, Misbehavior, ReplyFault, opening_of
from ci_evals.extensions.demo.playbook import Playbook
from ci_evals.extensions.demo.reply import DemoReply, Move, State

MAX_TASKS = 5000
"""A server that runs for weeks forgets its oldest tasks beyond this many."""


@dataclass(frozen=True)
class TaskTurn:
    """One message of the user, with the state of the conversation before it.

    The reply is not kept: the agent is pure, faults included, and computes it again for the few who ask.
    """

    id: str
    at: str
    text: str
    before: State
    variables: Mapping[str, JsonValue]
    fault: ReplyFault | None = None


@dataclass
class Task:
    """One conversation."""

    id: str
    user_id: str
    agent_id: str
    playbook: Playbook
    profile: FaultProfile
    state: State = field(default_factory=State)
    turns: list[TaskTurn] = field(default_factory=list)
    key: str = ""
    """The name of the conversation in the draws of faults, from its first message on."""

    def move_after(self, turn: TaskTurn) -> Move:
        """Return the agent's move after a message of this task."""
        return self.profile.respond(self.playbook, turn.before, turn.text, turn.variables, turn.fault)


class Tasks:
    """All tasks of one agent. Its methods may be called from any thread."""

    def __init__(self, profile: FaultProfile) -> None:
        self._profile = profile
        self._tasks: dict[str, Task] = {}
        self._openings: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.world = DemoWorld()

    def create(self, user_id: str, agent_id: str, playbook: Playbook) -> Task:
        """Create a task."""
        task = Task(uuid.uuid4().hex[:24], user_id, agent_id, playbook, self._profile)
        with self._lock:
            self._tasks[task.id] = task
            if len(self._tasks) > MAX_TASKS:
                oldest = next(iter(self._tasks))
                del self._tasks[oldest]
                self.world.forget(oldest)
        return task

    def get(self, task_id: str) -> Task | None:
        """Return the task of that id."""
        return self._tasks.get(task_id)

    def send(self, task: Task, text: str, variables: Mapping[str, JsonValue]) -> tuple[TaskTurn, DemoReply]:
        """Take one message: return the turn that it makes, and the agent's reply."""
        with self._lock:
            at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            fault = self._draw(task, text, variables) if self._profile.noise else None
            turn = TaskTurn(str(uuid.uuid4()), at, text, task.state, variables, fault)
            move = task.move_after(turn)
            task.state = move.state
            if Misbehavior.CLAIMS not in self._profile.misbehaves:
                self.world.change(task.id, move.reply)
            task.turns.append(turn)
        return turn, move.reply

    def _draw(self, task: Task, text: str, variables: Mapping[str, JsonValue]) -> ReplyFault | None:
        """Draw the fault of the task's next message.

        A conversation is known by its opening, and by how many have begun with the same: the trials of one
        test then meet the same faults between them, whichever comes first.
        """
        if not task.turns:
            opening = opening_of(task.agent_id, text, variables)
            task.key = f"{opening}/{self._openings[opening]}"
            self._openings[opening] += 1
        return self._profile.draw(task.key, len(task.turns))
