"""The demo agent's world: orders, bookings and balances that its integrations change, by task."""

import json
import sqlite3
import threading
from typing import get_args

from ci_evals.extensions.demo.playbook import Table
from ci_evals.extensions.demo.reply import DemoReply, IntegrationCall

TABLES: tuple[str, ...] = get_args(Table)


class DemoWorld:
    """Rows that were changed, in sqlite. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._lock = threading.Lock()
        for table in TABLES:
            self._database.execute(
                f"CREATE TABLE {table} (task TEXT, id TEXT, state TEXT, PRIMARY KEY (task, id))"
            )

    def change(self, task: str, reply: DemoReply) -> None:
        """Make the changes that a reply's integrations made."""
        calls = [one for one in reply.decisions if isinstance(one, IntegrationCall) and one.change]
        with self._lock:
            for change in (call.change for call in calls):
                assert change is not None  # noqa: S101  # see above
                self._database.execute(
                    f"INSERT INTO {change.table} VALUES (?, ?, ?) "  # noqa: S608  # a name of ours
                    "ON CONFLICT DO UPDATE SET state = json_patch(state, excluded.state)",
                    (task, change.row, json.dumps(change.values)),
                )

    def of(self, task: str) -> dict[str, object]:
        """Return the rows that a task has changed, by table and id."""
        with self._lock:
            return {
                table: {
                    row: json.loads(state)
                    for row, state in self._database.execute(
                        f"SELECT id, state FROM {table} WHERE task = ?",  # noqa: S608  # a name of ours
                        [task],
                    )
                }
                for table in TABLES
            }

    def forget(self, task: str) -> None:
        """Drop the rows of a task."""
        with self._lock:
            for table in TABLES:
                self._database.execute(f"DELETE FROM {table} WHERE task = ?", [task])  # noqa: S608  # as above
