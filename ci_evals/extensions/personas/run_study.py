"""The scores by persona and language that the results of each run keep."""

from ci_evals.domain.results.run import Results
from ci_evals.domain.results.studies import Study
from ci_evals.extensions.personas.suite_keys import has_other_user


def study(results: Results) -> Study | None:
    """The scores by persona and language, if the run has any."""
    if not any(has_other_user(test) for test in results.tests):
        return None
    from ci_evals.extensions.personas.persona_scores import persona_scores  # noqa: PLC0415

    return persona_scores(results)
