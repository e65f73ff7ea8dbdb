"""Participants that are recorded, and those that a recording plays."""

from collections.abc import Iterable
from dataclasses import replace

from ci_evals.adapters.journal.capture import (
    RecordedAgent,
    RecordedEmbedder,
    RecordedLLM,
    RecordedWorld,
    RunCapture,
    TrialCapture,
)
from ci_evals.adapters.journal.reading import Recording
from ci_evals.adapters.journal.replay import (
    Replay,
    ReplayedAgent,
    ReplayedEmbedder,
    ReplayedLLM,
    ReplayedWorld,
    TrialReplay,
)
from ci_evals.domain.plan import Plan, Trial
from ci_evals.planning.workload import of_suite
from ci_evals.runner import Participants
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.functions import function_caller
from ci_evals.wiring.models import CheckedJudge
from ci_evals.wiring.players import Players


def recorded(participants: Participants, capture: TrialCapture) -> Participants:
    """The participants of a trial, whose answers are captured."""
    user, embedder, auditor = participants.user_llm, participants.embedder, participants.audit_llm
    return Participants(
        agent=RecordedAgent(participants.agent, capture),
        user_llm=user and RecordedLLM(user, "user", capture),
        judge_panel=tuple(RecordedLLM(judge, "judge", capture) for judge in participants.judges),
        judge_votes=participants.judge_votes,
        audit_llm=auditor and RecordedLLM(auditor, "auditor", capture),
        audit_all=participants.audit_all,
        embedder=embedder and RecordedEmbedder(embedder, capture),
        call_function=participants.call_function,
        world=participants.world and RecordedWorld(participants.world, capture),
    )


def recorded_judges(judges: Iterable[CheckedJudge], capture: RunCapture) -> tuple[CheckedJudge, ...]:
    """The judges that are asked control questions, whose answers are captured."""
    return tuple(replace(judge, llm=RecordedLLM(judge.llm, "judge", capture.judge_check)) for judge in judges)


class ReplayedPlayers(Players):
    """A recording in all the parts that a real run of the plan would have."""

    def __init__(
        self,
        recording: Recording,
        plan: Plan,
        connections: Connections,
        redactor: Redactor,
        *,
        always_check: bool = False,
    ) -> None:
        """Take the answers from a recording.

        A check of judges is repeated if it was recorded. With `always_check` they are asked all the same, and
        have no answer.
        """
        self.recording, self.plan = recording, plan
        self.connections, self.redactor = connections, redactor
        self.judges = self._judges(always=always_check)

    def _judges(self, *, always: bool) -> tuple[CheckedJudge, ...]:
        """Return the judges of the plan as they answered control questions."""
        answers = self.recording.judge_check()
        if not (answers or always):
            return ()
        names: dict[str, None] = {}
        for planned in self.plan.suites:
            if of_suite(self.plan, planned).judge_calls:
                names |= dict.fromkeys(self.connections.models(planned.suite).judges)
        replay = Replay(self.recording, self.redactor)
        return tuple(
            CheckedJudge(ReplayedLLM(name, "the control question", answers, replay)) for name in names
        )

    def participants(self, trial: Trial) -> Participants:
        """The participants of a trial."""
        planned = self.plan.suites[trial.suite]
        names, work = self.connections.models(planned.suite), of_suite(self.plan, planned)
        replay = TrialReplay(self.recording, self.plan, trial, self.redactor)
        answers = replay.answers
        user, auditor, embedder = None, None, None
        if work.user_calls and names.user:
            user = ReplayedLLM(names.user, "the simulated user's question", answers.user, replay)
            if names.auditor:
                auditor = ReplayedLLM(names.auditor, "the auditor's question", answers.auditor, replay)
        judges = names.judges if work.judge_calls else ()
        if work.embedder_calls and self.connections.embedder:
            embedder = ReplayedEmbedder(self.connections.embedder, answers.embedder, replay)
        return Participants(
            ReplayedAgent(replay),
            user_llm=user,
            audit_llm=auditor,
            audit_all=self.connections.audit_user,
            judge_panel=[ReplayedLLM(name, "the judge's question", answers.judge, replay) for name in judges],
            judge_votes=names.votes if judges else 1,
            embedder=embedder,
            world=ReplayedWorld(replay),
            adjust_findings=replay.adjust_findings,
            canaries=replay.canaries,
            call_function=function_caller(self.connections.environ, self.redactor),
        )
