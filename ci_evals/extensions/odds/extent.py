"""How much a run like a saved one plays and costs, where that depends on what it sees."""

from ci_evals.domain import numbers
from ci_evals.domain.choices import BothSides
from ci_evals.domain.results.run import Results
from ci_evals.reports.story import agents


def extent(results: Results, loops: int) -> str | None:
    """Return its trials and its cost, in a sentence; None if they are the same each time.

    They differ in rounds, and with a base agent (option `against`), which earlier runs may spare.
    `loops` is how often it plays each test at most.
    """
    run, config = results.run, results.run.config
    played_agents = agents.number(results)
    if not run.rounds and played_agents == 1:
        return None
    first = run.rounds.looks[0] if run.rounds else loops
    if config.get("arms") is not None or config.get("bothSides") == BothSides.ALWAYS:
        first *= played_agents
    last = loops * played_agents
    trials = f"{numbers.extent(first, last, str)} {'trial' if last == 1 else 'trials'}"
    text = f"Such a run has {trials} of each test"
    if played_agents > 1:
        beside = "the base agent" if played_agents == 2 else "all agents"
        text += f", those of {beside} included"
    if not results.usage.cost_usd or results.counts.taken_trials:
        return f"{text}."
    played = run.rounds.played if run.rounds else loops
    of_trial = results.usage.cost_usd / (played * (len(results.arms) or 1))
    cost = numbers.extent(of_trial * first, of_trial * last, numbers.money)
    return f"{text}, for about {cost}."
