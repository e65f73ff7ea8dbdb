"""The agents behind endpoints are held to what every agent promises."""

from collections.abc import Iterator
from typing import Any

import agent_cases
import pytest

from ci_evals.contract import AgentContract
from ci_evals.ports import Agent


class Endpoint(AgentContract):
    stalls = True
    served: Any
    case: Any

    @pytest.fixture(autouse=True)
    def serving(self) -> Iterator[None]:
        with type(self).served() as url:
            self.agents = type(self).case(url)
            yield

    def played(self, made: Any) -> Agent:
        return made

    def agent(self) -> Any:
        return self.agents.agent

    def unreachable(self) -> Any:
        return self.agents.unreachable

    def locked(self) -> Any:
        return self.agents.locked


class Chat(Endpoint):
    __test__ = True
    served, case = staticmethod(agent_cases.chat_server), staticmethod(agent_cases.chat_case)


class Http(Endpoint):
    __test__ = True
    served, case = staticmethod(agent_cases.http_server), staticmethod(agent_cases.http_case)
