"""What the results of each run have of its personas."""

from ci_evals.domain.results.run import Results
from ci_evals.domain.results.studies import Study
from ci_evals.domain.results.suite import TestResult
from ci_evals.extensions.personas.suite_keys import LANGUAGE_TAG, PERSONA_TAG


def study(results: Results) -> Study | None:
    """The scores by persona and language, if the run has any."""
    if not any(_has_other_user(test) for test in results.tests):
        return None
    from ci_evals.extensions.personas.persona_scores import persona_scores  # noqa: PLC0415

    return persona_scores(results)


def _has_other_user(test: TestResult) -> bool:
    """Return whether a persona or a language of a suite made the test."""
    return test.cluster is not None and any(tag.startswith((PERSONA_TAG, LANGUAGE_TAG)) for tag in test.tags)
