"""What the results of each run have of its personas."""

from ci_evals.domain.results.run import Results
from ci_evals.domain.results.studies import Study
from ci_evals.extensions.personas.suite_keys import PERSONA_TAG


def study(results: Results) -> Study | None:
    """The scores by persona, if the run has any."""
    if not any(tag.startswith(PERSONA_TAG) for test in results.tests for tag in test.tags):
        return None
    from ci_evals.extensions.personas.persona_scores import persona_scores  # noqa: PLC0415

    return persona_scores(results)
