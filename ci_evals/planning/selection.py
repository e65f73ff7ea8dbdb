"""Loaded suites and a choice of tests become the plan of a run."""

from collections.abc import Sequence
from dataclasses import dataclass

from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Plan, PlannedSuite
from ci_evals.domain.suite import AUTO, PlannedTurn, Suite, Test
from ci_evals.planning.parse import LoadedSuite
from ci_evals.support.digest import digest
from ci_evals.support.redaction import Redactor


@dataclass(frozen=True)
class Selection:
    """Which tests to run. An empty selection means all; both kinds given, a test must meet both."""

    names: tuple[str, ...] = ()
    """Parts of names; case does not count."""
    tags: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: str | None, tags: str | None) -> "Selection":
        """From comma-separated lists as the options have them.

        Raises:
            UsageError: a list is there and holds nothing: it would select everything.
        """
        return cls(names=_split("--test", names), tags=_split("--tag", tags))

    def takes(self, test: Test) -> bool:
        """Whether the test is selected."""
        name = test.name.casefold()
        return (not self.names or any(part.casefold() in name for part in self.names)) and (
            not self.tags or not set(self.tags).isdisjoint(test.tags)
        )


def _split(option: str, text: str | None) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in (text or "").replace("\n", ",").split(",") if part.strip())
    if text and not parts:
        raise UsageError(f"{option}: {text!r} names nothing")
    return parts


def plan(loaded: Sequence[LoadedSuite], selection: Selection, loops: int) -> Plan:
    """The plan of a run.

    Raises:
        UsageError: nothing is selected; the message lists what there is.
    """
    suites = tuple(planned for item in loaded if (planned := _planned(item, selection)).tests)
    if not suites:
        names = ", ".join(repr(test.name) for item in loaded for test in item.suite.tests)
        tags = ", ".join(sorted({tag for item in loaded for test in item.suite.tests for tag in test.tags}))
        raise UsageError(f"no test is selected by --test and --tag. Tests: {names}. Tags: {tags or 'none'}.")
    return Plan(suites=suites, loops=loops)


def _planned(loaded: LoadedSuite, selection: Selection) -> PlannedSuite:
    redactor = Redactor(values=loaded.secrets)
    digests = _digests(loaded.suite, redactor)
    chosen = [place for place, test in enumerate(loaded.suite.tests) if selection.takes(test)]
    return PlannedSuite(
        suite=loaded.suite,
        file=loaded.file,
        digest=digest([redactor.text(loaded.suite.name), *digests]),
        tests=tuple(loaded.suite.tests[place] for place in chosen),
        test_digests=tuple(digests[place] for place in chosen),
        test_lines=tuple(loaded.test_lines[place] for place in chosen),
    )


_ASKED = {"name", "user_info", "guidelines", "system_prompt", "turns", "evaluations"}


def _digests(suite: Suite, redactor: Redactor) -> list[str]:
    """For each test, SHA-256 of what it asks: its lines, the user's data, the criteria and weights.

    Not its tags, place, floor or optimal workflows, which change no verdict, and not the agent: another one
    is what runs are compared for. Secrets are taken out first, so that a digest tells nothing about them and
    does not change with them.
    """
    asked = suite.model_dump(mode="json", by_alias=True, include={"tests": {"__all__": _ASKED}})
    filled_up = PlannedTurn(user=AUTO).model_dump(mode="json", by_alias=True)
    digests = []
    for test, defined in zip(suite.tests, asked["tests"], strict=True):
        turns = defined.pop("turns")
        turns += [filled_up] * (len(suite.turns_of(test)) - len(turns))
        digests.append(digest(redactor.json([defined, turns])))
    return digests
