"""The receiver of a run's spans: `open_receiver`."""

from collections.abc import Collection, Hashable

from ci_evals.extensions.spans.receiver import Receiver
from ci_evals.extensions.spans.traced_agent import TracedAgent
from ci_evals.extensions.spans.trial_trace import Exporter
from ci_evals.ports import Agent


class RunReceiver(Receiver):
    """Receives the spans of a run's agents. Implements the port `SpanReceiver`."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port)
        self._exporters: dict[Hashable, Exporter] = {}

    def traced(self, agent: Agent, whose: Hashable, escalation_tools: Collection[str]) -> TracedAgent:
        """Return an agent whose replies carry the calls in its spans; some tools hand over to a person."""
        exporter = self._exporters.setdefault(whose, Exporter())
        return TracedAgent(agent, self, exporter, escalation_tools=escalation_tools)


def open_receiver(host: str, port: int) -> RunReceiver:
    """Return a receiver that has taken the port; raise `UsageError` if it cannot be had."""
    return RunReceiver(host, port)
