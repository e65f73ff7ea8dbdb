"""The data of a test for the page's script: texts, numbers and marks that the script only places.

Names, messages and reasons are as they came: the script sanitizes what it shows. Keys without a value, or
with an empty one, are left out.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from ci_evals.domain import numbers
from ci_evals.domain.actions import AgentAction
from ci_evals.domain.results.simulated_user import Violation
from ci_evals.domain.results.suite import TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.results.usage import RoleUsage
from ci_evals.domain.suite import AUTO, GivenReply
from ci_evals.domain.transcript import EndState, ToolCall, Turn, UserSource
from ci_evals.domain.verdict import Finding, Grade, Vote
from ci_evals.reports.story import changes, failures, phrases, process, test_words, turns, verdict_words
from ci_evals.reports.story.changes import UNTRACED
from ci_evals.reports.story.outcome_labels import CAUSES, ENDINGS
from ci_evals.reports.story.phrases import NO_REASON, ROLES
from ci_evals.reports.story.table import table_of
from ci_evals.reports.story.turns import HANDED_OVER
from ci_evals.scoring.comparison.divergence import TracedConversation
from ci_evals.support.json_text import JsonObject, written
from ci_evals.support.text import visible

Data: TypeAlias = JsonObject
"""A JSON object of the page."""

_SHORT = 60
"""Characters of a name or a value in the sentence on a divergence."""
_FOLDED = 200
"""Characters of a call with its arguments that are shown openly."""
_DIFFERENT_TEST = "The baseline defines this test differently, so their scores were not compared."


def of_test(test: TestResult, base: TestResult | None, file: str, *, same: bool) -> Data:
    """The head of a test's view."""
    scores = [f"{numbers.score(base.score)} (baseline)"] if base else []
    return _known(
        outcome=test.outcome,
        score=" → ".join([*scores, numbers.score(test.score)]),
        marks=[
            *(mark for mark, holds in (("critical", test.critical), ("flaky", test.flaky)) if holds),
            *test_words.set_aside_marks(test),
        ],
        difficulty=test.difficulty,
        tags=test.tags,
        location=f"{file}:{test.line}",
        notRun=f"{numbers.count(test.not_run, 'trial')} not run" if test.not_run else None,
        notice=_notice(test, differs=base is not None and not same),
        command=_command(file, test.name),
        guidelines=test.guidelines,
        planned=[
            _known(user=f"The agent, in its history: {turn.assistant}")
            if isinstance(turn, GivenReply)
            else _known(user=None if turn.user == AUTO else turn.user, expectation=turn.expectation)
            for turn in test.turns
        ],
        optimalTools=None if test.optimal_tools is None else ", ".join(test.optimal_tools) or "nothing",
        userInfo=written(test.user_info, indent=2) if test.user_info else None,
    )


def _notice(test: TestResult, *, differs: bool) -> str | None:
    sentences = [*test_words.set_aside_facts(test), *([_DIFFERENT_TEST] if differs else [])]
    return " ".join(sentences) or None


def of_trial(trial: TrialResult, outcome: TestOutcome, doubts: Mapping[str, str]) -> Data:
    """One of this run's trials, without its conversation."""
    violations = trial.user_audit.violations if trial.user_audit else ()
    attempts = ", then ".join(
        phrases.spaced(attempt.status) + (f" ({attempt.error})" if attempt.error else "")
        for attempt in trial.attempts
    )
    turns, took = numbers.count(len(trial.turns), "turn"), numbers.duration(trial.duration_seconds)
    return _known(
        index=trial.index,
        outcome=outcome,
        score=None if trial.status is EndState.INVALID_USER else numbers.score(trial.score),
        ended=f"{ENDINGS[trial.status]} {turns}, {took}.",
        error=None if violations else failures.trial_error(trial),
        attempts=f"{len(trial.attempts)} attempts: {attempts}." if len(trial.attempts) > 1 else None,
        audit=_audit(trial),
        findings=[_finding(finding, doubts.get(finding.criterion)) for finding in trial.findings],
        violations=list(map(_violation, violations)),
        closing=trial.closing_remark,
        state=[
            _known(
                name=name, error=probe.error, value=None if probe.error else written(probe.value, indent=2)
            )
            for name, probe in trial.probes.items()
        ],
        times=list(map(list, process.time_of_trial(trial))),
        steps=[[label, value, label == process.BEGUN] for label, value in process.of_trial(trial)],
        usage=list(map(_usage, trial.usage)),
    )


def of_base_trial(trial: TrialResult, outcome: TestOutcome) -> Data:
    """One of the baseline's trials, without its conversation: what is shown beside one of this run."""
    return _known(
        index=trial.index,
        outcome=outcome,
        findings=[[finding.criterion, finding.outcome] for finding in trial.findings],
        violations=list(map(_violation, trial.user_audit.violations if trial.user_audit else ())),
        closing=trial.closing_remark,
    )


def of_turns(turns: Sequence[tuple[Turn, str | None]]) -> list[Data]:
    """A conversation, turn by turn, each given with its trace as JSON."""
    before = [None, *(turn for turn, _ in turns)]
    return [_turn(turn, trace, previous) for (turn, trace), previous in zip(turns, before, strict=False)]


def of_divergence(head: TracedConversation, base: TracedConversation) -> Data:
    """The first turn in which two conversations differ, in words, and the actions that only one of them has.

    `only` has of each turn the indexes of this run's and of the baseline's actions.
    """
    differences = tuple(head.differences(base))
    first = head.divergence(base, differences)
    both = min(len(head.turns), len(base.turns))
    return _known(
        text=changes.divergence_sentence(first, _short, trials=False) if first else UNTRACED,
        turn=first.turn if first else None,
        only={
            str(number): [mine, theirs]
            for number, (mine, theirs) in enumerate(differences[:both], start=1)
            if mine or theirs
        },
    )


def _known(**values: object) -> Data:
    """The values that are there: not None, and not empty."""
    return {name: value for name, value in values.items() if value or value == 0}


def _short(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"


def _command(file: str, name: str) -> str:
    """The command that runs a test again. With more than one line a name stands for several."""
    part = max((line.strip() for line in visible(name).splitlines()), key=len, default="")
    path = visible(file)
    path = f"./{path}" if path.startswith("-") else path
    return f"ci-evals run {shlex.quote(path)} --test={shlex.quote(part)}"


def _turn(turn: Turn, trace: str | None, before: Turn | None) -> Data:
    lists = [
        [found.label, [_action(action, before) for action in found.actions]]
        for found in turns.action_lists(turn)
    ]
    error = turns.reply_error(turn)
    notes = [["escalation", HANDED_OVER]] if turn.escalated else []
    if turn.input_tokens is not None or turn.output_tokens is not None:
        read, written_tokens = map(_tokens, (turn.input_tokens, turn.output_tokens))
        notes.append(["tokens", f"{read} input, {written_tokens} output"])
    fixed = turn.user_source is UserSource.FIXED
    return _known(
        index=turn.index,
        user=turn.user,
        source=turn.user_source,
        by="from the suite" if fixed else "written by the simulated user",
        agent=turn.agent,
        latency=turns.reply_time(turn),
        actions=lists,
        error=error,
        nothing=None if lists or error else turns.no_actions(turn),
        notes=notes,
        trace=trace,
        raw=None if turn.raw is None else written(turn.raw, indent=2),
    )


def _tokens(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def _action(action: AgentAction, before: Turn | None) -> Data:
    if action.tool is not None:
        return _tool_call(action, action.tool)
    call = action.call
    if call is None:
        change = turns.parameter_change(action, before)
        return (
            {"text": turns.action_text(action), "change": change}
            if change
            else {"text": turns.action_text(action)}
        )
    status = "no HTTP status" if call.status is None else f"status {call.status}"
    status = " · ".join(filter(None, [call.type, status]))
    data: Data = {"text": turns.action_text(action), "name": action.name, "status": status}
    return data | _known(failed=action.failed or None, error=call.error)


def _tool_call(action: AgentAction, call: ToolCall) -> Data:
    text = turns.action_text(action)
    folded = len(text) > _FOLDED
    return {"text": text} | _known(
        status=" · ".join(turns.call_facts(call)),
        failed=action.failed or None,
        result=None if call.result is None else written(call.result, indent=2),
        arguments=written(call.arguments, indent=2) if folded else None,
        name=call.name if folded else None,
    )


def _audit(trial: TrialResult) -> str | None:
    """The verdict on the simulated user's role, if it is valid and a model was asked."""
    audit = trial.user_audit
    if audit is None or audit.violations or audit.by_model is None:
        return None
    if audit.by_model:
        return "The simulated user stayed in character, as the rules and a model found."
    return "The simulated user broke no rule. The model that checks it too did not answer."


def _violation(violation: Violation) -> Data:
    return {
        "turn": violation.turn,
        "rule": phrases.spaced(violation.rule),
        "reason": violation.reason,
        "text": violation.text,
    }


def _finding(finding: Finding, doubt: str | None) -> Data:
    noun = "turn" if len(finding.evidence) == 1 else "turns"
    on = f"absent from {noun}" if finding.rests_on == "absence" else f"evidence in {noun}"
    return _known(
        criterion=finding.criterion,
        **_verdict(finding),
        traits=list(_traits(finding)),
        evidence=finding.evidence,
        restsOn=on,
        doubt=doubt,
        votes=[_known(model=vote.model, **_verdict(vote)) for vote in finding.votes or ()],
        tally=verdict_words.vote_tally(finding.votes) if finding.votes else None,
    )


def _verdict(verdict: Finding | Vote) -> Data:
    return _known(
        outcome=verdict.outcome,
        cause=CAUSES[verdict.cause] if verdict.cause else None,
        reason=verdict.reason or NO_REASON,
        quotes=[{"turn": quote.turn, "text": quote.text} for quote in verdict_words.quotes_of(verdict)],
        grade=_grade(verdict.grade) if verdict.grade else None,
        unusable=verdict.unusable,
    )


def _traits(finding: Finding) -> Iterator[list[object]]:
    """Each a label and the names behind it, which are shown as code."""
    if finding.kind == "strict":
        yield ["strict", [finding.strict or ""]]
    else:
        yield [verdict_words.verdict_kind(finding), []]
    yield [f"weight {numbers.plain(finding.weight)}", []]
    if finding.category:
        yield ["category", [finding.category]]
    if finding.aui_logic:
        yield ["AUI logic", finding.aui_logic]


def _grade(grade: Grade) -> Data:
    rows = table_of("", verdict_words.DIMENSIONS, grade.dimensions).rows
    return {"text": f"Graded {verdict_words.grade_words(grade)}.", "rows": [row.cells for row in rows]}


def _usage(usage: RoleUsage) -> list[str]:
    counts = (usage.calls, usage.input_tokens, usage.output_tokens)
    cost = "" if usage.cost_usd is None else numbers.money(usage.cost_usd)
    return [ROLES[usage.role], usage.model or "", *(f"{count:,}" for count in counts), cost]
