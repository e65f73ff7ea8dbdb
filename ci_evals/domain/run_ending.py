"""The way in which a run ended."""

from dataclasses import dataclass

from ci_evals.domain.results.judge import JudgeCheck


@dataclass(frozen=True)
class RunEnding:
    """The way in which a run ended."""

    interrupted: bool = False
    stopped_because: str | None = None
    failed_fast: bool = False
    """True if it was stopped since a trial had failed: then no more were wanted."""
    bug: bool = False
    """True if it was stopped by a bug of ours."""
    judge_checks: tuple[JudgeCheck, ...] = ()
    """The check of each model that judges."""
    judge_only_warned: bool = False
    """True if a judge that did not pass its check is a warning only (option `judge_check`: `warn`)."""
    incomplete: tuple[str, ...] = ()
    """The reasons why merged results are not complete."""
