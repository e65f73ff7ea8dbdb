"""Who judges, how often, and who looks at the simulated user: what is asked of them, checked."""

from collections.abc import Iterable
from dataclasses import replace

from ci_evals.domain.errors import UsageError
from ci_evals.wiring.connections import Connections


def checked(asked: Connections) -> Connections:
    """The same, with as many votes as there will be at the most.

    Raises:
        UsageError: what is asked of judge or auditor contradicts itself.
    """
    panel = panel_of(asked.judge_panel, asked.judge_model)
    if asked.audit_model and not asked.audit_user:
        raise UsageError(
            f"--audit-model={asked.audit_model}: nobody is audited without --audit-user; give both or neither"
        )
    return replace(asked, judge_panel=panel, judge_votes=votes_of(asked.judge_votes, panel))


def names_in(text: str | None) -> tuple[str, ...]:
    """The names between the commas of an option, as they are."""
    return tuple(text.split(",")) if text else ()


def panel_of(named: Iterable[str], alone: str | None = None) -> tuple[str, ...]:
    """The models that vote in turn, in place of one that judges `alone`.

    Raises:
        UsageError: a name is empty, or is there twice; or both a panel and one judge are named.
    """
    models = tuple(name.strip() for name in named)
    if models and alone:
        raise UsageError(
            f"--judge-model={alone}: the models of --judge-panel judge in its place; leave one of the two out"
        )
    told = f"--judge-panel={','.join(models)}"
    if not all(models):
        raise UsageError(f"{told}: a name is empty; give the names of models, separated by commas")
    if twice := [name for place, name in enumerate(models) if name in models[:place]]:
        raise UsageError(f"{told}: {twice[0]!r} is there twice; --judge-votes asks a model more than once")
    return models


def votes_of(asked: int, panel: tuple[str, ...]) -> int:
    """The most votes on one criterion: with a panel at least one of each model, and always an odd number.

    Raises:
        UsageError: so many votes cannot decide, or leave out models of the panel.
    """
    if asked % 2 == 0:
        raise UsageError(
            f"--judge-votes={asked}: an even number of votes may come to no majority; name an odd one"
        )
    if asked < 1:
        raise UsageError(f"--judge-votes={asked}: nobody would judge; name an odd number, 1 or more")
    if 1 < asked < len(panel):
        raise UsageError(
            f"--judge-votes={asked}: the panel has {len(panel)} models, and not all of them would have a "
            "vote; ask for more votes or name fewer models"
        )
    return max(asked, len(panel) | 1)
