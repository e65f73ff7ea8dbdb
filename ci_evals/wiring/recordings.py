"""Who plays where a run is recorded, and where it is played from a recording."""

from dataclasses import replace

from ci_evals.adapters.recording.player import Playback, Played, ReplayedAgent, ReplayedEmbedder, ReplayedLLM
from ci_evals.adapters.recording.reading import Recording
from ci_evals.adapters.recording.recorder import RecordedAgent, RecordedEmbedder, RecordedLLM, Recorder
from ci_evals.domain.plan import Plan, Trial
from ci_evals.planning.workload import of_plan, of_suite
from ci_evals.ports import LLM
from ci_evals.runner import Participants, ParticipantsFor
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections


def recorded(recorder: Recorder, trial: Trial, participants: Participants) -> Participants:
    """The participants of a trial, recorded."""
    heard = recorder.listen(trial)
    user, embedder, auditor = participants.user_llm, participants.embedder, participants.audit_llm
    return Participants(
        agent=RecordedAgent(participants.agent, heard),
        user_llm=user and RecordedLLM(user, heard.user, heard.redactor),
        judge_panel=tuple(RecordedLLM(judge, heard.judge, heard.redactor) for judge in participants.judges),
        judge_votes=participants.judge_votes,
        audit_llm=auditor and RecordedLLM(auditor, heard.auditor, heard.redactor),
        embedder=embedder and RecordedEmbedder(embedder, heard.embedder, heard.redactor),
    )


def replayed_judges(
    recording: Recording, plan: Plan, adapter: Connections, redactor: Redactor
) -> tuple[LLM, ...]:
    """The judges of the plan as they answered control questions; without such answers they have none."""
    check, played = recording.check(), Played(recording, redactor)
    suites = [planned for planned in plan.suites if of_suite(plan, planned).judge_calls]
    named = [models for planned in suites if (models := adapter.models(planned.suite))]
    return tuple(
        ReplayedLLM(judge, "the control question", check.judge if check else (), played)
        for judge in dict.fromkeys(judge for models in named for judge in models.judges)
    )


def replayed(recording: Recording, plan: Plan, adapter: Connections, redactor: Redactor) -> ParticipantsFor:
    """Who plays each trial of the plan: the recording, in all the parts that a real run would have."""
    embedder = adapter.embedder if of_plan(plan).embedder_calls else None

    def participants_for(trial: Trial) -> Participants:
        planned = plan.suites[trial.suite]
        named, work = adapter.models(planned.suite), of_suite(plan, planned)
        played = Playback(recording, plan, trial, redactor)
        participants = Participants(ReplayedAgent(played), adjust_findings=played.adjust_findings)
        if named and work.user_calls:
            user = ReplayedLLM(named.user, "the simulated user's question", played.take.user, played)
            participants = replace(participants, user_llm=user)
            if auditor := adapter.auditor(planned.suite):
                asked = ReplayedLLM(auditor, "the auditor's question", played.take.auditor, played)
                participants = replace(participants, audit_llm=asked)
        if named and work.judge_calls:
            judges = tuple(
                ReplayedLLM(judge, "the judge's question", played.take.judge, played)
                for judge in named.judges
            )
            participants = replace(participants, judge_panel=judges, judge_votes=named.votes)
        if embedder:
            participants = replace(
                participants, embedder=ReplayedEmbedder(embedder, played.take.embedder, played)
            )
        return participants

    return participants_for
