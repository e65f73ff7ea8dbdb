"""The facts of simulated users: how many broke character, and how."""

from collections.abc import Iterator

from ci_evals.domain.results.run import Results
from ci_evals.domain.results.simulated_user import UserChecks
from ci_evals.reports import numbers
from ci_evals.reports.facts.labels import spaced
from ci_evals.reports.facts.parts import PlainTable

TOPIC = "Simulated user"


def remarks(results: Results) -> Iterator[str]:
    """The number of conversations that were checked, and the rules that were broken."""
    if results.user_checks:
        yield _remark(results.user_checks)


def tables(results: Results) -> Iterator[PlainTable]:
    """Broken rules by the number of conversations."""
    if results.user_checks:
        yield _table(results.user_checks)


def warnings(results: Results) -> Iterator[str]:
    """Warnings about excluded trials, and simulated users that no model checked."""
    found = results.user_checks
    if found is None:
        return
    if found.invalid:
        one = found.invalid == 1
        yield (
            f"{numbers.count(found.invalid, 'trial')} {'is' if one else 'are'} left out of every score: "
            f"{'its' if one else 'their'} simulated user broke its role, and again when played anew. Read "
            "what it said; mend the guidelines, or take another --user-model."
        )
    if found.not_audited:
        talks = numbers.count(found.not_audited, "conversation")
        yield f"{talks} could not be audited by a model: only rules looked at the simulated user there."


def _remark(found: UserChecks) -> str:
    looked = f"{numbers.count(found.conversations, 'conversation')} looked at"
    if found.audited:
        looked += f", {found.audited:,} by a model as well"
    broke = (
        f"{numbers.estimated_fault(found.violation_rate)} of the first users broke their role"
        if found.violation_rate
        else ""
    )
    played = f"{numbers.count(found.rerun, 'trial')} played again" if found.rerun else ""
    left = f"{found.invalid:,} left out" if found.invalid else ""
    broken = f"broken rules, by conversations: {_violations(found)}" if found.by_rule else ""
    if not broken and not broke:
        broken = "no rule was broken"
    return "; ".join(filter(None, [looked, broke, played, left, broken])) + "."


def _violations(found: UserChecks) -> str:
    """`repeats 2, meta text 1`."""
    return ", ".join(f"{spaced(name)} {count:,}" for name, count in _by_rule(found))


def _by_rule(found: UserChecks) -> list[tuple[str, int]]:
    """Broken rules with the number of conversations, the commonest first."""
    return sorted(found.by_rule.items(), key=lambda item: (-item[1], item[0]))


def _table(found: UserChecks) -> PlainTable:
    return PlainTable(
        "Rules that simulated users broke",
        ("rule", "conversations", "of those looked at"),
        tuple(
            (spaced(name), f"{count:,}", numbers.fault(count / max(found.conversations, count, 1)))
            for name, count in _by_rule(found)
        ),
        in_remark=True,
    )
