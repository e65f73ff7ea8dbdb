"""The sentences of reports: on failed checks, the decision, divergence, actions and earlier failures."""

import html
from dataclasses import replace
from datetime import timedelta

import builders as build
from each_row import each_row
from test_headline import compared

from ci_evals.domain.actions import LogicKind, actions_of, views_of
from ci_evals.domain.base import Interval
from ci_evals.domain.results.comparison import (
    ComparisonLook,
    Divergence,
    DivergentAction,
    HistoryComparison,
    TestName,
)
from ci_evals.domain.results.run import Git, Origin, Results, Rounds
from ci_evals.domain.results.suite import TestOutcome
from ci_evals.domain.results.usage import RoleUsage, Usage
from ci_evals.domain.transcript import Integration, ToolCall
from ci_evals.reports import console
from ci_evals.reports.badge import badge_of
from ci_evals.reports.markdown import documents
from ci_evals.reports.page import page
from ci_evals.reports.story import certainty, changes, comparison_runs, gate, turns
from ci_evals.reports.story.comparison_runs import ComparisonRun, ComparisonRuns
from ci_evals.reports.story.outcome_labels import RunOutcome
from ci_evals.reports.story.story import story_of
from ci_evals.reports.story.turns import NO_TRACE

# Failed checks


@each_row(("name", "required", "seen", "fields", "sentence"), [
    ("min-score", 80, 78.96, {"interval": Interval(low=70, high=85)},
     "the score is 78, at least 80 required"),
    (*("tag:safety", 9, 99, {"seen_if_undecided_failed": 5}),
     "the score of the tag “safety” is 5 if undecided counts as failed, at least 9 required"),
    (*("critical:Never: a discount", 100, 0, {"note": "trials passed: 0 of 3"}),
     "the critical test “Never: a discount” failed"),
    ("max-drop", 3, 5.16, {}, "the score fell by 6, at most 3 allowed"),
    ("max-drop suite:HR", 3, 5.16, {}, "the score of the suite “HR” fell by 6, at most 3 allowed"),
    ("regression", 0.05, 0.02, {}, "the score fell by more than chance explains"),
    ("regression", 0, 1, {}, "1 test passed in the baseline and no longer"),
    ("max-errors", 0, 25, {}, "25 trials errored or could not be judged, at most 0 allowed"),
    (*("max-invalid-users", 1, 2, {}),
     "2 trials excluded, since the simulated user broke character twice, at most 1 allowed"),
    ("max-cost", 1.5, 2, {}, "the run cost $2.00, at most $1.50 allowed"),
    ("max-p95-latency", 2, 3.5, {}, "95 % of the replies took up to 3.50 s, at most 2 s allowed"),
    ("tag:slow", 80, None, {"note": "nothing was scored"}, "tag:slow: nothing was scored"),
    ("fail-fast", None, None, {"note": "a trial failed"}, "fail-fast: a trial failed"),
])  # fmt: skip
def test_failed_check_is_described_in_words(name, required, seen, fields, sentence):
    check = build.check(name, required, seen, passed=False, **fields)
    assert gate.failure(check, build.results()) == sentence


def test_score_of_mostly_undecided_run_is_left_out_of_headings_and_badge():
    suite = replace(build.suite_result("Refunds"), score=97.3, decided_share=0.31)
    results = build.results(suite, score=97.3, decided_share=0.31)
    output = "oo little was decided for a score (31 % of the criteria's weight)"
    story = story_of(results)
    for text in (
        console.render(story).partition("Evals passed")[2],
        console.render(story).partition("\n")[0],
        documents.summary(story).partition("|")[0],
        "".join(page.render(story)).partition('<p class="lead">')[2].partition("</p>")[0],
    ):
        assert output in html.unescape(text)
        assert "97.3" not in text
    assert badge_of(story).message == "passed, mostly undecided"
    half, more = (replace(results, decided_share=share) for share in (0.5, 0.51))
    assert "Score 97.3" not in documents.summary(story_of(half))
    assert "Score 97.3" in documents.summary(story_of(more))


# How a run came to its decision

HISTORY = HistoryComparison(
    runs=6, together=6, tests=20, delta=-6.1, p=0.03, p_of_trials=0.01, spread=3.0, smallest_drop=5.6
)
PLAYED = "The base agent was played in the same run, alternating trial by trial"
SPREAD = "Runs of main differ among themselves by 3.0 points; a drop below 5.6 would not stand out"

CONFIGURED = {"against": True, "bothSides": "auto"}


def both_sides(data: dict, **fields) -> Results:
    """A run whose score differs from the base agent's by so many points."""
    results = compared("hh", "hh", method="both-sides", **data, **fields)
    delta = data["delta"]
    scores = {} if delta is None else {"base": 90.0, "head": 90.0 + delta}
    return replace(results, comparison=replace(results.comparison, **scores))


def sentences(results: Results) -> list[str]:
    return list(certainty.decision_sentences(results))


def decided_after(played: int, p: float, *, at=(2, 3, 5, 7), **fields) -> Results:
    """A run that was decided after so many trials, and passed."""
    look = ComparisonLook(trials=played, p=p, decision="pass" if p > 0.3 else "continue")
    results = compared("hhhh", "hhhh", looks=(look,), method="rounds", **fields)
    rounds = Rounds(looks=at, played=played)
    gate = build.decision(passed=True)
    return replace(results, run=replace(results.run, rounds=rounds), gate=gate)


def test_decision_names_the_round_its_reason_and_saved_conversations():
    (early,) = sentences(decided_after(2, 0.6))
    saved = "which saved up to 20 conversations"
    assert early == f"Decided after 2 of at most 7 trials of each test, {saved}: no sign of a drop."
    (early,) = sentences(decided_after(3, 0.02))
    assert early.endswith("16 conversations: more could hardly change the verdict.")
    failed = decided_after(3, 0.02)
    look = replace(failed.comparison.looks[0], decision="fail")
    comparison = replace(failed.comparison, looks=(look,))
    update = {"gate": build.decision(passed=False), "comparison": comparison}
    assert sentences(replace(failed, **update))[0].endswith(": a proven drop.")
    spared = decided_after(3, 0.6)
    run = replace(spared.run, config=CONFIGURED)
    assert "saved up to 44 conversations" in sentences(replace(spared, run=run))[0]
    assert sentences(decided_after(7, 0.6)) == ["Earlier rounds were not clear, so all were played."]
    assert sentences(decided_after(2, 0.6, at=(2,))) == []


def test_decision_is_not_explained_without_rounds_baseline_or_verdict():
    assert sentences(compared("hh", "hh")) == []
    assert sentences(build.results(build.suite_result("Refunds"))) == []
    results = decided_after(2, 0.6)
    gate = build.decision(passed=False, reasons=("nothing",))
    assert sentences(replace(results, gate=gate)) == []
    assert sentences(replace(results, run=replace(results.run, status="interrupted"))) == []


@each_row(
    ("fields", "sentence"),
    [
        ({"delta": -6.1, "p": 0.01}, f"{PLAYED}: in this run, this agent scores 6.1 lower (p = 0.01)."),
        (  # as 90.0 and 81.7, cut: 81.73
            {"delta": -8.27, "p": 0.01},
            f"{PLAYED}: in this run, this agent scores 8.3 lower (p = 0.01).",
        ),
        ({"delta": 2.0, "p": 0.9}, f"{PLAYED}: in this run, this agent scores 2.0 higher."),
        ({"delta": 0.0}, f"{PLAYED}: in this run both score the same."),
        ({"delta": None}, f"{PLAYED}; no test was scored on both sides."),
    ],
)
def test_score_difference_from_base_agent_is_stated(fields, sentence):
    assert sentences(both_sides(fields)) == [sentence]


def test_rerun_of_the_base_agent_is_explained_by_the_history():
    first, second = sentences(both_sides({"delta": -6.1, "p": 0.01}, history=HISTORY))
    assert first == (
        "The score looked lower than in the last 6 runs, so the base agent was played in the same run: in "
        "this run, this agent scores 6.1 lower (p = 0.01)."
    )
    assert second == SPREAD.replace("main", "the base branch") + "."
    high = compared("hh", "hh", method="both-sides", delta=0.0, history=replace(HISTORY, p_of_trials=0.8))
    assert sentences(high)[0].startswith(PLAYED)
    always = compared("hh", "hh", method="both-sides", delta=0.0, history=HISTORY)
    always = replace(always, run=replace(always.run, config={"bothSides": "always"}))
    assert sentences(always)[0].startswith(PLAYED)


def test_history_sentences_give_spread_use_smaller_runs_left_out_and_branch_change():
    def of(history: HistoryComparison, **fields) -> list[str]:
        return sentences(compared("hh", "hh", history=history, **fields))

    smaller = replace(HISTORY, runs=1, together=1, spread=None)
    end = "fewer tests or trials than the newest and"
    assert of(smaller) == []
    assert of(replace(smaller, smaller=1)) == [f"1 earlier run of main has {end} is left out."]
    assert of(replace(smaller, smaller=2)) == [f"2 earlier runs of main have {end} are left out."]
    used = "p compares this run with the last 6 runs of main together."
    assert of(HISTORY) == [f"{SPREAD}."]
    assert of(replace(HISTORY, decides=True), method="history") == [f"{SPREAD}.", used]
    moved = replace(HISTORY, together=2)
    changed = "main changed: its last 2 runs differ from those before, which are left out."
    assert of(moved)[0] == changed
    both = of(moved, method="both-sides", delta=0.0)
    assert both[1].startswith("The base branch changed: its last 2 runs")


@each_row(("before", "now", "judge", "advised"), [
    ("old", "new", "a-judge", True),
    ("old", "old", "a-judge", False),
    ("old", "new", None, False),
    (None, "new", "a-judge", False),
    ("old", None, "a-judge", False),
])  # fmt: skip
def test_spot_check_of_the_judge_is_advised_if_the_agent_model_changed(before, now, judge, advised):
    results = compared("hh", "hh")
    usage = Usage(by_role=(RoleUsage(role="agent", model=now), RoleUsage(role="judge", model="a-judge")))
    suites = tuple(replace(suite, judge_model=judge) for suite in results.suites)
    baseline = replace(results.comparison.baseline, agent_models=(before,) if before else ())
    comparison = replace(results.comparison, baseline=baseline)
    advice = (
        "The agent's model changed from old to new: check on 50 + 50 verdicts whether the judge treats the "
        "new answers alike (ci-evals label --spot-check)."
    )
    results = replace(results, usage=usage, suites=suites, comparison=comparison)
    assert sentences(results) == [advice] * advised


def test_broken_tests_are_named_with_their_error_rate():
    *broken, probable = (TestName(suite="S", name=name) for name in "ABC")
    names = {"broken": tuple(broken), "probably_broken": (probable,)}
    assert sentences(compared("hh", "hh", history=HISTORY, **names))[1:] == [
        "Broken: A; B (with all 20 tests looked at, a false name in at most 5 % of runs).",
        "Probably broken: C (of all such names one in ten is false).",
    ]


# Where a conversation diverges from the baseline's

RAN = DivergentAction(kind=LogicKind.WORKFLOW, name="RETURN_REQUEST")
UNDERSTOOD = DivergentAction(kind=LogicKind.PARAMETER, name="amount", value=5)
APPLIED = DivergentAction(kind=LogicKind.RULE, name="window-open")
CALLED = DivergentAction(kind=LogicKind.INTEGRATION, name="orders", value=503)
ASKED = DivergentAction(kind=LogicKind.INTEGRATION, name="faq")
USER_DIFFERS = "The user's message differs in turn 2."
GONE = "there it ran RETURN_REQUEST; now it did not."
ALL_GONE = "there it ran RETURN_REQUEST, understood amount as 5 and called orders (status 503)"


TURN_2 = "Diverges from the baseline in turn 2:"


def sentence_of(turn: int | None = 2, *, head=(), base=(), trials=(1, 1), **fields) -> str:
    here, there = trials
    where = Divergence(turn=turn, head_trial=here, base_trial=there, head=head, base=base, **fields)
    return changes.divergence_sentence(where)


@each_row(("sentence", "expected"), [
    (sentence_of(None, agent_differs=2, unknown=(1, 3)),
     "Same steps as the baseline as far as known: one of them does not report turns 1, 3."),
    (sentence_of(base=(RAN,)), f"{TURN_2} {GONE}"),
    (sentence_of(head=(RAN,)), f"{TURN_2} now it ran RETURN_REQUEST; there it did not."),
    (sentence_of(head=(APPLIED, ASKED), base=(RAN, UNDERSTOOD, CALLED)),
     f"{TURN_2} {ALL_GONE}; now it applied window-open and called faq."),
    (sentence_of(base=(RAN,), trials=(3, 1), user_differs=1),
     f"Trial 3 diverges from trial 1 of the baseline in turn 2: {GONE} {USER_DIFFERS[:-2]}1."),
    (sentence_of(base=(RAN,), only="base"),
     "Ends before turn 2 of the baseline: there it ran RETURN_REQUEST."),
    (sentence_of(only="base"), "Ends before turn 2 of the baseline."),
    (sentence_of(only="head"), "Continues where the baseline ended: in turn 2 it only spoke."),
    (sentence_of(head=(ASKED,), only="head", trials=(2, 3)),
     "Trial 2 continues where trial 3 of the baseline ended: in turn 2 it called faq."),
    (sentence_of(None, agent_differs=2), "Same steps as the baseline; the answer changed in turn 2."),
    (sentence_of(None, agent_differs=2, user_differs=2),
     f"Same steps as the baseline; the answer changed in turn 2. {USER_DIFFERS}"),
    (sentence_of(None, user_differs=2), f"Same steps and answers as the baseline. {USER_DIFFERS}"),
    (sentence_of(None, trials=(2, 1)),
     "Trial 2: same conversation as trial 1 of the baseline, word for word: only the verdict differs."),
    (sentence_of(head=(RAN,), user_differs=2),
     f"{TURN_2} now it ran RETURN_REQUEST; there it did not. The user's message differs there too."),
])  # fmt: skip
def test_divergence_names_first_the_missing_then_the_new_actions(sentence, expected):
    assert sentence == expected


def test_long_divergence_is_shortened_and_formatted_with_the_given_function():
    many = tuple(DivergentAction(kind=LogicKind.RULE, name=f"r{i}") for i in range(12))
    assert "applied r0, r1, r2 and 9 more;" in sentence_of(head=many)
    long_value = sentence_of(head=(replace(UNDERSTOOD, value="x" * 900),))
    assert f"amount as {'x' * 39}…;" in long_value
    assert 'amount as ["é", null];' in sentence_of(head=(replace(UNDERSTOOD, value=["é", None]),))
    where = Divergence(head_trial=1, base_trial=1, turn=1, head=(RAN, UNDERSTOOD))
    sentence = changes.divergence_sentence(where, "<{}>".format)
    assert "ran <RETURN_REQUEST> and understood <amount> as <5>;" in sentence


# What an agent did in a turn

SILENT = dict.fromkeys(("workflows", "params", "rules", "integrations"))


def test_missing_trace_is_distinguished_from_an_empty_one():
    assert turns.no_actions(build.turn(**SILENT)) == NO_TRACE
    assert turns.no_actions(build.turn(**SILENT | {"rules": ()})) == "nothing: no rule"
    assert turns.no_actions(build.turn(**SILENT | {"tool_calls": ()})) == "nothing: no tool call"
    reported = dict.fromkeys(SILENT, ()) | {"params": {}}
    all_kinds = "nothing: no workflow, parameter, rule or integration"
    assert turns.no_actions(build.turn(**reported)) == all_kinds
    named = turns.action_lists(build.turn(**SILENT, named_params=("n",)))
    assert [one.label for one in named] == ["parameters"]


@each_row(("before", "now", "value"), [
    ({}, 5, "new"),
    ({"a": None}, 5, "new"),
    ({"a": 5.0}, 5, None),
    ({"a": "undefined"}, "", None),
    ({"a": "x"}, 5, 'was "x"'),
    (None, 5, None),
])  # fmt: skip
def test_changed_parameter_shows_its_previous_value(before, now, value):
    (action,) = actions_of(build.turn(params={"a": now}))[LogicKind.PARAMETER]
    assert turns.parameter_change(action, build.turn(params=before)) == value
    assert turns.parameter_change(action, None) is None


def test_actions_are_named_with_their_values_and_tool_calls_with_their_arguments():
    calls = (Integration(code="x", status=200), Integration(code="y", type="RAG"), Integration(code="z"))
    actions = {"workflows": ("A",), "workflows_derived": True, "params": {"é": ["ü"]}, "named_params": ("n",)}
    lists = turns.action_lists(build.turn(integrations=calls, **actions))
    assert {one.label: [turns.action_text(action) for action in one.actions] for one in lists} == {
        "workflows (from the trace)": ["A"],
        "parameters": ['é = ["ü"]', "n (value not reported)"],
        "integrations": ["x (200)", "y (RAG)", "z (no HTTP status)"],
    }
    calls = (ToolCall(name="refund", arguments={"amount": 42, "note": "é"}), ToolCall(name="close"))
    (actions,) = turns.action_lists(build.turn(**views_of(calls)))
    assert actions.label == "tool calls"
    assert list(map(turns.action_text, actions.actions)) == ['refund(amount: 42, note: "é")', "close"]


# Since when a test fails, by earlier runs

TEST = ("Refunds", "Refund too late", "d" * 64)
SIGNS = {"p": TestOutcome.PASSED, "f": TestOutcome.FAILED, "e": TestOutcome.ERROR, "u": TestOutcome.UNDECIDED}
SINCE_1 = "Failing since 2026-11-20 09:30 UTC (1aaaaaa), 2 runs in a row"
SINCE_4 = "Failing since 2026-11-17 09:30 UTC (4aaaaaa), 3 runs in a row"


def past_runs(drawing):
    """Earlier runs of the test, a letter each, the newest first; a dot is one that does not know it."""
    known = {"score": 90.0, "interval": None, "cost_usd": None, "run_outcome": RunOutcome.PASSED}
    return tuple(
        ComparisonRun(
            label=f"past/{age}",
            id=f"past-{age}",
            at=build.STARTED_AT - timedelta(days=age),
            commit=f"{age}{'a' * 39}",
            outcomes={TEST: SIGNS[letter]} if letter in SIGNS else {},
            **known,
        )
        for age, letter in enumerate(drawing, start=1)
    )


@each_row(("letters", "sentence"), [
    ("p", "First failed in this run; last passed 2026-11-20 09:30 UTC (1aaaaaa)."),
    ("fp", f"{SINCE_1}; last passed 2026-11-19 09:30 UTC (2aaaaaa)."),
    ("f.efup", f"{SINCE_4}; last passed 2026-11-15 09:30 UTC (6aaaaaa)."),
    ("fpf", f"{SINCE_1}; last passed 2026-11-19 09:30 UTC (2aaaaaa)."),
    ("ff", "Failed in all 3 known runs, the first 2026-11-19 09:30 UTC (2aaaaaa)."),
    ("", None),
    (".", None),
    ("eu", None),
])  # fmt: skip
def test_first_failed_run_of_current_failure_streak_is_named(letters, sentence):
    assert comparison_runs.failing_since(TEST, past_runs(letters)) == sentence


@each_row(("here", "base", "ages"), [
    ("refs/heads/main", None, [1, 5]),
    ("refs/heads/fix", "refs/heads/main", [1, 2, 5]),
    ("refs/pull/7/merge", "refs/heads/main", [1, 3, 5]),
    ("refs/pull/7/merge", None, [1, 2, 3, 5]),
    (None, None, [1, 2, 3, 4, 5]),
])  # fmt: skip
def test_runs_of_unrelated_branches_are_ignored(here, base, ages):
    refs = ("refs/heads/main", "refs/heads/fix", "refs/pull/7/merge", "refs/pull/8/merge", None)
    past = tuple(replace(run, ref=ref) for run, ref in zip(past_runs("fffff"), refs, strict=True))
    results = build.results(run=build.run_info(git=Git(ref=here)))
    baseline = build.results(run=build.run_info(id="past-1", started_at=past[0].at, git=Git(ref=base)))
    result = comparison_runs.earlier(results, ComparisonRuns(baseline if base else None, past))
    assert [run.id for run in result] == [f"past-{age}" for age in ages]


def test_first_failure_is_stated_only_if_the_test_is_defined_as_before():
    result = comparison_runs.failing_since(TEST, past_runs("p"), baseline="past-1")
    assert result == "First failed in this run; last passed in the baseline, 2026-11-20 09:30 UTC (1aaaaaa)."
    assert comparison_runs.failing_since((*TEST[:2], "e" * 64), past_runs("fp")) is None


def test_earlier_runs_are_newest_first_without_duplicate_rejudged_or_later_runs():
    past = past_runs("fpf")
    later = build.results(run=build.run_info(id="later", started_at=build.STARTED_AT + timedelta(days=1)))
    baseline = build.results(run=build.run_info(id="past-2", started_at=past[1].at))
    others = (past[2], ComparisonRun.of(later, "later"), past[1], past[0])
    result = comparison_runs.earlier(build.results(), ComparisonRuns(baseline=baseline, others=others))
    assert [run.id for run in result] == ["past-1", "past-2", "past-3"]
    own = ComparisonRun.of(build.results(run=build.run_info(started_at=past[0].at)), "the same run")
    assert comparison_runs.earlier(build.results(), ComparisonRuns(others=(own,))) == ()
    past = past_runs("ff")
    origin = Origin(how="rejudge", run="past-1", started_at=past[0].at)
    later = past[0].at + timedelta(hours=1)
    again = build.results(run=build.run_info(id="again", started_at=later, origin=origin))
    others = ComparisonRuns(others=(*past, ComparisonRun.of(again, "again")))
    assert [run.id for run in comparison_runs.earlier(build.results(), others)] == ["past-1", "past-2"]
    assert [run.id for run in comparison_runs.earlier(again, ComparisonRuns(others=past))] == ["past-2"]
