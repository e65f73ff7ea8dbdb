"""What to do next: after a failed run, without a verdict, and where tests broke."""

import re
from collections.abc import Iterator

from ci_evals.domain import numbers
from ci_evals.domain.providers import Provider
from ci_evals.domain.results.gate import CheckKind
from ci_evals.domain.results.run import Results
from ci_evals.domain.verdict import Outcome
from ci_evals.gate.rules import rule_of
from ci_evals.reports.story import advice, gate, headline, highlights, trial_errors
from ci_evals.reports.story.comparison import change, significance
from ci_evals.reports.story.failed_tests import FailedTest
from ci_evals.reports.story.headline import News
from ci_evals.reports.story.labels import UNFINISHED, RunOutcome

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


def what_to_do(results: Results, news: News) -> str:
    """The next step without a verdict, after a failed one, or where tests broke; empty if none is known."""
    outcome = highlights.run_outcome(results)
    if outcome in UNFINISHED:
        return _without_verdict(results, outcome)
    if outcome is RunOutcome.FAILED:
        return " ".join(part for part in (_after_failure(results, news), advice.exit_code(results)) if part)
    if outcome is RunOutcome.PASSED and news.broke:
        return _after_failure(results, news)
    return ""


def _without_verdict(results: Results, outcome: RunOutcome) -> str:
    fails = advice.build_fails(results)
    if outcome is RunOutcome.INTERRUPTED:
        return f"Rerun to get a verdict. {fails}"
    limit = next((check for check in gate.failing(results) if check.kind is CheckKind.MAX_ERRORS), None)
    allowed = ""
    if limit and limit.seen is not None:
        most = numbers.count(int(limit.required or 0), "errored or undecided trial")
        was = "was" if limit.seen == 1 else "were"
        allowed = f"max-errors allows {most}; there {was} {int(limit.seen):,}."
    at_fault = trial_errors.at_fault(results.suites)
    look = f"Look first at {at_fault}. Fix that and rerun." if at_fault else "Fix the cause and rerun."
    if not at_fault and highlights.without_judge(results, results.suites):
        look = advice.NO_JUDGE
    evidence = _evidence(results) if change.too_little_decided(results) or results.score is None else ""
    return " ".join(part for part in (look, evidence, allowed, fails) if part)


def _evidence(results: Results) -> str:
    """What would give the evidence that undecided criteria lack."""
    causes = {
        finding.cause
        for test in results.tests
        for trial in test.trials
        if trial.complete
        for finding in trial.findings
        if finding.outcome is Outcome.UNDECIDED and finding.cause is not None
    }
    return advice.evidence_for(causes)


def _after_failure(results: Results, news: News) -> str:
    """What to do about failed tests. Another tool's are not played here."""
    floor, failing = headline.run_floor(results), gate.failing(results)
    if any(suite.of_other_tool for suite in results.suites):
        return ""
    of_rules = [rule_of(check).advice for check in failing]
    if of_rules and all(of_rules):
        return of_rules[0]
    if floor in failing and change.too_little_decided(results) and (evidence := _evidence(results)):
        return evidence
    if news.to_look_at:
        return f"{advice.READ_FAILURES} {_about_failures(results, news)}"
    return advice.OTHER_FLOOR if news.failed_before and floor in failing else ""


def _about_failures(results: Results, news: News) -> str:
    comparison = results.comparison
    proven = comparison is not None and significance.proven(comparison)
    if proven or all(map(_always_failed, news.to_look_at)):
        return advice.FIX_FAILURES
    if results.run.origin and results.run.origin.how == "replay":
        return advice.REPLAYED
    where = " on your machine" if results.run.git.pull_request is not None else ""
    how = ", with the other options of this run" if _needs_more_options(results) else ""
    return (
        f"To see whether a test fails again, repeat it{where}{how}: {rerun_command(results, news)}. "
        f"If any trial fails, fix it.{_if_all_pass(results)}"
    )


def _if_all_pass(results: Results) -> str:
    if not gate.failing(results):
        return ""
    if headline.run_floor(results) in gate.failing(results) and headline.fails_mostly(results):
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
        if isinstance(value, str) and value and value != Provider.OPENAI:
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
