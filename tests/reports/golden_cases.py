"""The runs whose reports stand, whole, under golden/: one of each kind, in every layout."""

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import timedelta

import builders as build
import cases
import comment_cases

from ci_evals.domain.choices import Regression
from ci_evals.domain.prices import NO_PRICES
from ci_evals.domain.results.run import Git, Results
from ci_evals.domain.run_ending import RunEnding
from ci_evals.extension_support.result_files.result_rows import Check, Message, ResultSet, Row
from ci_evals.extensions.result_files.row_results import FileResults, scorecard
from ci_evals.gate.policy import Policy
from ci_evals.job.conclude import BaselineResults, conclude
from ci_evals.scoring.scorecard import Scorecard
from ci_evals.scoring.usage import summed
from ci_evals.support.redaction import Redactor

_FILE = "out/promptfoo.json"
_QUESTIONS = ("Capital of Norway", "Refund policy", "Opening hours", "Shipping to Spain", "Gift cards")


def _rows(*failed: str) -> Sequence[Row]:
    rows = []
    for question in _QUESTIONS:
        passed = question not in failed
        message = Message("user", f"{question}?")
        reply = Message("assistant", "It is on our page." if passed else "I do not know.")
        reason = "the answer names it" if passed else 'the answer has no "thirty days"'
        check = Check("contains the answer", passed=passed, reason=reason)
        rows.append(Row(test=question, passed=passed, checks=(check,), conversation=(message, reply)))
    return rows


def _gated(results: Sequence[Row], baseline: BaselineResults, policy: Policy, **info: object) -> Results:
    files = [FileResults(_FILE, "promptfoo", [ResultSet(suite="Support", rows=results)])]
    card = scorecard(files, lambda names: [f"{name}/run" for name in names], NO_PRICES, Redactor())
    return conclude(card, build.run_info(config={}, **info), policy, RunEnding(), baseline)


def files() -> Results:
    """The results of another tool: one more of its five tests fails than in the file of the baseline."""
    before = {"id": "main-41", "started_at": build.STARTED_AT - timedelta(days=1)}
    earlier = _gated(_rows("Gift cards"), BaselineResults(), Policy(), **before)
    baseline = BaselineResults(earlier, "Baseline: main/promptfoo.json")
    policy = Policy(min_score=80, regression=Regression.ANY)
    return _gated(_rows("Gift cards", "Refund policy"), baseline, policy, id="files")


def arms() -> Results:
    """Three agents side by side; the gate is about the second, whose refunds broke."""
    lost = {"Refund in time": "fff", "Refund for a gift": "fhf", "Partial refund": "hhf"}
    today, candidate, cheap = (
        comment_cases.run(comment_cases.suites(refunds, {}, {"Asks in Spanish": spanish}))
        for refunds, spanish in (({}, "hpp"), (lost, "php"), ({"Refund in time": "php"}, "hpp"))
    )
    roles = [replace(role, cost_usd=(role.cost_usd or 0) / 3) for role in cheap.usage.by_role]
    third = replace(cheap.usage, cost_usd=(cheap.usage.cost_usd or 0) / 3, by_role=tuple(roles))
    gated = build.arm("candidate", candidate, gated=True)
    played = (build.arm("today", today), gated, build.arm("cheap", replace(cheap, usage=third)))
    own = build.with_process(candidate)
    own = replace(own, arms=played, usage=summed([arm.usage for arm in played]))
    card = Scorecard(**{field.name: getattr(own, field.name) for field in fields(Scorecard)})
    info = replace(own.run, git=Git(commit=comment_cases.HEAD), baseline_note=None)
    return conclude(card, info, Policy(regression=Regression.SIGNIFICANT), RunEnding())


GOLDEN = {
    "failing": comment_cases.bad, "passing": comment_cases.passed_example,
    "no-verdict": comment_cases.invalid, "skipped": comment_cases.skipped, "files": files, "arms": arms,
}  # fmt: skip
EXACT = cases.proven
"""A run whose comparison, and the reports of a suite and of a test, stand there too."""
