"""Where suites and gate require less than in the baseline, in sentences. Not yet sanitized."""

from collections import Counter
from dataclasses import dataclass

from ci_evals.domain import numbers
from ci_evals.domain.results.gate import CheckKind
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.weakened import Weakened, Weakening, WeakeningKind
from ci_evals.reports.story.phrases import capitalized, joined, sentence

APPROVE = "/evals approve suite"
"""The command that approves weakened suites, as a comment in the pull request: followed by their code."""
_LISTED = 20
"""Weakenings that are listed."""
_GONE = (
    (WeakeningKind.SUITE_REMOVED, "suite", "suites"),
    (WeakeningKind.TEST_REMOVED, "test", "tests"),
    (WeakeningKind.CRITERION_REMOVED, "criterion", "criteria"),
)
_CHANGED = (
    (WeakeningKind.TEST_QUARANTINED, "1 test is in quarantine", "{} tests are in quarantine"),
    (WeakeningKind.TEST_NOT_CRITICAL, "1 test is no longer critical", "{} tests are no longer critical"),
    (WeakeningKind.TEST_MAY_ESCALATE, "1 test allows a hand-over", "{} tests allow a hand-over"),
    (
        WeakeningKind.TEST_JOINED_CLUSTER,
        "1 test counts as one with another",
        "{} tests count as one with others",
    ),
    (
        WeakeningKind.TEST_LOST_TRAIT,
        "1 simulated user lost a trait",
        "{} simulated users lost a trait",
    ),
    (
        WeakeningKind.TEST_LEFT_PART,
        "1 test left a part of the run with its own limit",
        "{} tests left a part of the run with its own limit",
    ),
    (
        WeakeningKind.TEST_WHEN_NARROWED,
        "1 test depends on fewer paths",
        "{} tests depend on fewer paths",
    ),
    (WeakeningKind.WEIGHT_LOWERED, "1 weight is lower", "{} weights are lower"),
    (WeakeningKind.MIN_SCORE_LOWERED, "1 minScore is lower", "{} values of minScore are lower"),
    (WeakeningKind.LIMIT_LOOSENED, "1 limit of the gate is looser", "{} limits of the gate are looser"),
)
_LABELS = {
    WeakeningKind.SUITE_REMOVED: "Gone",
    WeakeningKind.TEST_REMOVED: "Gone",
    WeakeningKind.CRITERION_REMOVED: "Gone",
    WeakeningKind.TEST_QUARANTINED: "In quarantine",
    WeakeningKind.TEST_NOT_CRITICAL: "No longer critical",
    WeakeningKind.TEST_MAY_ESCALATE: "Allows a hand-over (mayEscalate)",
    WeakeningKind.TEST_JOINED_CLUSTER: "Joined a cluster",
    WeakeningKind.TEST_LOST_TRAIT: "Traits of the user",
    WeakeningKind.TEST_LEFT_PART: "No longer in",
    WeakeningKind.TEST_WHEN_NARROWED: "Depends on fewer paths (when)",
    WeakeningKind.WEIGHT_LOWERED: "Weight",
    WeakeningKind.MIN_SCORE_LOWERED: "minScore",
    WeakeningKind.LIMIT_LOOSENED: "",
}


@dataclass(frozen=True)
class WeakenedStory:
    """The requirements that were dropped since the baseline."""

    heading: str
    """How much of which kind, in a sentence."""
    items: tuple[str, ...]
    """Each by name, in a sentence; the last one says how many more there are."""
    approval: str
    """Who has approved it, in a sentence; empty if nobody has."""
    command: str
    """The comment that would approve it; empty if the run does not fail by it, or is of no pull request."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """All of it."""
        how = f"To approve it, comment in the pull request: {self.command}" if self.command else ""
        return tuple(one for one in (self.heading, *self.items, self.approval, how) if one)


def of_run(results: Results) -> WeakenedStory | None:
    """Return what is required no longer; None if nothing is known to be."""
    weakened = results.weakened
    if weakened is None or not (weakened.items or weakened.unknown):
        return None
    return WeakenedStory(_heading(weakened), _items(weakened), _approval(weakened), _command(results))


def _heading(weakened: Weakened) -> str:
    base = weakened.branch or "the baseline"
    counts = Counter(item.kind for item in weakened.items)
    gone = [numbers.count(counts[kind], noun, plural) for kind, noun, plural in _GONE if counts[kind]]
    parts = []
    if gone:
        total = sum(counts[kind] for kind, _, _ in _GONE)
        parts.append(f"{joined(gone)} of {base} {'is' if total == 1 else 'are'} gone")
    for kind, one, several in _CHANGED:
        if counts[kind]:
            parts.append(one if counts[kind] == 1 else several.format(counts[kind]))
    if weakened.unknown:
        parts.append(f"it is not known whether less is required than in {base}: {weakened.unknown}")
    text = "; ".join(parts)
    return sentence(capitalized(text))


def _items(weakened: Weakened) -> tuple[str, ...]:
    sentences = [_sentence(item) for item in weakened.items[:_LISTED]]
    more = len(weakened.items) - _LISTED
    if more > 0:
        sentences.append(f"{more} more are in `weakened` of _results.json.")
    return tuple(sentences)


def _sentence(item: Weakening) -> str:
    label, what = _LABELS[item.kind], _subject(item)
    if item.kind is WeakeningKind.TEST_LEFT_PART:
        return f"{label} {what}."
    if item.before is None:
        return f"{label}: {what}."
    subject = f"{label} of {what}" if label else what
    return f"{subject}: {item.before} before, {item.now or 'none'} now."


def _subject(item: Weakening) -> str:
    if item.option and item.test:
        return f"{item.option}: “{item.test}” of the suite “{item.suite}”"
    if item.option:
        return item.option
    if item.test is None:
        return f"the suite “{item.suite}”"
    test = f"“{item.test}” of the suite “{item.suite}”"
    return f"“{item.criterion}” in {test}" if item.criterion else test


def _approval(weakened: Weakened) -> str:
    approval = weakened.approval
    return f"Approved by {approval.by} in the pull request." if approval else ""


def _command(results: Results) -> str:
    weakened = results.weakened
    fails = any(check.kind is CheckKind.WEAKENED and check.passed is False for check in results.gate.checks)
    if weakened is None or weakened.code is None or not fails or results.run.git.pull_request is None:
        return ""
    return f"{APPROVE} {weakened.code}"
