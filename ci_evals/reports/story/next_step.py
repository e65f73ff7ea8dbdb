"""The next step after a run: what to read, what to run and what to change. Not yet sanitized."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from ci_evals.domain import numbers
from ci_evals.domain.providers import OPENAI
from ci_evals.domain.results.gate import CheckKind
from ci_evals.domain.results.run import Results
from ci_evals.domain.verdict import Cause, Outcome
from ci_evals.gate.rules import rule_of
from ci_evals.reports.story import certainty, failures, gate, notes
from ci_evals.reports.story.advice import FIX_FAILURES, NO_JUDGE, REPLAYED
from ci_evals.reports.story.failures import FailedTest, News, TrialErrors
from ci_evals.reports.story.outcome_labels import UNFINISHED, RunOutcome

_EVIDENCE = {
    Cause.NO_TRACE: "let the agent export its spans (trace: otlp in the suite, or the option otlp)",
    Cause.NO_EVIDENCE: "let its replies report their tool calls (adapterOptions.toolCalls or trace: otlp)",
    Cause.NO_JUDGE: "choose a provider for the judge",
    Cause.NO_USER: "choose a provider for the simulated user",
    Cause.NO_MODEL: "set an embedding-model",
    Cause.CANNOT_TELL: "reword the criteria so that the conversation decides them",
}
_ENOUGH_TRIALS = 3
"""Trials of a test from which on a rerun shows nothing new if none passed."""
_SAFE = re.compile(r"(?!.*(?:::|##|  ))[\w./](?:[\w ./:;'()#@+=,?&-]*[\w./)])?")
"""Texts that a shell takes between double quotes as they are, and that no report has to change."""
_SAME_AGENT = {
    "adapter": "--adapter",
    "agentId": "--agent-id",
    "baseUrl": "--base-url",
    "start": "--start",
    "provider": "--provider",
    "userModel": "--user-model",
    "judgeModel": "--judge-model",
}
"""Options by their key in the run's config, without which another agent or judge would be asked."""
_OTHER_AGENT = ("adapterOptions", "arms", "against", "replay", "judgePanel", "embeddingModel", "waitFor")
"""Keys of options that do the same, and are more than a word."""


class PartKind(Enum):
    """How a report shows a part of a next step."""

    WORDS = "words"
    COMMAND = "command"
    REPORT = "report"
    """Leads to the report."""
    EXIT_CODE = "exit code"


@dataclass(frozen=True)
class StepPart:
    """A part of a next step."""

    text: str
    kind: PartKind = PartKind.WORDS
    in_report: str = ""
    """The words where the reader is in the report already; empty if they are the same."""

    @property
    def gap(self) -> str:
        """The text between the part before it and this one."""
        return "" if self.text.startswith((".", ",", ":", ";")) else " "


@dataclass(frozen=True)
class NextStep:
    """The next step after a run."""

    parts: tuple[StepPart, ...] = ()
    """None if nothing is known."""

    @property
    def text(self) -> str:
        """All of it in plain text."""
        return "".join(f"{part.gap}{part.text}" for part in self.parts).strip()

    @property
    def commands(self) -> tuple[str, ...]:
        """Its commands."""
        return tuple(part.text for part in self.parts if part.kind is PartKind.COMMAND)


def what_to_do(results: Results, news: News, errors: Sequence[TrialErrors]) -> NextStep:
    """The next step without a verdict, after a failed one, or where tests broke; empty if none is known."""
    return NextStep(tuple(_next_step(results, news, errors)))


def _next_step(results: Results, news: News, errors: Sequence[TrialErrors]) -> Iterator[StepPart]:
    outcome = gate.run_outcome(results)
    if outcome in UNFINISHED:
        yield from _without_verdict(results, errors)
    elif outcome is RunOutcome.FAILED:
        yield from _after_failure(results, news)
        yield from _exit_code(results)
    elif outcome is RunOutcome.PASSED and news.broke:
        yield from _after_failure(results, news)


def _without_verdict(results: Results, errors: Sequence[TrialErrors]) -> Iterator[StepPart]:
    if gate.run_outcome(results) is RunOutcome.INTERRUPTED:
        yield StepPart("Rerun to get a verdict.")
        yield from _build_fails(results)
        return
    at_fault = failures.at_fault(errors)
    if at_fault:
        yield StepPart(f"Look first at {at_fault}. Fix that and rerun.")
    elif notes.without_judge(results):
        yield StepPart(NO_JUDGE)
    else:
        yield StepPart("Fix the cause and rerun.")
    if errors:
        yield from _read_errors()
    if certainty.too_little_decided(results) or results.score is None:
        yield from _evidence(results)
    limit = next((check for check in gate.failing(results) if check.kind is CheckKind.MAX_ERRORS), None)
    if limit and limit.seen is not None:
        most = numbers.count(int(limit.required or 0), "errored or undecided trial")
        was = "was" if limit.seen == 1 else "were"
        yield StepPart(f"max-errors allows {most}; there {was} {int(limit.seen):,}.")
    yield from _build_fails(results)


def _evidence(results: Results) -> Iterator[StepPart]:
    """What would give the evidence that undecided criteria lack."""
    causes = {
        finding.cause
        for test in results.tests
        for trial in test.trials
        if trial.complete
        for finding in trial.findings
        if finding.outcome is Outcome.UNDECIDED and finding.cause is not None
    }
    if text := _evidence_for(causes):
        yield StepPart(text)


def _after_failure(results: Results, news: News) -> Iterator[StepPart]:
    """What to do about failed tests. Another tool's are not played here."""
    floor, failing = gate.run_floor(results), gate.failing(results)
    if any(suite.of_other_tool for suite in results.suites):
        if news.to_look_at:
            yield from _read_failures()
            yield StepPart(FIX_FAILURES)
        return
    of_rules = [rule_of(check).advice for check in failing]
    if of_rules and all(of_rules):
        yield StepPart(of_rules[0])
        return
    if floor in failing and certainty.too_little_decided(results):
        evidence = tuple(_evidence(results))
        if evidence:
            yield from evidence
            return
    if news.to_look_at:
        yield from _read_failures()
        yield from _about_failures(results, news)
    elif news.failed_before and floor in failing:
        yield from _other_floor()


def _about_failures(results: Results, news: News) -> Iterator[StepPart]:
    comparison = results.comparison
    proven = comparison is not None and certainty.proven(comparison)
    if proven or all(map(_always_failed, news.to_look_at)):
        yield StepPart(FIX_FAILURES)
        return
    if results.run.origin and results.run.origin.how == "replay":
        yield StepPart(REPLAYED)
        return
    where = " on your machine" if results.run.git.pull_request is not None else ""
    how = ", with the other options of this run" if _needs_more_options(results) else ""
    yield StepPart(f"To see whether a test fails again, repeat it{where}{how}:")
    yield StepPart(rerun_command(results, news), PartKind.COMMAND)
    yield StepPart(f". If any trial fails, fix it.{_if_all_pass(results)}")


def _if_all_pass(results: Results) -> str:
    if not gate.failing(results):
        return ""
    if gate.run_floor(results) in gate.failing(results) and certainty.fails_mostly(results):
        return (
            " If all pass, note that a rerun would probably fail again, because the score is too close to "
            "min-score."
        )
    return " If all pass, rerun this check."


def rerun_command(results: Results, news: News) -> str:
    """The command that repeats the first test that failed, which shows how often it does.

    Names that a shell would read otherwise, or that reports would change, are left for the reader to fill in.
    """
    first = next(iter(news.to_look_at), None)
    files = [suite.file for suite in results.suites if first and suite.name == first.suite]
    file = files[0] if len(files) == 1 and _SAFE.fullmatch(files[0]) and " " not in files[0] else "SUITE"
    name = first.name if first and _SAFE.fullmatch(first.name) else None
    options = [
        f"{option}={_quoted(value)}" for option, value in _same_agent(results) if _SAFE.fullmatch(value)
    ]
    return " ".join(
        ["ci-evals run", file, f"--test={_quoted(name) if name else 'NAME'}", *options, "--loops=10"]
    )


def _same_agent(results: Results) -> Iterator[tuple[str, str]]:
    for key, option in _SAME_AGENT.items():
        value = results.run.config.get(key)
        if isinstance(value, str) and value and value != OPENAI.name:
            yield option, value


def _needs_more_options(results: Results) -> bool:
    """True if the command of `rerun_command` lacks options that say which agent or judge is asked."""
    config = results.run.config
    unsafe = any(not _SAFE.fullmatch(value) for _, value in _same_agent(results))
    return unsafe or any(map(config.get, _OTHER_AGENT))


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[\w./:@+=,-]+", text) else f'"{text}"'


def _always_failed(failed: FailedTest) -> bool:
    """True if so many trials failed, and none passed, that a rerun would show nothing new."""
    test = failed.test
    return test is not None and test.pass_rate == 0 and len(test.trials) >= _ENOUGH_TRIALS


def _read_failures() -> Iterator[StepPart]:
    """The place to read about failures."""
    return _read("Read what failed", "ci-evals show --failed")


def _read_errors() -> Iterator[StepPart]:
    """The place to read why trials broke off and criteria are undecided."""
    return _read("Read each error", "ci-evals show")


def _read(what: str, command: str) -> Iterator[StepPart]:
    yield StepPart(what)
    yield StepPart("in report.html", PartKind.REPORT, "below")
    yield StepPart(", or by")
    yield StepPart(command, PartKind.COMMAND)
    yield StepPart(".")


def _other_floor() -> Iterator[StepPart]:
    """The next step if only tests fail that failed before."""
    yield StepPart("Fix the tests that fail, or set a floor that this agent meets:")
    yield StepPart("ci-evals odds", PartKind.COMMAND)
    yield StepPart("names one.")


def _build_fails(results: Results) -> Iterator[StepPart]:
    """The reason why a run without a verdict fails the build."""
    yield StepPart("Without a verdict the build fails: undecided never counts as passed.")
    yield from _exit_code(results)


def _exit_code(results: Results) -> Iterator[StepPart]:
    """The exit code; nothing if the command exits with 0."""
    if results.gate.exit_code:
        yield StepPart(f"Exit code {results.gate.exit_code}.", PartKind.EXIT_CODE)


def _evidence_for(causes: set[Cause]) -> str:
    """What gives the evidence that is missing for these causes, in a sentence; empty if nothing is known."""
    cures = [cure for cause, cure in _EVIDENCE.items() if cause in causes]
    if not cures:
        return ""
    return f"To decide more, {'; '.join(cures)}."
