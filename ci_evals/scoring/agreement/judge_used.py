"""The judge that a run's verdicts are from."""

from ci_evals.domain.results.judge import JudgeUsed
from ci_evals.domain.results.run import Results


def judge_of(results: Results) -> JudgeUsed | None:
    """The judge of a run, of all its suites together; None where nobody judged."""
    models = {model for suite in results.suites for model in suite.models.judges}
    if not models:
        return None
    return JudgeUsed(
        provider=results.run.provider,
        models=tuple(sorted(models)),
        votes=max(suite.judge_votes for suite in results.suites),
        prompt=results.run.digests.judge_prompt,
    )


def unlike(judge: JudgeUsed, other: JudgeUsed) -> str | None:
    """In what two judges differ, in words; None where what is known of the one holds for the other."""
    words = {"provider": "the provider", "models": "the model", "votes": "the votes", "prompt": "the prompt"}
    changed = [word for name, word in words.items() if getattr(judge, name) != getattr(other, name)]
    return f"another judge: {' and '.join(changed)} changed" if changed else None
