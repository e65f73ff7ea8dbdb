"""A model asked for all missing translations: what it answered, and what that cost."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ci_evals.cli import environment_secrets
from ci_evals.cli.process.interruption import Interruption
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.terminal import progress
from ci_evals.domain import numbers
from ci_evals.domain.errors import Exit, LLMError, UsageError
from ci_evals.domain.prices import PriceTable, check_priced
from ci_evals.domain.progress import Event
from ci_evals.domain.providers import OFFLINE
from ci_evals.domain.results.judge import JudgeUsed
from ci_evals.extension_registry import judging_providers, providers
from ci_evals.extension_support.asking import Asking, QuestionBudget
from ci_evals.extension_support.rejudging import judges
from ci_evals.extensions.personas.settings import PersonasSettings
from ci_evals.extensions.personas.translator import Question, translate
from ci_evals.reports import sanitize
from ci_evals.scoring.usage import usage_of_roles
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.providers import llm_key_of, sdk_of
from ci_evals.wiring.waits import report_waits

_PARALLEL = 4
"""Questions at a time."""

SuiteQuestion = tuple[int, Question]
"""The index of a suite, and a question about its lines."""


@dataclass(frozen=True)
class Translated:
    """The translations that a model gave."""

    model: str = ""
    texts: Mapping[tuple[int, str], Mapping[str, str]] = field(default_factory=dict)
    """By the index of a suite and a language: the translations by their lines."""
    incomplete: frozenset[int] = frozenset()
    """Indexes of suites of which a line has no translation."""
    faults: Sequence[str] = ()


NOTHING = Translated()
"""For suites that lack no translation."""


@dataclass(frozen=True)
class _Answer:
    texts: Mapping[str, str]
    fault: str | None = None


def ask_model(
    questions: Sequence[SuiteQuestion], settings: PersonasSettings, context: RunContext
) -> Translated:
    """Ask the model all questions, and say what it cost. Exit if that is interrupted.

    Raises:
        UsageError: before it is asked: there is no model, no key, or no price to keep to a limit.
    """
    connections = _connections(settings, context)
    model = settings.model or providers()[connections.provider].judge
    context.hide(
        (settings.llm_key, connections.llm_key, connections.llm_token),
        environment_secrets.values_in(context.environ),
    )
    context.mask()
    prices = context.prices(settings.prices, connections.provider)()
    budget = None
    if settings.max_cost is not None:
        if not providers()[connections.provider].reports_cost:
            check_priced([model], prices)
        budget = QuestionBudget(settings.max_cost, prices)
    session = _Session(questions, connections, model, budget, quiet=settings.quiet, context=context)
    return session.play(prices)


def _connections(settings: PersonasSettings, context: RunContext) -> Connections:
    provider = settings.provider
    if provider == OFFLINE.name:
        others = ", ".join(judging_providers())
        raise UsageError(f"`provider=offline`: no model can translate; set another provider: {others}")
    key, token = llm_key_of(provider, settings.llm_key, context.environ)
    if providers()[provider].needs_key and not (key or token):
        vendor = sdk_of(provider, context.environ).vendor
        raise UsageError(
            f"no key for the model that translates ({provider}): set LLM_API_KEY or {vendor.key}"
        )
    return Connections(
        provider=provider,
        llm_key=key,
        llm_token=token,
        llm_timeout=settings.llm_timeout,
        environ=context.environ,
    )


@dataclass(frozen=True)
class _Session:
    questions: Sequence[SuiteQuestion]
    connections: Connections
    model: str
    budget: QuestionBudget | None
    quiet: bool
    context: RunContext

    def play(self, prices: PriceTable) -> Translated:
        console = self.context.console
        if not self.quiet:
            name = sanitize.log_line(self.model, 200)
            console.say(f"Asking {name} {numbers.count(len(self.questions), 'question')}")
        interruption = Interruption(self.context)
        answers, asking = interruption.play(self._ask_all(interruption))
        console.say(_spent(asking, prices))
        if asking.stop.bug:
            raise asking.stop.bug
        if asking.stop.interrupted:
            console.say("Interrupted: no lock file was written")
            sys.exit(Exit.INTERRUPTED)
        return self._outcome(answers, [*self._faults(answers, asking)])

    async def _ask_all(self, interruption: Interruption) -> tuple[list[_Answer | None], Asking]:
        redactor = self.context.redactor
        async with (
            judges(self.connections, redactor) as models,
            report_waits(models.waits, self._report_wait),
        ):
            provider = self.connections.provider
            asking = Asking(
                judges=models,
                panel=(self.model,),
                used=JudgeUsed(provider=provider, models=(self.model,), votes=1, prompt=""),
                redactor=redactor,
                parallel=_PARALLEL,
                stop=interruption.stop,
                budget=self.budget,
            )
            (llm,) = asking.llms

            async def ask(number: int) -> _Answer:
                _, question = self.questions[number]
                try:
                    return _Answer(await translate(llm, question, f"translate/{number}"))
                except LLMError as error:
                    return _Answer({}, str(error))

            numbered = range(len(self.questions))
            return await asking.each(numbered, ask, lambda answer: answer.fault), asking

    def _report_wait(self, event: Event) -> None:
        notice = progress.notice_of(event, 0)
        if notice and not self.quiet:
            self.context.console.say(notice)

    def _faults(self, answers: Sequence[_Answer | None], asking: Asking) -> Iterator[str]:
        known = False
        for (_, question), answer in zip(self.questions, answers, strict=True):
            if answer and answer.fault:
                known = True
                yield f"{question.test} ({question.language}): {answer.fault}"
        if self.budget and self.budget.refused:
            most = numbers.money(self.budget.most)
            yield f"the other lines were not translated, to stay within {most} (max-cost)"
        elif asking.stop.reason and not known:
            yield asking.stop.reason

    def _outcome(self, answers: Sequence[_Answer | None], faults: Sequence[str]) -> Translated:
        texts: dict[tuple[int, str], dict[str, str]] = {}
        incomplete = set()
        for (suite, question), answer in zip(self.questions, answers, strict=True):
            if answer is None or answer.fault:
                incomplete.add(suite)
            else:
                texts.setdefault((suite, question.language), {}).update(answer.texts)
        return Translated(self.model, texts, frozenset(incomplete), faults)


def _spent(asking: Asking, prices: PriceTable) -> str:
    usage = asking.usage
    tokens = sum(one.input_tokens + one.output_tokens for one in usage)
    calls = sum(one.calls for one in usage)
    cost = usage_of_roles(usage, prices).cost_usd if usage else None
    price = "" if cost is None else f", {numbers.money(cost)}"
    return f"The model was asked {numbers.count(calls, 'time')}: {numbers.tokens(tokens)} tokens{price}"
