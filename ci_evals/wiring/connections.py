"""What is to be built, in one value: how agents are reached, and which LLM plays user and judge."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ci_evals.adapters.endpoints.aui_wire import DEFAULT_KEY_HEADER, DEFAULT_TASK_ORIGIN_TYPE, AgentIdPlace
from ci_evals.domain.plan import Plan
from ci_evals.domain.results.run import OFFLINE
from ci_evals.domain.suite import Suite
from ci_evals.planning import model_family
from ci_evals.planning.agent_choice import AgentChoice
from ci_evals.planning.workload import of_suite
from ci_evals.wiring.models import DEFAULT_MODELS, LLM_TIMEOUT, TELLS_COST, Models, embedding_model

_NOBODY_TO_ASK = (
    "--provider=offline: no model is asked, so that --judge-votes, --judge-panel and --audit-user have no "
    "effect"
)


@dataclass(frozen=True)
class Connections:
    """How agents are reached, and which LLM plays user and judge. Opens nothing by itself."""

    provider: str = "openai"
    llm_key: str | None = field(default=None, repr=False)
    llm_token: str | None = field(default=None, repr=False)
    """A bearer token in place of the key."""
    judge_model: str | None = None
    user_model: str | None = None
    embedding_model: str | None = None
    judge_votes: int = 1
    """At most, on one criterion; odd."""
    judge_panel: tuple[str, ...] = ()
    """The models that vote in turn, in place of the judge's model."""
    audit_user: bool = False
    audit_model: str | None = None
    """Looks whether the simulated user kept to its role; None for the user's own model."""
    llm_timeout: float = LLM_TIMEOUT
    """Seconds that each attempt to ask a model may take."""
    judge_cache: Path | None = None
    """The folder in which the judge's answers are kept; None for no such thing."""
    choice: AgentChoice = field(default_factory=AgentChoice)
    """Another agent than the suites name."""
    key_header: str = DEFAULT_KEY_HEADER
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    agent_id_in: str = AgentIdPlace.TOP
    task_origin_type: str = DEFAULT_TASK_ORIGIN_TYPE
    agent_in_process: bool = False
    """Whether agents in Python run in this process: a debugger reaches them, and they can end it."""
    agent_log: Path | None = None
    """The file for what agents in Python print; None for no such file."""
    debug: bool = False

    @property
    def offline(self) -> bool:
        """Whether no LLM is wanted: the user is scripted, nothing is judged."""
        return self.provider == OFFLINE

    @property
    def tells_cost(self) -> bool:
        """Whether the provider says itself what each call has cost."""
        return self.provider in TELLS_COST

    @property
    def embedder(self) -> str | None:
        """The model that compares meanings; None where there is none."""
        return embedding_model(self.provider, self.embedding_model)

    def warnings(self, plan: Plan) -> tuple[str, ...]:
        """What to say of the choice of models before a plan is played."""
        judged = [planned.suite for planned in plan.suites if of_suite(plan, planned).judge_calls]
        if self.offline:
            return (_NOBODY_TO_ASK,) if self.judge_votes > 1 or self.audit_user else ()
        pairs = [(self.models(suite), model_family.agents_model(suite)) for suite in judged]
        return model_family.warnings(
            (judge, agent) for named, agent in pairs if named and agent for judge in named.judges
        )

    def auditor(self, suite: Suite) -> str | None:
        """The model that looks at a suite's simulated user; None where that is not wanted."""
        models = self.models(suite)
        return (self.audit_model or models.user) if models and self.audit_user else None

    def models(self, suite: Suite) -> Models | None:
        """The models for a suite: those asked for here, else the suite's own, else the provider's default."""
        if self.offline:
            return None
        default = DEFAULT_MODELS[self.provider]
        panel = self.judge_panel
        return Models(
            judge=panel[0] if panel else self.judge_model or suite.judge_model or default.judge,
            user=self.user_model or suite.user_model or default.user,
            panel=panel if len(panel) > 1 else (),
            votes=self.judge_votes,
        )
