"""How an agent went about its conversations: the steps of one, and what many come to together.

Pure. What a trace does not tell is no evidence: null, and never nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import fsum
from statistics import median
from sys import intern

from ci_evals.domain.base import MOST
from ci_evals.domain.results.process import Fired, LogicKind, Process, ProcessSummary, Times
from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.results.usage import Usage
from ci_evals.domain.transcript import Integration, Turn, is_empty
from ci_evals.scoring.scores import Counting
from ci_evals.scoring.usage import cost_of_trial
from ci_evals.scoring.validity import CUT_OFF, all_passed, left_out
from ci_evals.support.json_text import canonical

MOST_NAMES = 1_000
"""Of workflows begun, and of each kind of logic, that are kept of one conversation."""

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
class Told:
    """What the traces of one conversation tell. Null where there is none."""

    process: Process | None
    fired: Fired | None


def told(turns: Iterable[Turn], optimal: Sequence[str] | None = None) -> Told:
    """What the traces of a conversation tell, its workflows held against the `optimal` ones.

    Of conversations that went alike the parts are the same objects, so that thousands take little memory.
    """
    turns = tuple(turns)
    fired, process = _fired(turns), _process(turns)
    return Told(
        process=_shared_process(against(process, optimal)) if process else None,
        fired=_shared_fired(fired) if fired else None,
    )


def _fired(turns: Sequence[Turn]) -> Fired | None:
    kinds = (
        _once(turn.workflows for turn in turns),
        _once(map(_extracted, turns)),
        _once(turn.rules for turn in turns),
        _once(_codes(turn.integrations) for turn in turns),
    )
    if all(names is None for names in kinds):
        return None
    workflows, parameters, rules, integrations = kinds
    in_part = {
        LogicKind.WORKFLOW: any(turn.workflows is None for turn in turns),
        LogicKind.PARAMETER: any(turn.params is None for turn in turns),
        LogicKind.RULE: any(turn.rules is None for turn in turns),
        LogicKind.INTEGRATION: any(turn.integrations is None for turn in turns),
    }
    fired = Fired(workflows=workflows, parameters=parameters, rules=rules, integrations=integrations)
    return fired.model_copy(
        update={"in_part": tuple(k for k in LogicKind if in_part[k] and fired.names(k) is not None)}
    )


def _once(found: Iterable[Iterable[str] | None]) -> tuple[str, ...] | None:
    """Each name once; None where nobody told."""
    heard = [names for names in found if names is not None]
    if not heard:
        return None
    return _interned(dict.fromkeys(name for names in heard for name in names))


def _interned(names: Iterable[str]) -> tuple[str, ...]:
    """The first of them, as texts that thousands of trials share."""
    return tuple(intern(str(name)) for name in islice(names, MOST_NAMES))


def _extracted(turn: Turn) -> tuple[str, ...] | None:
    """The parameters that were extracted with a value, be it one that is not told."""
    if turn.params is None:
        return turn.named_params or None
    return (*(name for name, value in turn.params.items() if not is_empty(value)), *turn.named_params)


def _codes(calls: Sequence[Integration] | None) -> tuple[str, ...] | None:
    return None if calls is None else tuple(call.code for call in calls)


def _process(turns: Sequence[Turn]) -> Process | None:
    # One reply that does not report them is enough: what it leaves out may have been done.
    workflows_told = bool(turns) and all(turn.workflows is not None for turn in turns)
    calls_told = bool(turns) and all(turn.integrations is not None for turn in turns)
    if not (workflows_told or calls_told):
        return None
    unknown = ({} if workflows_told else {"workflows": None}) | ({} if calls_told else {"integrations": None})
    walk = _Walk()
    for turn in turns:
        walk.take(turn.model_copy(update=unknown) if unknown else turn)
    calls = [call for turn in turns for call in turn.integrations or ()] if calls_told else []
    return Process(
        steps=len(walk.begun) + len(calls),
        tools=len(set(walk.begun)) + len({call.code for call in calls}),
        begun=_interned(walk.begun) if workflows_told else None,
        repeated=walk.repeated if walk.params_told else None,
        calls=len(calls) if calls_told else None,
        failed_calls=sum(map(_failed, calls)) if calls_told else None,
        backtracks=walk.backtracks if workflows_told else None,
    )


def _failed(call: Integration) -> bool:
    return bool(call.error) or (call.status is not None and call.status >= 400)


class _Walk:
    """Goes through a conversation turn by turn, and counts its steps."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.repeated = self.backtracks = 0
        self.params_told = True
        self._running: frozenset[str] = frozenset()
        self._left: set[str] = set()
        self._known: dict[str, int] = {}
        self._all_known = 0
        self._taken: set[tuple[str, str, int]] = set()

    def take(self, turn: Turn) -> None:
        """Counts the steps of one turn."""
        known = self._knowing(turn)
        self._workflows(turn.workflows or (), known)
        for call in turn.integrations or ():
            self._step("integration", call.code, known)

    def _knowing(self, turn: Turn) -> int | None:
        """A number for the last value of each parameter that is not empty; None where not all are told.

        Equal for equal values; of others it differs but for once in 10^18. It changes with what is new alone,
        so that a long conversation with many parameters takes no longer.
        """
        self.params_told &= turn.params is not None
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
                self.backtracks += name in self._left
                self._step("workflow", name, known)
            seen.add(name)
        if seen:
            self._left |= seen
            self._running = frozenset(seen)

    def _step(self, kind: str, name: str, known: int | None) -> None:
        self.repeated += (kind, name, known) in self._taken
        self._remember(kind, name, known)

    def _remember(self, kind: str, name: str, known: int | None) -> None:
        if known is not None:
            self._taken.add((kind, name, known))


def against(process: Process, optimal: Sequence[str] | None) -> Process:
    """The process with its workflows held against those of the shortest right conversation."""
    begun = process.begun
    if not optimal or begun is None:
        found: tuple[int | None, float | None] = (None, None)
    else:
        many = process.steps - (process.calls or 0)
        found = (len(optimal) - _in_order(optimal, begun), (many - len(optimal)) / len(optimal))
    if found == (process.missed, process.overhead):
        return process
    return process.model_copy(update={"missed": found[0], "overhead": found[1]})


def held(trial: TrialResult, optimal: Sequence[str] | None) -> TrialResult:
    """The trial with its process `against` these workflows; the same one where it stands so already."""
    if trial.process is None:
        return trial
    process = against(trial.process, optimal)
    return trial if process is trial.process else trial.model_copy(update={"process": process})


def _in_order(wanted: Sequence[str], found: Sequence[str]) -> int:
    """How many of `wanted` are in `found` in their order, at most (the longest common subsequence)."""
    best = [0] * (len(wanted) + 1)
    for name in found:
        before = 0
        for place, one in enumerate(wanted, 1):
            before, best[place] = (
                best[place],
                before + 1 if one == name else max(best[place], best[place - 1]),
            )
    return best[-1]


@lru_cache(10_000)
def _shared_process(process: Process) -> Process:
    process.slim()
    return process


@lru_cache(10_000)
def _shared_fired(fired: Fired) -> Fired:
    fired.slim()
    return fired


def summary(trials: Sequence[TrialResult], planned: int, counting: Counting) -> ProcessSummary:
    """What the trials of a test, a suite or a run come to, of which so many were planned.

    Trials that are left out for their simulated user say nothing of the agent, and have but taken their time.
    """
    times = _times([trial.times for trial in trials if trial.times])
    counted = [trial for trial in trials if not left_out(trial)]
    planned -= len(trials) - len(counted)
    trials = counted
    told = [trial.process for trial in trials if trial.process]
    # What was not done before an early end might have been done after it.
    whole = [trial.process for trial in trials if trial.process and trial.status not in CUT_OFF]
    walked = [process for process in told if process.repeated is not None]
    called = [process for process in told if process.calls is not None]
    calls = _sum(process.calls or 0 for process in called)
    first = [trial.turns.latencies[0] for trial in trials if trial.turns]
    ended = [trial for trial in trials if trial.counts]
    return ProcessSummary(
        completion_rate=_share(len(ended), planned) if trials else None,
        success_rate=_share(sum(all_passed(trial, counting) for trial in ended), planned) if trials else None,
        traced_trials=sum(trial.fired is not None for trial in trials),
        steps_per_trial=_mean(process.steps for process in whole),
        redundancy_rate=_share(
            _sum(process.repeated or 0 for process in walked), _sum(process.steps for process in walked)
        ),
        calls=calls if called else None,
        failure_rate=_share(_sum(process.failed_calls or 0 for process in called), calls),
        backtracks_per_trial=_mean(p.backtracks for p in whole if p.backtracks is not None),
        overhead=_mean(process.overhead for process in whole if process.overhead is not None),
        missed=_sum_of_known(process.missed for process in whole),
        first_reply_seconds=median(first) if first else None,
        times=times,
    )


def of_tests(tests: Sequence[TestResult], counting: Counting) -> ProcessSummary:
    """What the trials of these tests come to."""
    trials = [trial for test in tests for trial in test.trials]
    return summary(trials, len(trials) + sum(test.not_run for test in tests), counting)


def of_run(whole: ProcessSummary, score: float | None, usage: Usage, trials: int) -> ProcessSummary:
    """The summary of a run, with what a trial of it cost, and what that takes from its score."""
    each = cost_of_trial(usage, trials)
    if each is None:
        return whole
    penalty = min(each / ACCEPTABLE_COST, MOST_TIMES) * COST_WEIGHT
    return whole.model_copy(
        update={
            "cost_usd_per_trial": each,
            "cost_adjusted_score": None if score is None else max(0.0, score - penalty),
        }
    )


def _share(part: int, whole: int) -> float | None:
    """A part of a whole; None of nothing. Files of others may say that there is more of it than of all."""
    return min(part / whole, 1.0) if whole else None


def _mean(numbers: Iterable[float]) -> float | None:
    found = [*numbers]
    return fsum(found) / len(found) if found else None


def _sum(counts: Iterable[int]) -> int:
    return min(sum(counts), MOST)


def _sum_of_known(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return _sum(known) if known else None


def _times(found: Sequence[Times]) -> Times | None:
    if not found:
        return None
    return Times(
        agent=_seconds(times.agent for times in found),
        user=_seconds(times.user for times in found),
        judge=_seconds(times.judge for times in found),
        other=_seconds(times.other for times in found),
    )


def _seconds(found: Iterable[float]) -> float:
    return min(fsum(found), _LONGEST)
