"""The steps from the findings to a suite that notices more, in the order to take them."""

import shlex
from collections.abc import Iterator

from ci_evals.domain import numbers
from ci_evals.domain.suite import is_bundled
from ci_evals.extensions.mutate.result import Mutations


def next_steps(found: Mutations, results: str) -> list[str]:
    """Return what to do next, a step each, with commands in backticks.

    `results` names the run as the user did.
    """
    command = f"ci-evals mutate {_argument(results, 'RESULTS')}"
    return [
        *_suggested(found, command),
        *_unasked(found, command),
        *_unsuggested(found),
        *_open_gate(found),
    ]


def _argument(path: str, word: str) -> str:
    """Return a path as an argument for a shell; `word` instead if it could end the code that it is in."""
    if "`" in path or not path.isprintable():
        return word
    return shlex.quote(path)


def _suggested(found: Mutations, command: str) -> Iterator[str]:
    if not found.suggestions:
        return
    faults = sum(len(suggestion.kinds) for suggestion in found.suggestions)
    checks = numbers.count(len(found.suggestions), "suggested check")
    would = f"They would notice {numbers.count(faults, 'more fault')}."
    yield (
        f"Read the {checks} in suggestions.yaml. {would} Each says what the saved conversations did: you "
        "know whether it was right."
    )
    for file in dict.fromkeys(suggestion.suite for suggestion in found.suggestions):
        if not is_bundled(file):
            yield (
                f"Add them: `{command} --apply={_argument(file, 'SUITE')}`. It shows the difference; take "
                "out again what you do not want."
            )
    yield "Run the suite again, and `ci-evals mutate` on the new run."


def _unasked(found: Mutations, command: str) -> Iterator[str]:
    """Yield the faults that only a judge could notice, once there is no strict check to add."""
    left = sum(fault.not_asked for fault in found.faults)
    if not left or found.suggestions:
        return
    only = f"{numbers.count(left, 'fault')} could be noticed only by a judge or by a function of the suite"
    if found.judge is None:
        yield f"{only}. Ask the judge: `{command} --judge --max-cost=1`."
    else:
        yield f"{only}, and nobody was asked about them."


def _unsuggested(found: Mutations) -> Iterator[str]:
    """Yield the kinds for which no check is known, so that nobody looks for one in vain."""
    suggested = {(one.test, kind) for one in found.suggestions for kind in one.kinds}
    kinds: dict[str, None] = {}
    for test in found.tests:
        kinds |= dict.fromkeys(kind for kind in test.unnoticed if (test.name, kind) not in suggested)
    if kinds:
        yield (
            f"In some tests no check is suggested for {', '.join(kinds)}: nothing that the agent reports "
            "shows the fault. Let it report more, such as results and errors of its calls, or read the "
            "state by a probe."
        )


def _open_gate(found: Mutations) -> Iterator[str]:
    """Yield that the gate passes with a few broken conversations of kinds that criteria notice."""
    few = min(found.gate.shares)
    kinds = sum(
        bool(fault.noticed) and (fault.needed_share is None or fault.needed_share > few)
        for fault in found.faults
    )
    if found.gate.passed and kinds:
        yield (
            f"Tests notice {numbers.count(kinds, 'kind')} of faults, and yet the gate passes while a few "
            "conversations are broken: mark the tests that must never fail as `critical: true`, or raise the "
            "minimum score."
        )
