"""The judge check: control questions to the judges of a run, asked beside its first conversations."""

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from pydantic import ValidationError

from ci_evals.domain.choices import CheckMode
from ci_evals.domain.prices import PriceTable
from ci_evals.domain.results.judge import JudgeCheck
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.usage import RoleUsage
from ci_evals.grading import control
from ci_evals.metering import MeteredLLM
from ci_evals.ports import LLM
from ci_evals.reports.facts.invalid_run import why_not_passed
from ci_evals.scoring.usage import usage_of_roles
from ci_evals.support.redaction import Redactor
from ci_evals.wiring import JudgeCache

LONGEST_AGE = timedelta(days=30)
"""The age up to which a passed check counts: a model may be replaced silently."""
_CLOCK_SKEW = timedelta(hours=1)


@dataclass(frozen=True)
class CheckedJudge:
    """A judge to be checked, and the cache of its passed checks."""

    llm: LLM
    """Asked directly, past any cache of answers."""
    cache: JudgeCache | None = None


@dataclass(frozen=True)
class JudgeCheckSettings:
    """Everything that a judge check needs besides the judges."""

    mode: CheckMode
    provider: str | None
    redactor: Redactor
    baseline: Results | None
    prices: Callable[[], PriceTable]
    now: Callable[[], datetime]
    spent: Callable[[RoleUsage], None] = lambda _: None


class JudgeChecks:
    """The checks of all judges of one run, taken from an earlier run or asked now."""

    def __init__(self, judges: Iterable[CheckedJudge], settings: JudgeCheckSettings) -> None:
        """Ask nobody yet. Each model is checked once; until it has passed, its answers are not cached."""
        self._judges = tuple({judge.llm.model: judge for judge in judges}.values())
        self._settings, self._meters = settings, list[MeteredLLM]()
        self._done: dict[str, JudgeCheck] = {}
        if settings.mode is not CheckMode.OFF:
            for judge in self._judges:
                if judge.cache:
                    judge.cache.hold()

    async def ask(self) -> None:
        """Check every judge, by asking those without a recent passed check."""
        if self._settings.mode is not CheckMode.OFF:
            await asyncio.gather(*map(self._check, self._judges))

    @property
    def checks(self) -> tuple[JudgeCheck, ...]:
        """The checks that are done, in the order of the judges."""
        return tuple(self._done[judge.llm.model] for judge in self._judges if judge.llm.model in self._done)

    @property
    def usage(self) -> tuple[RoleUsage, ...]:
        """The calls and tokens of the questions asked until now."""
        return tuple(meter.usage for meter in self._meters if meter.calls)

    @property
    def refusal(self) -> str | None:
        """The reason why a provider refused the key, if one did."""
        return next((meter.refusal for meter in self._meters if meter.refusal), None)

    @property
    def failed(self) -> bool:
        """Return whether a judge did not pass, and that is no mere warning."""
        return not self.only_warn and any(not check.passed for check in self.checks)

    @property
    def only_warn(self) -> bool:
        """Return whether a judge that did not pass is a warning only."""
        return self._settings.mode is CheckMode.WARN

    def warnings(self) -> tuple[str, ...]:
        """The judges that did not pass, if that is a warning only."""
        failed = [check for check in self.checks if not check.passed]
        return tuple(f"judge check: {why_not_passed(check)}" for check in failed) if self.only_warn else ()

    async def _check(self, judge: CheckedJudge) -> None:
        digest = control.prompt_digest()
        earlier = None if self._settings.mode is CheckMode.ALWAYS else self._earlier(judge, digest)
        check = self._done[judge.llm.model] = earlier or await self._ask(judge, digest)
        if check.passed and judge.cache:
            judge.cache.release()

    async def _ask(self, judge: CheckedJudge, digest: str) -> JudgeCheck:
        settings = self._settings
        meter = MeteredLLM(judge.llm, "judge", settings.spent)
        self._meters.append(meter)
        result = await control.ask(meter, settings.redactor)
        check = settings.redactor.model(
            JudgeCheck(
                asked=result.asked,
                right=result.right,
                required=result.required,
                passed=result.passed,
                why=result.failure,
                model=judge.llm.model,
                provider=settings.provider,
                prompt=digest,
                at=settings.now(),
                cost_usd=usage_of_roles([meter.usage], settings.prices()).cost_usd,
            )
        )
        if check.passed and judge.cache:
            judge.cache.keep_check(digest, check.model_dump_json(by_alias=True))
        return check

    def _earlier(self, judge: CheckedJudge, digest: str) -> JudgeCheck | None:
        """The recent passed check of this judge, if one is known."""
        saved = self._settings.baseline
        known: list[tuple[JudgeCheck, Literal["baseline", "cache"]]] = []
        known += [(check, "baseline") for check in (saved.judge_checks if saved else ())]
        known += [
            (check, "cache") for check in _read(judge.cache.find_check(digest) if judge.cache else None)
        ]
        now = self._settings.now()
        for check, source in known:
            same = (check.model, check.provider, check.prompt) == (
                self._settings.redactor.text(judge.llm.model),
                self._settings.provider,
                digest,
            )
            recent = -_CLOCK_SKEW <= now - check.at <= LONGEST_AGE
            if same and recent and check.passed and check.right >= check.required:
                return check.model_copy(update={"taken_from": source})
        return None


def _read(text: str | None) -> Sequence[JudgeCheck]:
    """The check that was kept; nothing if it cannot be read."""
    if text is None:
        return ()
    try:
        return (JudgeCheck.model_validate(json.loads(text)),)
    except (ValueError, RecursionError, ValidationError):
        return ()
