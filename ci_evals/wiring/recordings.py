"""Participants that are recorded, and those that a recording plays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ci_evals.adapters.recording.reader import Recording
from ci_evals.adapters.recording.recorder import (
    RecordedAgent,
    RecordedEmbedder,
    RecordedLLM,
    RecordedWorld,
    Recorder,
)
from ci_evals.adapters.recording.replay import (
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


class RunRecorder(Recorder):
    """Records the participants of a run."""

    def participants(self, trial: Trial, participants: Participants) -> Participants:
        """The participants of a trial, recorded."""
        capture = self.capture(trial)
        user, embedder, auditor = participants.user_llm, participants.embedder, participants.audit_llm
        return Participants(
            agent=RecordedAgent(participants.agent, capture),
            user_llm=user and RecordedLLM(user, "user", capture),
            judge_panel=tuple(RecordedLLM(judge, "judge", capture) for judge in participants.judges),
            judge_votes=participants.judge_votes,
            audit_llm=auditor and RecordedLLM(auditor, "auditor", capture),
            embedder=embedder and RecordedEmbedder(embedder, capture),
            call_function=participants.call_function,
            world=participants.world and RecordedWorld(participants.world, capture),
        )

    def judges(self, judges: Sequence[CheckedJudge]) -> tuple[CheckedJudge, ...]:
        """The judges that are asked control questions, recorded."""
        return tuple(
            replace(judge, llm=RecordedLLM(judge.llm, "judge", self.judge_check)) for judge in judges
        )


@dataclass(frozen=True)
class RunReplay:
    """A recording in all the parts that a real run of the plan would have."""

    recording: Recording
    plan: Plan
    connections: Connections
    redactor: Redactor

    def judges(self, *, always: bool) -> tuple[CheckedJudge, ...]:
        """The judges of the plan as they answered control questions: a check is repeated if it was recorded.

        With `always` they are asked all the same, and have no answer.
        """
        check, replay = self.recording.judge_check(), Replay(self.recording, self.redactor)
        if not (check or always):
            return ()
        suites = [planned.suite for planned in self.plan.suites if of_suite(self.plan, planned).judge_calls]
        names = dict.fromkeys(judge for suite in suites for judge in self.connections.models(suite).judges)
        answers = check.judge if check else ()
        return tuple(
            CheckedJudge(ReplayedLLM(name, "the control question", answers, replay)) for name in names
        )

    def participants(self, trial: Trial) -> Participants:
        """The participants of a trial."""
        planned = self.plan.suites[trial.suite]
        names, work = self.connections.models(planned.suite), of_suite(self.plan, planned)
        replay = TrialReplay(self.recording, self.plan, trial, self.redactor)
        kept = replay.recorded
        user = names.user if work.user_calls else None
        auditor = names.auditor if user else None
        judges = names.judges if work.judge_calls else ()
        embedder = self.connections.embedder if work.embedder_calls else None
        return Participants(
            ReplayedAgent(replay),
            user_llm=ReplayedLLM(user, "the simulated user's question", kept.user, replay) if user else None,
            audit_llm=ReplayedLLM(auditor, "the auditor's question", kept.auditor, replay)
            if auditor
            else None,
            judge_panel=[ReplayedLLM(name, "the judge's question", kept.judge, replay) for name in judges],
            judge_votes=names.votes if judges else 1,
            embedder=ReplayedEmbedder(embedder, kept.embedder, replay) if embedder else None,
            world=ReplayedWorld(replay),
            adjust_findings=replay.adjust_findings,
            call_function=function_caller(self.connections.environ, self.redactor),
        )
