"""Measures of an agent's process: the steps of one conversation, and summaries of many.

Pure. What a trace does not tell is no evidence: null, and never nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from math import fsum
from statistics import fmean, median
from sys import intern

from ci_evals.domain.actions import ActionsByKind, AgentAction, LogicKind, actions_of, own_calls
from ci_evals.domain.base import MOST
from ci_evals.domain.results.process import Fired, ProcessSummary, Times, TrialProcess
from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.results.usage import Usage
from ci_evals.domain.transcript import Turn, is_empty
from ci_evals.scoring.scores import ScoreRule, all_passed
from ci_evals.scoring.usage import cost_of_trial
from ci_evals.support.json_text import canonical

MOST_NAMES = 1_000
"""The most names of workflows begun, and of each kind of logic, kept of one conversation."""

ACCEPTABLE_COST = 1.0
"""US dollars of a trial that cost `COST_WEIGHT` of the score. This and the next two are the defaults of
`cost_adjusted_score` in the lecture on the evaluation of agents, section 8."""
COST_WEIGHT = 20.0
"""Points."""
MOST_TIMES = 2.0
"""A trial that costs more than so many times `ACCEPTABLE_COST` is punished no further."""

_LONGEST = 1e9
"""Seconds that results may hold."""


@dataclass(frozen=True)
class TraceSummary:
    """Process and coverage of one conversation. None without traces."""

    process: TrialProcess | None
    fired: Fired | None


def of_turns(turns: Iterable[Turn], optimal: Sequence[str] | None = None) -> TraceSummary:
    """Summarize the traces of a conversation, its workflows compared with the `optimal` ones.

    Of conversations that went alike the parts are the same objects, so that thousands take little memory.
    """
    turns = tuple(turns)
    actions = tuple(map(actions_of, turns))
    fired, process = _fired(turns, actions), _process(turns, actions)
    return TraceSummary(
        process=_shared_process(with_optimal(process, optimal)) if process else None,
        fired=_shared_fired(fired) if fired else None,
    )


def _fired(turns: Sequence[Turn], actions: Sequence[ActionsByKind]) -> Fired | None:
    names = {kind: _once([by_kind[kind] for by_kind in actions]) for kind in LogicKind}
    if all(reported is None for reported in names.values()):
        return None
    in_part = {kind for by_kind in actions for kind in LogicKind if by_kind[kind] is None}
    if any(turn.params is None for turn in turns):
        in_part.add(LogicKind.PARAMETER)
    return Fired(
        in_part=tuple(kind for kind in LogicKind if kind in in_part and names[kind] is not None),
        workflows=names[LogicKind.WORKFLOW],
        parameters=names[LogicKind.PARAMETER],
        rules=names[LogicKind.RULE],
        integrations=names[LogicKind.INTEGRATION],
    )


def _once(reported: Sequence[tuple[AgentAction, ...] | None]) -> tuple[str, ...] | None:
    """The names of all actions of a kind, each once; None if no reply reports the kind."""
    known = [actions for actions in reported if actions is not None]
    if not known:
        return None
    names: dict[str, None] = {}
    for actions in known:
        names |= {action.name: None for action in actions if not action.is_empty}
    return _interned(names)


def _interned(names: Iterable[str]) -> tuple[str, ...]:
    """The first of them, as texts that thousands of trials share."""
    return tuple(intern(str(name)) for name in islice(names, MOST_NAMES))


def _process(turns: Sequence[Turn], actions: Sequence[ActionsByKind]) -> TrialProcess | None:
    in_full = not any(turn.tool_calls_partial for turn in turns)
    workflows = _all_reported(LogicKind.WORKFLOW, actions) if in_full else None
    calls = _all_calls(turns, actions) if in_full else None
    if workflows is None and calls is None:
        return None
    none_reported = [()] * len(turns)
    walk = _Walk()
    integration_names: list[str] = []
    all_calls: list[AgentAction] = []
    for turn, ran, turn_calls in zip(turns, workflows or none_reported, calls or none_reported, strict=True):
        integrations = [call for call in turn_calls if not call.tool]
        walk.take(turn, ran, integrations)
        integration_names += [call.name for call in integrations]
        all_calls += turn_calls
    shows_backtracks = workflows is not None and (walk.left or not any(call.tool for call in all_calls))
    return TrialProcess(
        steps=len(walk.begun) + len(integration_names),
        tools=len(set(walk.begun)) + len(set(integration_names)),
        begun=None if workflows is None else _interned(walk.begun),
        repeated=walk.repeated if walk.params_known else None,
        calls=None if calls is None else len(all_calls),
        failed_calls=None if calls is None else sum(call.failed for call in all_calls),
        backtracks=walk.backtracks if shows_backtracks else None,
    )


def _all_calls(
    turns: Sequence[Turn], actions: Sequence[ActionsByKind]
) -> list[tuple[AgentAction, ...]] | None:
    """The calls of tools and integrations by turn; None if a reply reports neither."""
    if any(own_calls(turn) is None and turn.integrations is None for turn in turns) or not turns:
        return None
    calls = []
    for by_kind in actions:
        tools = [action for action in by_kind[LogicKind.WORKFLOW] or () if action.tool]
        calls.append((*tools, *(by_kind[LogicKind.INTEGRATION] or ())))
    return calls


def _all_reported(kind: LogicKind, actions: Sequence[ActionsByKind]) -> list[tuple[AgentAction, ...]] | None:
    """The actions of a kind by turn; None if any reply leaves them unknown."""
    reported = [own for by_kind in actions if (own := by_kind[kind]) is not None]
    return reported if reported and len(reported) == len(actions) else None


class _Walk:
    """Goes through a conversation turn by turn, and counts its steps."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.repeated = self.backtracks = 0
        self.params_known = True
        self._running: frozenset[str] = frozenset()
        self.left: set[str] = set()
        """The workflows that ran."""
        self._known: dict[str, int] = {}
        self._all_known = 0
        self._taken: set[tuple[str, str, int]] = set()

    def take(self, turn: Turn, workflows: Sequence[AgentAction], calls: Sequence[AgentAction]) -> None:
        """Counts the steps of one turn."""
        known = self._knowing(turn)
        self._workflows([workflow.name for workflow in workflows if not workflow.tool], known)
        for tool in workflows:
            if tool.tool:
                self.begun.append(tool.name)
                arguments = None if tool.value is None else hash(canonical(tool.value))
                self.params_known &= arguments is not None
                self._step("tool", tool.name, arguments)
        for call in calls:
            self._step("integration", call.name, known)

    def _knowing(self, turn: Turn) -> int | None:
        """A number for the last value of each parameter that is not empty; None if not all are reported.

        Equal for equal values; of others it differs but for once in 10^18. It changes with what is new alone,
        so that a long conversation with many parameters takes no longer.
        """
        self.params_known &= turn.params is not None
        for name, value in (turn.params or {}).items():
            if not is_empty(value):
                number = hash((name, canonical(value)))
                self._all_known ^= self._known.get(name, 0) ^ number
                self._known[name] = number
        return None if turn.params is None or turn.named_params else self._all_known

    def _workflows(self, names: Sequence[str], known: int | None) -> None:
        seen: set[str] = set()
        for name in names:
            if name in seen:
                # Another call for the same reply: which parameters were its own, nobody can tell.
                self.begun.append(name)
            elif name in self._running:
                self._remember("workflow", name, known)
            else:
                self.begun.append(name)
                self.backtracks += name in self.left
                self._step("workflow", name, known)
            seen.add(name)
        if seen:
            self.left |= seen
            self._running = frozenset(seen)

    def _step(self, kind: str, name: str, known: int | None) -> None:
        self.repeated += (kind, name, known) in self._taken
        self._remember(kind, name, known)

    def _remember(self, kind: str, name: str, known: int | None) -> None:
        if known is not None:
            self._taken.add((kind, name, known))


def with_optimal(process: TrialProcess, optimal: Sequence[str] | None) -> TrialProcess:
    """The process with its workflows compared with those of the shortest right conversation."""
    missed: int | None = None
    overhead: float | None = None
    if optimal and process.begun is not None:
        workflows = max(len(process.begun), process.steps - (process.calls or 0))
        missed = len(optimal) - _longest_common(optimal, process.begun)
        overhead = (workflows - len(optimal)) / len(optimal)
    if (missed, overhead) == (process.missed, process.overhead):
        return process
    return replace(process, missed=missed, overhead=overhead)


def compared(trial: TrialResult, optimal: Sequence[str] | None) -> TrialResult:
    """The trial `with_optimal` workflows; the same object if nothing changes."""
    if trial.process is None:
        return trial
    process = with_optimal(trial.process, optimal)
    return trial if process is trial.process else replace(trial, process=process)


def _longest_common(optimal: Sequence[str], begun: Sequence[str]) -> int:
    """The length of the longest common subsequence."""
    best = [0] * (len(optimal) + 1)
    for name in begun:
        diagonal = 0
        for index, expected in enumerate(optimal, 1):
            above = best[index]
            best[index] = diagonal + 1 if expected == name else max(above, best[index - 1])
            diagonal = above
    return best[-1]


@lru_cache(10_000)
def _shared_process(process: TrialProcess) -> TrialProcess:
    return process


@lru_cache(10_000)
def _shared_fired(fired: Fired) -> Fired:
    return fired


def summary(trials: Sequence[TrialResult], planned: int, rule: ScoreRule) -> ProcessSummary:
    """The process of the trials of a test, a suite or a run, with the number of `planned` ones.

    Excluded trials say nothing about the agent; their time counts all the same.
    """
    times = _times([trial.times for trial in trials if trial.times])
    planned -= sum(trial.excluded for trial in trials)
    trials = [trial for trial in trials if not trial.excluded]
    ended = [trial for trial in trials if trial.counts]
    completion = _share(len(ended), planned) if trials else None
    success = _share(sum(all_passed(trial, rule) for trial in ended), planned) if trials else None
    if times is None and not any(trial.turns or trial.process or trial.fired for trial in trials):
        return _of_results_alone(completion, success)
    processes = [trial.process for trial in trials if trial.process]
    # What was not done before an early end might have been done after it.
    complete = [trial.process for trial in trials if trial.process and trial.complete]
    walked = [process for process in processes if process.repeated is not None]
    called = [process for process in processes if process.calls is not None]
    calls = _sum(process.calls or 0 for process in called)
    missed = [process.missed for process in complete if process.missed is not None]
    first = [trial.turns.latencies[0] for trial in trials if trial.turns]
    return ProcessSummary(
        completion_rate=completion,
        success_rate=success,
        traced_trials=sum(trial.fired is not None for trial in trials),
        steps_per_trial=_mean(process.steps for process in complete),
        redundancy_rate=_share(
            _sum(process.repeated or 0 for process in walked), _sum(process.steps for process in walked)
        ),
        calls=calls if called else None,
        failure_rate=_share(_sum(process.failed_calls or 0 for process in called), calls),
        backtracks_per_trial=_mean(p.backtracks for p in complete if p.backtracks is not None),
        overhead=_mean(process.overhead for process in complete if process.overhead is not None),
        missed=_sum(missed) if missed else None,
        first_reply_seconds=median(first) if first else None,
        times=times,
    )


@lru_cache(10_000)
def _of_results_alone(completion_rate: float | None, success_rate: float | None) -> ProcessSummary:
    """The summary of trials without conversations, as other tools' rows are; equal ones as one object."""
    return ProcessSummary(completion_rate=completion_rate, success_rate=success_rate)


def of_tests(tests: Sequence[TestResult], rule: ScoreRule) -> ProcessSummary:
    """The process of the trials of these tests."""
    trials = [trial for test in tests for trial in test.trials]
    return summary(trials, len(trials) + sum(test.not_run for test in tests), rule)


def of_run(
    summary_of_trials: ProcessSummary, score: float | None, usage: Usage, trials: int
) -> ProcessSummary:
    """The summary of a run, with what a trial of it cost, and what that takes from its score."""
    cost_usd = cost_of_trial(usage, trials)
    if cost_usd is None:
        return summary_of_trials
    penalty = min(cost_usd / ACCEPTABLE_COST, MOST_TIMES) * COST_WEIGHT
    return replace(
        summary_of_trials,
        cost_usd_per_trial=cost_usd,
        cost_adjusted_score=None if score is None else max(0.0, score - penalty),
    )


def _share(part: int, whole: int) -> float | None:
    """A part of a whole; None of nothing. A foreign file may tell of more than all."""
    return min(part / whole, 1.0) if whole else None


def _mean(numbers: Iterable[float]) -> float | None:
    values = [*numbers]
    return fmean(values) if values else None


def _sum(counts: Iterable[int]) -> int:
    return min(sum(counts), MOST)


def _times(trials: Sequence[Times]) -> Times | None:
    if not trials:
        return None
    return Times(
        agent=_seconds(times.agent for times in trials),
        user=_seconds(times.user for times in trials),
        judge=_seconds(times.judge for times in trials),
        other=_seconds(times.other for times in trials),
    )


def _seconds(parts: Iterable[float]) -> float:
    return min(fsum(parts), _LONGEST)
