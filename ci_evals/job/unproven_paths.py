"""Paths into answers that found nothing in a whole run: what they should find is unknown, and not none.

A filter that lets nothing through says that nothing was there, or is wrong. It is right if it found something
in another turn of the same agent. That is decided on all trials of a run, so that their order does not
matter.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ci_evals.agent_registry import AGENT_KINDS
from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.suite import Suite
from ci_evals.domain.transcript import Turn
from ci_evals.domain.verdict import Cause, Verdict
from ci_evals.job.less_evidence import with_turns
from ci_evals.support.json_text import canonical

_EVIDENCE: Mapping[str, Callable[[Turn], object]] = {
    "toolCalls": lambda turn: turn.tool_calls,
    "workflows": lambda turn: turn.workflows,
    "params": lambda turn: turn.params,
    "rules": lambda turn: turn.rules,
    "integrations": lambda turn: turn.integrations,
    "escalated": lambda turn: turn.handed_over,
    "error": lambda turn: turn.error_response,
}
_WITHOUT: Mapping[str, Callable[[Turn], Turn]] = {
    "toolCalls": lambda turn: turn.copy_with(tool_calls=None, tool_calls_partial=False),
    "workflows": lambda turn: turn.copy_with(workflows=None),
    "params": lambda turn: turn.copy_with(params=None),
    "rules": lambda turn: turn.copy_with(rules=None),
    "integrations": lambda turn: turn.copy_with(integrations=None),
    "escalated": lambda turn: turn.copy_with(handed_over=None),
    "error": lambda turn: turn.copy_with(error_response=None),
}
"""The field of a turn that each path fills."""
_Identity = tuple[int, str | None, str | None, str]
"""The arm, the address, the id and the options of an agent."""
_CHOOSES = ("?", ":")
"""Signs of a filter and of a slice, in a path."""


class Settled(NamedTuple):
    """The results of trials, and warnings of the paths that found nothing."""

    results: tuple[TrialResult | None, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Agent:
    """An agent whose answers are read by paths, and its trials by their place in the plan."""

    paths: Mapping[str, str]
    """Those that may choose nothing, by key."""
    keys: frozenset[str]
    """The keys of all its paths."""
    is_stream: bool
    places: list[int]


def settle(plan: Plan, played: Sequence[TrialResult | None]) -> Settled:
    """Return the results, in which evidence is unknown whose path found nothing in any turn of its agent."""
    results, warnings = [*played], []
    for agent in _agents(plan):
        own = [result for place in agent.places if (result := played[place])]
        unproven = _unproven(agent, own)
        reasons = {key: _reason(agent, key, path) for key, path in unproven.items()}
        cannot_say = Verdict.undecided(Cause.NO_EVIDENCE, next(iter(reasons.values()), ""))
        warnings += [f"{reason}: checks of it are undecided" for reason in reasons.values()]
        for place in agent.places if reasons else ():
            if (result := played[place]) and (turns := _turns(agent, result, reasons)):
                test = plan.test_of(plan.trials[place])
                results[place] = with_turns(test, result, turns, cannot_say).packed()
    return Settled(tuple(results), tuple(dict.fromkeys(warnings)))


def _agents(plan: Plan) -> Iterable[_Agent]:
    agents: dict[_Identity, _Agent] = {}
    by_suite: dict[int, _Identity | None] = {}
    for place, trial in enumerate(plan.trials):
        if trial.suite not in by_suite:
            by_suite[trial.suite] = _add_agent(agents, plan, trial)
        if (identity := by_suite[trial.suite]) is not None:
            agents[identity].places.append(place)
    return agents.values()


def _add_agent(agents: dict[_Identity, _Agent], plan: Plan, trial: Trial) -> _Identity | None:
    """Add the agent of a trial's suite, and return its identity; None if no path may choose nothing."""
    suite = plan.suites[trial.suite].suite
    found = _paths(suite)
    paths = {key: path for key, path in found.items() if any(sign in path for sign in _CHOOSES)}
    if not paths:
        return None
    options = suite.adapter_options or {}
    identity = (plan.arm_of(trial.suite), suite.base_url, suite.agent_id, canonical(options))
    agents.setdefault(identity, _Agent(paths, frozenset(found), options.get("stream") == "sse", []))
    return identity


def _paths(suite: Suite) -> dict[str, str]:
    """Return the paths of an agent's evidence, by key."""
    kind = AGENT_KINDS.get(suite.adapter)
    paths = kind.paths_in(suite.adapter_options or {}) if kind else {}
    return {key: paths[key] for key in _EVIDENCE if key in paths}


def _unproven(agent: _Agent, results: Iterable[TrialResult]) -> dict[str, str]:
    """Return the paths that chose nothing in some turn, and found nothing in any other."""
    open_paths, seen = dict(agent.paths), set[str]()
    for result in results:
        if not open_paths:
            break
        for turn in result.turns.without_traces():
            seen |= turn.unproven.keys()
            for key in [key for key in open_paths if _found(turn, key)]:
                del open_paths[key]
    return {key: path for key, path in open_paths.items() if key in seen}


def _found(turn: Turn, key: str) -> bool:
    """Return whether the path of a key found something in a turn. An empty value does not prove a filter."""
    value = _EVIDENCE[key](turn) or (key == "params" and turn.named_params)
    return bool(value) and not (key in turn.unproven or key in turn.not_found)


def _turns(agent: _Agent, result: TrialResult, reasons: Mapping[str, str]) -> tuple[Turn, ...] | None:
    """Return the turns with what is unknown; None if nothing changes."""
    turns = tuple(result.turns)
    if not any(turn.unproven.keys() & reasons.keys() for turn in turns):
        return None
    return tuple(_unknown(agent, turn, reasons) for turn in turns)


def _unknown(agent: _Agent, turn: Turn, reasons: Mapping[str, str]) -> Turn:
    """Return a turn in which the evidence of these keys is unknown, if its path chose nothing there."""
    keys = turn.unproven.keys() & reasons.keys()
    if not keys:
        return turn
    unknown = set(keys)
    if "toolCalls" in keys:
        # Without a path of their own these are views of the calls.
        unknown |= {"workflows", "params"} - agent.keys
    elif keys & {"workflows", "params"} and turn.tool_calls is not None:
        turn = turn.copy_with(tool_calls_partial=True)
    for key in unknown:
        turn = _WITHOUT[key](turn)
    kept = {key: path for key, path in turn.unproven.items() if key not in keys}
    told = {key: reason for key, reason in reasons.items() if key in keys}
    return turn.copy_with(unproven=kept, not_found={**turn.not_found, **told})


def _reason(agent: _Agent, key: str, path: str) -> str:
    named = ""
    if agent.is_stream:
        named = ", and for events with a name use @.event or @.data, as in $[?@.data.type == 'tool'].data"
    return (
        f"{path} (adapterOptions.reply.{key}) found nothing in any turn of the run, so it may be wrong. "
        f"Correct it{named}; or play a test in which it finds something"
    )
