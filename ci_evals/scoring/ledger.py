"""What became of the simulated users of a run: counted from its trials, whatever they have been through."""

from collections import Counter
from collections.abc import Iterable, Iterator

from ci_evals.domain.results import TrialResult
from ci_evals.domain.transcript import EndState
from ci_evals.domain.trust import UserAudit, UserLedger


def user_ledger(trials: Iterable[TrialResult]) -> UserLedger | None:
    """The ledger of a run; None where no conversation had a user that a model played."""
    trials = tuple(trials)
    audits = [audit for trial in trials for audit in _audits(trial)]
    if not audits:
        return None
    broken = Counter(rule for audit in audits for rule in {breach.rule for breach in audit.breaches})
    return UserLedger(
        conversations=len(audits),
        played_again=sum(any(one.user_audit for one in trial.attempts) for trial in trials),
        invalid=sum(trial.status is EndState.INVALID_USER for trial in trials),
        audited=sum(audit.by_model is True for audit in audits),
        not_audited=sum(audit.by_model is False for audit in audits),
        by_rule=dict(sorted(broken.items(), key=lambda item: (-item[1], item[0]))),
    )


def _audits(trial: TrialResult) -> Iterator[UserAudit]:
    """Of every conversation that was looked at, the one that counts last."""
    for audit in (*(attempt.user_audit for attempt in trial.attempts), trial.user_audit):
        if audit:
            yield audit
