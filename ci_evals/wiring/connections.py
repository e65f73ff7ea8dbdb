"""The settings of a run's agents and models, checked before anything is built."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ci_evals.domain.agents import secrets_of
from ci_evals.domain.checks.strict.expected_answers import compares_meanings
from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Plan, SuiteModels
from ci_evals.domain.providers import OFFLINE
from ci_evals.domain.suite import Suite
from ci_evals.extension_registry import providers
from ci_evals.planning import model_family
from ci_evals.planning.agent_choice import AgentChoice
from ci_evals.planning.parse import LoadedSuite
from ci_evals.planning.workload import of_suite
from ci_evals.planning.worlds import secrets_in_worlds
from ci_evals.support.secrets import in_addresses
from ci_evals.wiring.providers import embedding_model

_NOBODY_TO_ASK = (
    "`provider=offline`: no model is asked, so `judge_votes=`, `judge_panel=` and `audit_user=` have no "
    "effect"
)


@dataclass(frozen=True)
class Connections:
    """Settings for reaching the agents and the LLM behind user and judge. Opens nothing by itself."""

    provider: str = "openai"
    llm_key: str | None = field(default=None, repr=False)
    llm_token: str | None = field(default=None, repr=False)
    """A bearer token instead of the key."""
    judge_model: str | None = None
    user_model: str | None = None
    embedding_model: str | None = None
    judge_votes: int = 1
    """At most, on one criterion; odd."""
    judge_panel: tuple[str, ...] = ()
    audit_user: bool = False
    llm_timeout: float = 120.0
    judge_cache: Path | None = None
    """The folder in which the judge's answers are kept; None for no cache."""
    choice: AgentChoice = field(default_factory=AgentChoice)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    otlp: bool = False
    """True if spans of all agents are received; else of those whose suite has `trace: otlp`."""
    otlp_host: str = "127.0.0.1"
    otlp_port: int = 4318
    """Where spans are received; port 0 is any free one."""
    agent_in_process: bool = False
    """True if agents in Python run in this process: a debugger reaches them, and they can end it."""
    agent_log: Path | None = None
    """The file for the output of agents that a run starts; None to drop it."""
    debug: bool = False
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False, compare=False)
    """The environment that models and programs get, as far as they may see it."""

    @property
    def offline(self) -> bool:
        """Return whether no LLM is wanted: the user is scripted, nothing is judged."""
        return self.provider == OFFLINE.name

    @property
    def reports_cost(self) -> bool:
        """Return whether the provider reports itself what each call has cost."""
        return providers()[self.provider].reports_cost

    @property
    def embedder(self) -> str | None:
        """The model that compares meanings, if there is one."""
        return embedding_model(self.provider, self.embedding_model)

    def warnings(self, plan: Plan) -> tuple[str, ...]:
        """Doubtful choices of models, to be shown before a plan is played."""
        if self.offline:
            return (_NOBODY_TO_ASK,) if self.judge_votes > 1 or self.audit_user else ()
        judged = [planned.suite for planned in plan.suites if of_suite(plan, planned).judge_calls]
        return model_family.warnings(
            (judge, agent)
            for suite in judged
            if (agent := model_family.agents_model(suite))
            for judge in self.models(suite).judges
        )

    def models(self, suite: Suite) -> SuiteModels:
        """The models for a suite: those asked for here, else the suite's own, else the provider's default."""
        meanings = any(compares_meanings(check) for test in suite.tests for check in test.evaluations)
        embedder = self.embedder if meanings else None
        if self.offline:
            return SuiteModels(embedder=embedder)
        default = providers()[self.provider]
        user = self.user_model or suite.user_model or default.user
        audited = self.audit_user or any(test.audit_user for test in suite.tests)
        return SuiteModels(
            judges=self.judge_panel or (self.judge_model or suite.judge_model or default.judge,),
            votes=self.judge_votes,
            user=user,
            embedder=embedder,
            auditor=(suite.audit_model or user) if audited else None,
        )


def checked(connections: Connections) -> Connections:
    """Return the settings with the most votes that there will be; raise `UsageError` if they contradict."""
    panel = panel_of(connections.judge_panel, connections.judge_model)
    return replace(connections, judge_panel=panel, judge_votes=votes_of(connections.judge_votes, panel))


def names_in(text: str | None) -> tuple[str, ...]:
    """The names between the commas of an option, as they are."""
    return tuple(text.split(",")) if text else ()


def panel_of(names: Iterable[str], judge: str | None = None) -> tuple[str, ...]:
    """The models that vote in turn, instead of one judge.

    Raise `UsageError` if a name is empty or repeated, or one judge is named too.
    """
    models = tuple(name.strip() for name in names)
    if models and judge:
        raise UsageError(f"`judge_model={judge}`: `judge_panel=` names the judges too. Omit one of them")
    option = f"`judge_panel={','.join(models)}`"
    if not all(models):
        raise UsageError(f"{option}: a name is empty; write the names of models, separated by commas")
    if repeated := [name for index, name in enumerate(models) if name in models[:index]]:
        raise UsageError(
            f"{option}: {repeated[0]!r} appears twice; `judge_votes=` asks a model more than once"
        )
    return models


def votes_of(votes: int, panel: tuple[str, ...]) -> int:
    """The most votes on one criterion: with a panel at least one of each model, and always an odd number.

    Raise `UsageError` if this number of votes cannot decide, or leave out models of the panel.
    """
    if votes % 2 == 0:
        raise UsageError(
            f"`judge_votes={votes}`: an even number of votes may have no majority; use an odd one"
        )
    if votes < 1:
        raise UsageError(f"`judge_votes={votes}`: nobody would judge; use an odd number, 1 or more")
    if 1 < votes < len(panel):
        raise UsageError(
            f"`judge_votes={votes}`: the panel has {len(panel)} models, and not all of them would have a "
            "vote; ask for more votes or name fewer models"
        )
    return max(votes, len(panel) | 1)


def keys_of(connections: object, suites: Sequence[LoadedSuite]) -> list[str]:
    """The keys that a run uses, which nobody else may see."""
    keys = [suite.suite.api_key.get_secret_value() for suite in suites if suite.suite.api_key]
    if isinstance(connections, Connections):
        headers = connections.headers.values()
        keys += [connections.llm_key or "", connections.llm_token or ""]
        keys += [*(part for value in headers for part in value.split()), *headers]
    keys += (part for suite in suites for part in secrets_of(suite.suite.adapter_options))
    keys += (part for suite in suites for part in secrets_in_worlds(suite.suite.worlds()))
    addresses = (url for item in suites for url in (item.suite.base_url, item.suite.wait_for) if url)
    return [*keys, *(part for url in addresses for part in in_addresses(url))]
