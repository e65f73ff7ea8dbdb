"""What changed since the baseline, and where conversations diverge from it. Plain text, not yet sanitized."""

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ci_evals.domain import numbers
from ci_evals.domain.actions import LogicKind
from ci_evals.domain.results.comparison import (
    Comparison,
    Divergence,
    DivergentAction,
    SuiteComparison,
    TestChange,
)
from ci_evals.domain.results.run import Results
from ci_evals.reports.story import agents, phrases
from ci_evals.reports.story.phrases import capitalized, joined, sentence

_SHOWN_REASONS = 3
_RUN_ID = 80
"""Characters of a run's id."""
_MOST_NAMED = 3
"""The most names of a kind."""
_LONGEST_VALUE = 40
"""Characters."""
UNTRACED = "One of the two runs has no trace, so it is unknown where the conversations diverge."
"""Said of two conversations whose divergence is not known."""
_VERBS = {
    LogicKind.WORKFLOW: "ran",
    LogicKind.PARAMETER: "understood",
    LogicKind.RULE: "applied",
    LogicKind.INTEGRATION: "called",
}


@dataclass(frozen=True)
class Difference:
    """A list of tests that only one of the runs has, or that are defined differently."""

    title: str
    tests: tuple[str, ...]


def why_not(comparison: Comparison) -> str:
    """Return why there is no change to tell of: the first reasons."""
    reasons = numbers.listed(comparison.reasons, _SHOWN_REASONS, "reason")
    return reasons or "they have nothing in common"


def shown_reasons(comparison: Comparison) -> tuple[str, ...]:
    """Return why not all could be compared, as far as the sentence does not say it."""
    in_sentence = comparison.delta is None and len(comparison.reasons) <= _SHOWN_REASONS
    return () if in_sentence else comparison.reasons


def age(results: Results, comparison: Comparison) -> str:
    """The baseline's age relative to the run: `2 days before this run`."""
    started, at = phrases.utc(results.run.started_at), phrases.utc(comparison.baseline.at)
    seconds = (started - at).total_seconds()
    return f"{numbers.age(abs(seconds))} {'before' if seconds >= 0 else 'after'} this run"


def baseline(results: Results) -> str:
    """The run that this one was compared with, or why there is none, in a sentence; empty if nobody knows.

    A base agent that was played in the run is no other run.
    """
    comparison, note = results.comparison, capitalized((results.run.baseline_note or "").rstrip("."))
    if comparison is None:
        return sentence(note) if note else ""
    if comparison.method == "both-sides":
        return ""
    run = comparison.baseline
    commit = phrases.commit_name(run)
    which = f"commit {commit}" if commit else f"run “{run.run_id[:_RUN_ID]}”"
    when = f"{phrases.moment(run.at)}, {age(results, comparison)}"
    text = f"{note} ({when})" if note else f"Baseline: {which} of {when}"
    if comparison.delta is None:
        text += "; not compared with this run"
    if baseline_score_differs(comparison):
        text += f"; its score over all of its tests is {numbers.score(run.score)}"
    return sentence(text)


def passed_before(results: Results) -> str:
    """The sentence on a test that newly fails."""
    run = results.comparison.baseline if results.comparison else None
    commit = f" (commit {run.commit}{phrases.with_changes(run)})" if run and run.commit else ""
    return f"It passed in the baseline{commit}."


def pace(comparison: Comparison) -> str | None:
    """Cost, tokens and latency on both sides, in one line; None where nothing of it is known of this run."""
    head, base = comparison.head_efficiency, comparison.base_efficiency
    found = (
        ("cost per trial", numbers.money, head.cost_usd_per_trial, base.cost_usd_per_trial),
        ("tokens per trial", _tokens, head.tokens_per_trial, base.tokens_per_trial),
        ("median reply", numbers.latency, head.median_latency_seconds, base.median_latency_seconds),
        ("95 % of received replies within", _at_most, head.p95_latency_seconds, base.p95_latency_seconds),
    )
    parts = [f"{what} {show(here)} (baseline {show(there)})" for what, show, here, there in found if here]
    line = ", ".join(parts)
    return f"{line[0].upper()}{line[1:]}." if parts else None


def _at_most(seconds: float | None) -> str:
    return numbers.latency(seconds).removeprefix("below ")


def cost_beside(results: Results) -> tuple[str, ...]:
    """The cost of the run and of the baseline: `cost $0.0031 (main $0.0031)`; nothing if it is not known.

    That of a base agent which was played in the run is part of the run's.
    """
    if results.usage.cost_usd is None or not results.usage.calls:
        return ()
    comparison = results.comparison
    each = comparison.base_efficiency.cost_usd_per_trial if comparison else None
    there = ""
    if comparison and comparison.method != "both-sides" and each:
        base = comparison.baseline
        there = f" ({base.branch or 'baseline'} {numbers.money(each * base.trials)})"
    return (f"cost {numbers.money(results.usage.cost_usd)}{there}",)


def baseline_score_differs(comparison: Comparison) -> bool:
    """Return whether the baseline's score differs from that of the tests that were compared."""
    whole, part = comparison.baseline.score, comparison.base
    return comparison.delta is not None and numbers.score(whole) != numbers.score(part)


def newly_failing(comparison: Comparison) -> tuple[TestChange, ...]:
    """The newly failing tests, those first whose drop is confirmed, then the deepest fall."""
    return _by_drop(comparison.regressed)


def suspects(comparison: Comparison) -> tuple[TestChange, ...]:
    """The tests that fell far and are not named as newly failing, in the same order."""
    named = {(test.suite, test.name) for test in comparison.regressed}
    return _by_drop(test for test in comparison.suspects if (test.suite, test.name) not in named)


def scores(test: TestChange) -> str:
    """A test's score in the baseline and now: `79 → 70`."""
    return f"{numbers.points(test.base)} → {numbers.points(test.head)}"


def _by_drop(tests: Iterable[TestChange]) -> tuple[TestChange, ...]:
    return tuple(sorted(tests, key=lambda test: (not test.confirmed, test.delta or 0)))


def differences(comparison: Comparison) -> tuple[Difference, ...]:
    """The tests that were not compared."""
    found = (
        ("new", comparison.new),
        ("not in this run", comparison.removed),
        ("changed", comparison.changed),
    )
    many = len(comparison.suites) > 1
    return tuple(
        Difference(title, tuple(f"{test.suite} › {test.name}" if many else test.name for test in tests))
        for title, tests in found
        if tests
    )


def of_suites(results: Results) -> tuple[SuiteComparison | None, ...]:
    """For each suite what became of it. Suites of one name go by their order, as they were paired."""
    waiting: dict[str, deque[SuiteComparison]] = defaultdict(deque)
    for found in results.comparison.suites if results.comparison else ():
        waiting[found.name].append(found)
    return tuple(waiting[suite.name].popleft() if waiting[suite.name] else None for suite in results.suites)


def _tokens(number: float | None) -> str:
    return numbers.NONE if number is None else numbers.tokens(number)


def compared_part(results: Results, comparison: Comparison) -> str:
    """The part of the tests that was compared, where it is not all of both runs; else empty."""
    compared, here = comparison.tests, results.counts.deciding
    there = _baseline_tests(results, comparison)
    if compared < here:
        of = f"{compared} of {numbers.count(here, 'test')}"
        of += f" (the baseline has {there:,})" if there not in {compared, here} else ""
    elif compared < there:
        of = f"{compared} of {numbers.count(there, 'test')} of the baseline"
    elif numbers.score(results.score) != numbers.score(comparison.head):
        of = numbers.count(compared, "test")
    else:
        return ""
    return of


def _baseline_tests(results: Results, comparison: Comparison) -> int:
    """Tests of the baseline; on a suite's own page of that suite, which its lists tell."""
    new_or_removed = len(comparison.removed) - len(comparison.new)
    here = results.counts.deciding + new_or_removed
    there = comparison.baseline.tests - results.counts.quarantined
    return here if len(comparison.suites) == 1 else max(here, there)


def base_name(results: Results) -> str:
    """The name of the baseline in a sentence: its branch, `the baseline`, or the other agent."""
    comparison = results.comparison
    if comparison and comparison.method == "both-sides":
        return agents.base_agent(results)
    branch = comparison.baseline.branch if comparison else None
    return branch or "the baseline"


def in_base(results: Results) -> str:
    """The baseline as a place: `on main`, `in the baseline`, `with the base agent`."""
    comparison = results.comparison
    if comparison and comparison.method == "both-sides":
        return f"with {agents.base_agent(results)}"
    branch = comparison.baseline.branch if comparison else None
    return f"on {branch}" if branch else "in the baseline"


def since(results: Results) -> str:
    """The words that say what tests broke in: `in this PR`, or `since main` if an earlier commit may have.

    Of agents that were played in one run, `in “b” compared with “a”`, unless that is the base agent.
    """
    comparison = results.comparison
    both_sides = comparison is not None and comparison.method == "both-sides"
    of_base = comparison is not None and (both_sides or comparison.baseline.of_base_commit)
    if agents.other_arms(results) and (own := agents.gated_arm(results)):
        return f"in “{own}” compared with {base_name(results)}"
    if results.run.git.pull_request is not None and of_base:
        return "in this PR"
    return f"{'compared with' if both_sides else 'since'} {base_name(results)}"


def divergence_sentence(
    divergence: Divergence,
    show: Callable[[str], str] = str,
    *,
    trials: bool = True,
    several: bool = False,
    base: str = "the baseline",
) -> str:
    """The agent's different actions, and their turn. `show` writes a name, or a parameter's value.

    `trials`: whether to say which trials they are, unless both are the only ones, that is the first and not
    of `several`; `base`: what it diverges from.
    """
    first = divergence.head_trial == divergence.base_trial == 1
    return _of_agent(divergence, show, base, trials=trials and (several or not first)) + _of_user(divergence)


def _of_agent(divergence: Divergence, show: Callable[[str], str], base: str, *, trials: bool) -> str:
    trial, baseline = "", base
    if trials:
        trial, baseline = f"Trial {divergence.head_trial} ", f"trial {divergence.base_trial} of {base}"
    actions, base_actions = _actions(divergence.head, show), _actions(divergence.base, show)
    if divergence.turn is None:
        text = _same(divergence, baseline)
        trial = trial and f"{trial.rstrip()}: "
    elif divergence.only == "base":
        text = f"ends before turn {divergence.turn} of {baseline}" + (
            f": there it {base_actions}" if base_actions else ""
        )
    elif divergence.only == "head":
        text = f"continues where {baseline} ended: in turn {divergence.turn} it {actions or 'only spoke'}"
    else:
        there, now = f"there it {base_actions or 'did not'}", f"now it {actions or 'did not'}"
        text = f"diverges from {baseline} in turn {divergence.turn}: "
        text += f"{there}; {now}" if base_actions else f"{now}; {there}"
    text = f"{trial}{text}."
    return text[0].upper() + text[1:]


def _same(divergence: Divergence, baseline: str) -> str:
    """The words for equal actions throughout."""
    if divergence.unknown:
        listed = ", ".join(map(str, divergence.unknown))
        where = f"turn {listed}" if len(divergence.unknown) == 1 else f"turns {listed}"
        return f"same steps as {baseline} as far as known: one of them does not report {where}"
    if divergence.agent_differs is not None:
        return f"same steps as {baseline}; the answer changed in turn {divergence.agent_differs}"
    if divergence.user_differs is not None:
        return f"same steps and answers as {baseline}"
    return f"same conversation as {baseline}, word for word: only the verdict differs"


def _of_user(divergence: Divergence) -> str:
    if divergence.user_differs is None:
        return ""
    if divergence.user_differs == divergence.turn:
        return " The user's message differs there too."
    return f" The user's message differs in turn {divergence.user_differs}."


def _actions(deeds: Iterable[DivergentAction], show: Callable[[str], str]) -> str:
    by_kind: dict[LogicKind, list[str]] = {}
    for deed in deeds:
        by_kind.setdefault(deed.kind, []).append(_action_name(deed, show))
    return joined([f"{_VERBS[kind]} {joined(_first_names(names))}" for kind, names in by_kind.items()])


def _action_name(deed: DivergentAction, show: Callable[[str], str]) -> str:
    name = show(deed.name)
    if deed.value is None:
        return name
    value = deed.value if isinstance(deed.value, str) else json.dumps(deed.value, ensure_ascii=False)
    value = value if len(value) <= _LONGEST_VALUE else value[: _LONGEST_VALUE - 1] + "…"
    if deed.kind is LogicKind.WORKFLOW:
        return f"{name} with {show(value)}" if deed.value else name
    return f"{name} (status {value})" if deed.kind is LogicKind.INTEGRATION else f"{name} as {show(value)}"


def _first_names(names: list[str]) -> list[str]:
    more = len(names) - _MOST_NAMED
    return names if more <= 0 else [*names[:_MOST_NAMED], f"{more} more"]
