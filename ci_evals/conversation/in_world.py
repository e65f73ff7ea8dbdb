"""Plays a conversation in its world: setup before it, probes and teardown after it."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from uuid import uuid4

from ci_evals.conversation.converse import ConversationEnd, ConversationPlayer
from ci_evals.domain.checks.strict.state import StateCheck
from ci_evals.domain.errors import WorldError
from ci_evals.domain.suite import PlannedTurn, Test
from ci_evals.domain.transcript import EndState
from ci_evals.domain.world import Names, World
from ci_evals.ports import WorldSteps
from ci_evals.stop import Stop

TEARDOWN_SECONDS = 3.0
"""The longest that a teardown may take in a run that is cut off, which has six for everything."""


@dataclass(frozen=True)
class WorldPlayer:
    """Plays the conversations of a trial, each in a world of its own."""

    world: World
    steps: WorldSteps | None
    stop: Stop

    async def play(
        self, conversation: ConversationPlayer, test: Test, turns: Sequence[PlannedTurn]
    ) -> ConversationEnd:
        """Play one conversation; its probes are in it afterwards. A stop cuts off all but the teardown."""
        if self.steps is None or not self.world:
            end = await self.stop.run_until_stopped(conversation.play(test, turns))
            return end or ConversationEnd(EndState.INTERRUPTED)
        # An agent may be anybody's code, and change the data that it is given.
        names: Names = {
            "userInfo": deepcopy(test.user_info),
            "trial": {"id": uuid4().hex[:12]},
            "canary": conversation.canaries,
        }
        try:
            end = await self.stop.run_until_stopped(self._play(self.steps, names, conversation, test, turns))
        except WorldError as error:
            return ConversationEnd(EndState.FAILED, failure=error)
        finally:
            _name_session(names, conversation)
            if self.world.teardown:
                await self.stop.finish(self.steps.tear_down(self.world, names), TEARDOWN_SECONDS)
        return end or ConversationEnd(EndState.INTERRUPTED)

    async def _play(
        self,
        steps: WorldSteps,
        names: Names,
        conversation: ConversationPlayer,
        test: Test,
        turns: Sequence[PlannedTurn],
    ) -> ConversationEnd:
        await steps.set_up(self.world, names)
        watched = self._watched(test)
        if watched.probes:
            conversation.probes_before = await steps.probe_before(watched, names)
        end = await conversation.play(test, turns)
        _name_session(names, conversation)
        if self.world.probes:
            conversation.probes |= await steps.probe(self.world, names)
        return end

    def _watched(self, test: Test) -> World:
        """Return the world with those of its probes alone that the test's `state` checks read."""
        read = {check.probe for check in test.evaluations if isinstance(check, StateCheck)}
        probes = {name: step for name, step in self.world.probes.items() if name in read}
        return World(probes=probes)


def _name_session(names: Names, conversation: ConversationPlayer) -> None:
    if conversation.session_id is not None:
        names["session"] = {"id": conversation.session_id}
