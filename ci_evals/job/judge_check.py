"""The judge check: control questions to the judges of a run, asked beside its first conversations."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
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
from ci_evals.reports.story.gate import why_not_passed
from ci_evals.scoring.usage import usage_of_roles
from ci_evals.stop import Stop
from ci_evals.support import dataclass_json
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.models import CheckedJudge

LONGEST_AGE = timedelta(days=30)
"""The age up to which a passed check counts: a model may be replaced silently."""
_CLOCK_SKEW = timedelta(hours=1)


@dataclass
class JudgeChecks:
    """The checks of all judges of one run, taken from an earlier run or asked now.

    Each model is checked once; until it has passed, its answers are not cached.
    """

    judges: Iterable[CheckedJudge]
    mode: CheckMode
    provider: str | None
    redactor: Redactor
    baseline: Results | None
    prices: Callable[[], PriceTable]
    now: Callable[[], datetime]
    subjects: Sequence[control.Subject] = (control.CRITERIA,)
    """The sets of control questions; each must be passed by itself."""
    spent: Callable[[RoleUsage], None] = lambda _: None

    def __post_init__(self) -> None:
        self._judges = {judge.llm.model: judge for judge in self.judges}
        self._meters: list[MeteredLLM] = []
        self._done: dict[str, JudgeCheck] = {}
        if self.mode is not CheckMode.OFF:
            for judge in self._judges.values():
                if judge.cache:
                    judge.cache.hold()

    async def ask(self, stop: Stop) -> None:
        """Check every judge, by asking those without a recent passed check."""
        if self.mode is not CheckMode.OFF:
            await stop.run_until_stopped(self._ask_all())
        if refusal := next((meter.refusal for meter in self._meters if meter.refusal), None):
            stop.request(refusal, outage=True)

    async def _ask_all(self) -> None:
        await asyncio.gather(*map(self._check, self._judges.values()))

    @property
    def checks(self) -> tuple[JudgeCheck, ...]:
        """The checks that are done, in the order of the judges."""
        return tuple(self._done[model] for model in self._judges if model in self._done)

    @property
    def usage(self) -> tuple[RoleUsage, ...]:
        """The calls and tokens of the questions asked until now."""
        return tuple(meter.usage for meter in self._meters if meter.calls)

    @property
    def failed(self) -> bool:
        """Return whether a judge did not pass, and that is no mere warning."""
        return not self.only_warn and any(not check.passed for check in self.checks)

    @property
    def only_warn(self) -> bool:
        """Return whether a judge that did not pass is a warning only."""
        return self.mode is CheckMode.WARN

    def warnings(self) -> tuple[str, ...]:
        """The judges that did not pass, if that is a warning only."""
        failed = [check for check in self.checks if not check.passed]
        if not self.only_warn:
            return ()
        return tuple(f"judge check: {why_not_passed(check, only_warn=True)}" for check in failed)

    async def _check(self, judge: CheckedJudge) -> None:
        digest = control.prompt_digest(self.subjects)
        earlier = None if self.mode is CheckMode.ALWAYS else self._earlier(judge, digest)
        check = self._done[judge.llm.model] = earlier or await self._ask(judge, digest)
        if check.passed and judge.cache:
            judge.cache.release()

    async def _ask(self, judge: CheckedJudge, digest: str) -> JudgeCheck:
        meter = MeteredLLM(judge.llm, "judge", self.spent)
        self._meters.append(meter)
        results = [await control.ask(meter, self.redactor, subject) for subject in self.subjects]
        failures = [result.failure for result in results if result.failure]
        check = self.redactor.model(
            JudgeCheck(
                asked=sum(result.asked for result in results),
                right=sum(result.right for result in results),
                required=sum(result.required for result in results),
                passed=not failures,
                why=failures[0] if failures else None,
                model=judge.llm.model,
                provider=self.provider,
                address=judge.service.shown if judge.service else None,
                address_digest=judge.service.digest if judge.service else None,
                prompt=digest,
                at=self.now(),
                cost_usd=usage_of_roles([meter.usage], self.prices()).cost_usd,
            )
        )
        if check.passed and judge.cache:
            judge.cache.keep_check(digest, dataclass_json.to_json(check))
        return check

    def _earlier(self, judge: CheckedJudge, digest: str) -> JudgeCheck | None:
        if judge.service is None:
            return None
        expected = (self.redactor.text(judge.llm.model), self.provider, judge.service.digest, digest)
        for check, source in self._known(judge, digest):
            recent = -_CLOCK_SKEW <= self.now() - check.at <= LONGEST_AGE
            same = (check.model, check.provider, check.address_digest, check.prompt) == expected
            if same and recent and check.passed and check.right >= check.required:
                return replace(check, taken_from=source)
        return None

    def _known(
        self, judge: CheckedJudge, digest: str
    ) -> Iterator[tuple[JudgeCheck, Literal["baseline", "cache"]]]:
        for check in self.baseline.judge_checks if self.baseline else ():
            yield check, "baseline"
        kept = judge.cache.find_check(digest) if judge.cache else None
        try:
            cached = dataclass_json.from_json(JudgeCheck, kept) if kept else None
        except ValidationError:
            return
        if cached:
            yield cached, "cache"
