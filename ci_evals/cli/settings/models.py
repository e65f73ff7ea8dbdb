"""The models that options name, and their votes."""

from ci_evals.cli.settings.plan_settings import PlanSettings
from ci_evals.wiring.connections import Connections, checked, names_in


def models_asked(settings: PlanSettings) -> Connections:
    """Read the models from the options, without a key.

    Raises:
        UsageError: the options contradict one another.
    """
    return checked(
        Connections(
            provider=settings.provider,
            judge_model=settings.judge_model,
            user_model=settings.user_model,
            embedding_model=settings.embedding_model,
            judge_votes=settings.judge_votes,
            judge_panel=names_in(settings.judge_panel),
            audit_user=settings.audit_user,
        )
    )
