"""Participants that are recorded, and those that a recording plays."""

from dataclasses import replace

from ci_evals.adapters.recording.reader import Recording
from ci_evals.adapters.recording.recorder import RecordedAgent, RecordedEmbedder, RecordedLLM, Recorder
from ci_evals.adapters.recording.replay import (
    Replay,
    ReplayedAgent,
    ReplayedEmbedder,
    ReplayedLLM,
    TrialReplay,
)
from ci_evals.domain.plan import Plan, Trial
from ci_evals.planning.workload import of_plan, of_suite
from ci_evals.ports import LLM
from ci_evals.runner import Participants, ParticipantsFor
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections


def recorded(recorder: Recorder, trial: Trial, participants: Participants) -> Participants:
    """The participants of a trial, recorded."""
    capture = recorder.capture(trial)
    user, embedder, auditor = participants.user_llm, participants.embedder, participants.audit_llm
    return Participants(
        agent=RecordedAgent(participants.agent, capture),
        user_llm=user and RecordedLLM(user, capture.user, capture.redactor),
        judge_panel=tuple(
            RecordedLLM(judge, capture.judge, capture.redactor) for judge in participants.judges
        ),
        judge_votes=participants.judge_votes,
        audit_llm=auditor and RecordedLLM(auditor, capture.auditor, capture.redactor),
        embedder=embedder and RecordedEmbedder(embedder, capture.embedder, capture.redactor),
    )


def replayed_judges(
    recording: Recording, plan: Plan, connections: Connections, redactor: Redactor
) -> tuple[LLM, ...]:
    """The judges of the plan as they answered control questions; without such answers they have none."""
    check, replay = recording.judge_check(), Replay(recording, redactor)
    suites = [planned.suite for planned in plan.suites if of_suite(plan, planned).judge_calls]
    return tuple(
        ReplayedLLM(judge, "the control question", check.judge if check else (), replay)
        for judge in dict.fromkeys(judge for suite in suites for judge in connections.models(suite).judges)
    )


def replayed(
    recording: Recording, plan: Plan, connections: Connections, redactor: Redactor
) -> ParticipantsFor:
    """The recording in all the parts that a real run of the plan would have."""
    embedder = connections.embedder if of_plan(plan).embedder_calls else None

    def participants_for(trial: Trial) -> Participants:
        planned = plan.suites[trial.suite]
        names, work = connections.models(planned.suite), of_suite(plan, planned)
        replay = TrialReplay(recording, plan, trial, redactor)
        recorded = replay.recorded
        participants = Participants(ReplayedAgent(replay), adjust_findings=replay.adjust_findings)
        if names.user and work.user_calls:
            user = ReplayedLLM(names.user, "the simulated user's question", recorded.user, replay)
            participants = replace(participants, user_llm=user)
            if names.auditor:
                auditor = ReplayedLLM(names.auditor, "the auditor's question", recorded.auditor, replay)
                participants = replace(participants, audit_llm=auditor)
        if names.judges and work.judge_calls:
            judges = tuple(
                ReplayedLLM(judge, "the judge's question", recorded.judge, replay) for judge in names.judges
            )
            participants = replace(participants, judge_panel=judges, judge_votes=names.votes)
        if embedder:
            replayed_embedder = ReplayedEmbedder(embedder, recorded.embedder, replay)
            participants = replace(participants, embedder=replayed_embedder)
        return participants

    return participants_for
