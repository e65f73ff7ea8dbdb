"""Who plays a run, as it was chosen, and which models its budget and its results know of."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ci_evals.conversation import audit, simulated_user
from ci_evals.domain.checks.strict.expected_answers import compares_meanings
from ci_evals.domain.plan import Plan, SuiteModels
from ci_evals.domain.suite import Suite
from ci_evals.planning.workload import of_suite
from ci_evals.runner import Participants
from ci_evals.support import templates
from ci_evals.support.digest import digest
from ci_evals.wiring.connections import Connections

if TYPE_CHECKING:
    from ci_evals.job.job import Elsewhere
    from ci_evals.wiring.recordings import ReplayedPlayers


Chosen: TypeAlias = "Connections | Participants | ReplayedPlayers | Elsewhere"
"""Who plays a run: by settings, as a library's caller gives them, from a recording, or in other processes."""


@dataclass(frozen=True)
class ChosenModels:
    """The models of a run, whoever chose them."""

    models: tuple[SuiteModels, ...]
    """One for each suite of the plan."""
    user_prompt: str
    """A digest of the prompts of simulated user and auditor: the auditor decides which trials count."""
    provider: str | None = None
    offline: bool = False
    reports_cost: bool = False
    """True if the provider reports itself what each call has cost."""
    connection: str = ""
    """A digest of how agents are reached, besides what suites say."""

    @classmethod
    def of(cls, plan: Plan, chosen: Chosen) -> "ChosenModels":
        """The models of a plan, as they were chosen."""
        suites = [planned.suite for planned in plan.suites]
        if isinstance(chosen, Participants):
            models = tuple(_models_of(chosen, suite) for suite in suites)
            auditors = {chosen.audit_llm.model} if chosen.audit_llm else set()
            return cls(models, _user_prompt(models, bool(chosen.audit_llm), auditors))
        connections = chosen if isinstance(chosen, Connections) else chosen.connections
        models = tuple(map(connections.models, suites))
        auditors = set()
        if connections.audit_user:
            auditors = {suite.audit_model for suite in suites if suite.audit_model}
        return cls(
            models,
            _user_prompt(models, connections.audit_user, auditors),
            provider=connections.provider,
            offline=connections.offline,
            reports_cost=connections.reports_cost,
            connection=_connection(connections),
        )

    def paid_models(self, plan: Plan) -> Iterable[str]:
        """The models whose prices a budget needs, if the plan asks them."""
        for planned, models in zip(plan.suites, self.models, strict=True):
            work = of_suite(plan, planned)
            if work.user_calls:
                yield from filter(None, (models.user, models.auditor))
            if work.judge_calls:
                yield from models.judges
            if work.embedder_calls and models.embedder:
                yield models.embedder


def _models_of(participants: Participants, suite: Suite) -> SuiteModels:
    user, embedder, auditor = participants.user_llm, participants.embedder, participants.audit_llm
    meanings = any(compares_meanings(check) for test in suite.tests for check in test.evaluations)
    judges = tuple(llm.model for llm in participants.judges)
    return SuiteModels(
        judges=judges,
        votes=participants.judge_votes if judges else 1,
        user=user.model if user else None,
        embedder=embedder.model if embedder and meanings else None,
        auditor=auditor.model if auditor else None,
    )


def _user_prompt(models: Iterable[SuiteModels], audited: bool, auditors: Collection[str]) -> str:
    """A digest of the prompts, and of auditors that are named: else a simulated user's own model audits."""
    if all(suite.user is None for suite in models):
        return digest("scripted")
    names: tuple[str, ...] = simulated_user.TEMPLATES
    if audited:
        names += audit.TEMPLATES
    prompts = templates.digest(*names)
    return digest([prompts, *sorted(auditors)]) if auditors else prompts


def _connection(connections: Connections) -> str:
    """Values of headers are secrets, and left out."""
    return digest(sorted(name.lower() for name in connections.headers))
