"""A shop's agent with any of the bugs that `mutate` plants, and the suite of that shop.

Its orders are in `shop.db` in the current folder. Users say fixed lines.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass

from ci_evals.domain.null_agents import CLAIM, REFUSAL
from ci_evals.domain.transcript import Integration, Reply, ToolCall, ToolStatus
from ci_evals.extensions.mutate.faults.changed_values import changed


def sql(statement, *parameters):
    """Do a statement, and return its rows."""
    with closing(sqlite3.connect("shop.db", timeout=20)) as database, database:
        return database.execute(statement, parameters).fetchall()


def open_shop():
    """Create the shop in the current folder."""
    sql("CREATE TABLE orders (id TEXT PRIMARY KEY, status TEXT)")


def _step(statement):
    return {"sql": {"url": "sqlite:///shop.db", "statement": statement}}


SUITE = {
    "name": "Shop",
    "setup": [_step("DELETE FROM orders"), _step("INSERT INTO orders VALUES ('4711', 'paid')")],
    "probes": {"orders": _step("SELECT id, status FROM orders")},
    "tests": [
        {
            "name": "Refund", "userInfo": {"name": "Jane Doe"}, "guidelines": "-",
            "turns": [{"user": "Please refund order 4711."}, {"user": "And where do you send letters?"}],
            "maxTurns": 2,
            "evaluations": [
                {"criterion": "paid back", "strict": "state", "probe": "orders", "path": "$[0].status"}
                | {"equals": "refunded"},
                {"criterion": "no hand-over", "strict": "not_escalated"},
            ],
        },
        {
            "name": "Price", "userInfo": {"name": "Sam Roe", "phone": "555-0199"}, "guidelines": "-",
            "turns": [{"user": "What is a lamp?"}], "maxTurns": 1,
            "evaluations": [{"criterion": "no hand-over", "strict": "not_escalated"}],
        },
        {
            "name": "Person", "userInfo": {"name": "Ann Poe"}, "guidelines": "-",
            "turns": [{"user": "I want a person."}], "maxTurns": 1,
            "evaluations": [{"criterion": "hands over", "strict": "escalated"}],
        },
    ],
}  # fmt: skip


@dataclass
class ShopAgent:
    """An agent. It reports tool calls, or integrations if it `integrates`."""

    bug: str | None = None
    integrates: bool = False

    async def open_session(self, test):
        return {"heard": 0}

    async def close(self, session):
        """End the conversation."""

    async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109  # as the port has it
        session["heard"] += 1
        reply = self._reply_to(text)
        if self.bug == "hand_over_added" and session["heard"] == 1:
            return reply.model_copy(update={"handed_over": True})
        return reply

    def _reply_to(self, text):
        if self.bug in {"reply_refused", "reply_claims"}:
            return self._reply(REFUSAL if self.bug == "reply_refused" else CLAIM, (), {}, ())
        if "refund" in text:
            return self._refund()
        if "letters" in text:
            call = self._call("address", {"customer": "Jane Doe"}, {"street": "Elm Street"})
            return self._reply("To Elm Street.", (call,), self._params(), ())
        if "lamp" in text:
            call = self._call("price", {"item": "lamp"}, {"price": 30})
            return self._reply("It costs 30 euros.", (call,), {}, ())
        return self._reply("I hand you over.", (), {}, (), handed_over=self.bug != "hand_over_dropped")

    def _params(self):
        return {"order": self._order(), "wish": "refund"}

    def _order(self):
        return changed("4711") if self.bug == "param_changed" else "4711"

    def _refund(self):
        order = self._order()
        called = changed("4711") if self.bug == "call_changed" else order
        if self.bug not in {"call_dropped", "call_failed", "state_unchanged"}:
            sql("UPDATE orders SET status = 'refunded' WHERE id = ?", called)
        status = ToolStatus.ERROR if self.bug == "call_failed" else ToolStatus.OK
        call = self._call("refund", {"order": called}, {"refunded": 30}, status)
        calls = {"call_dropped": (), "call_repeated": (call, call)}.get(self.bug, (call,))
        if self.bug == "call_forbidden":
            calls = (call, self._call("price", {"item": "lamp"}, {"price": 30}))
        words = {
            "reply_swapped": "It costs 30 euros.",
            "reply_cut": "I have",
            "fact_changed": "I have refunded 31 euros for you.",
            "data_told": "I have refunded 30 euros for you. (name: Sam Roe)",
        }.get(self.bug, "I have refunded 30 euros for you.")
        rules = () if self.bug == "rule_dropped" else ("refund-allowed",)
        return self._reply(words, calls, self._params(), rules)

    def _call(self, name, arguments, result, status=ToolStatus.OK):
        if not self.integrates:
            kept = result if status is ToolStatus.OK else None
            return ToolCall(name=name, arguments=arguments, result=kept, status=status)
        failed = {"error": "internal error"} if status is ToolStatus.ERROR else {}
        return Integration(code=name, status=500 if failed else 200, arguments=arguments, **failed)

    def _reply(self, text, calls, params, rules, *, handed_over=False):
        made = {"workflows": (), "integrations": calls} if self.integrates else {"tool_calls": calls}
        return Reply(
            agent=text, latency_seconds=0, params=params, rules=rules, handed_over=handed_over, **made
        )
