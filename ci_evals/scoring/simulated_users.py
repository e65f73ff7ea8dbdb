"""Checks of the simulated users, counted over the trials of a run."""

from collections import Counter
from collections.abc import Iterable, Iterator

from ci_evals.domain.results.simulated_user import UserAudit, UserChecks
from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import EndState
from ci_evals.scoring.agreement.clustered import Bundle, share_of


def user_checks(tests: Iterable[TestResult]) -> UserChecks | None:
    """Count what became of the simulated users; None without a user that a model played."""
    tests = tuple(tests)
    trials = [trial for test in tests for trial in test.trials]
    audits = [audit for trial in trials for audit in _audits(trial)]
    if not audits:
        return None
    broken = Counter(rule for audit in audits for rule in {violation.rule for violation in audit.violations})
    return UserChecks(
        conversations=len(audits),
        rerun=sum(any(attempt.user_audit for attempt in trial.attempts) for trial in trials),
        invalid=sum(trial.status is EndState.INVALID_USER for trial in trials),
        audited=sum(audit.by_model is True for audit in audits),
        not_audited=sum(audit.by_model is False for audit in audits),
        by_rule=dict(sorted(broken.items(), key=lambda item: (-item[1], item[0]))),
        violation_rate=share_of(_first_users(test) for test in tests),
    )


def _first_users(test: TestResult) -> Bundle:
    """Count the users that broke character in the first conversations of the test's trials."""
    firsts = [next(_audits(trial), None) for trial in test.trials]
    audits = [audit for audit in firsts if audit]
    return Bundle(yes=sum(not audit.valid for audit in audits), of=len(audits))


def _audits(trial: TrialResult) -> Iterator[UserAudit]:
    """Yield the audit of each conversation of a trial, the one that counts last."""
    for audit in (*(attempt.user_audit for attempt in trial.attempts), trial.user_audit):
        if audit:
            yield audit
