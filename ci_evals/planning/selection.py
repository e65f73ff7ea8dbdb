"""The plan of a run, from loaded suites and a selection of tests."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ci_evals.domain.checks.strict_check import StrictCheck
from ci_evals.domain.criterion import Criterion
from ci_evals.domain.definition import CriterionDefinition, SuiteDefinition, TestDefinition
from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Plan, PlannedSuite
from ci_evals.domain.suite import AUTO, PlannedTurn, Test
from ci_evals.planning.documents.document import Path
from ci_evals.planning.parse import LoadedSuite
from ci_evals.support import templates
from ci_evals.support.digest import digest
from ci_evals.support.redaction import Redactor


@dataclass(frozen=True)
class Selection:
    """The tests to run. An empty selection means all; a test must match both names and tags if given."""

    names: tuple[str, ...] = ()
    """Whole names of tests, or parts of names separated by commas."""
    tags: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: str | Sequence[str] | None, tags: str | None) -> "Selection":
        """Return the selection that the options describe. A text with several lines has a name in each.

        Raises:
            UsageError: names or tags are given but empty: they would select everything.
        """
        texts = [names] if isinstance(names, str) else [*(names or ())]
        lines: list[str] = []
        for text in texts:
            if text:
                _split("test", text)  # refuses a text without a name
                lines += [line.strip() for line in text.splitlines() if line.strip(", ")]
        return cls(names=tuple(lines), tags=_split("tag", tags))

    def matcher(self, tests: Iterable[Test]) -> Callable[[Test], bool]:
        """Return the function that decides whether one of these tests is selected.

        A name that is the whole name of one of them selects no other.
        """
        is_named = name_matcher(self.names, (test.name for test in tests))

        def selects(test: Test) -> bool:
            if self.names and not is_named(test.name):
                return False
            return not self.tags or not set(self.tags).isdisjoint(test.tags)

        return selects


def name_matcher(names: Sequence[str], known: Iterable[str]) -> Callable[[str], bool]:
    """Return the function that decides whether one of the `known` names of tests is meant by one of `names`.

    The whole name of a test means that test alone. Else a name means all tests whose names contain one of its
    parts, which commas separate; of parts case does not count.
    """
    known_names = frozenset(known)
    whole = known_names.intersection(names)
    parts = [part.casefold() for name in names if name not in whole for part in _split("test", name)]

    def is_named(name: str) -> bool:
        return name in whole or any(part in name.casefold() for part in parts)

    return is_named


def _split(setting: str, text: str | None) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in (text or "").replace("\n", ",").split(",") if part.strip())
    if text and not parts:
        raise UsageError(
            f"`{setting}=`: {text!r} contains no name. Write names or tags, separated by commas."
        )
    return parts


def plan(loaded: Sequence[LoadedSuite], selection: Selection, loops: int) -> Plan:
    """Return the plan of a run.

    Raises:
        UsageError: nothing is selected; the message lists tests and tags.
    """
    selects = selection.matcher(test for item in loaded for test in item.suite.tests)
    suites = tuple(planned for item in loaded if (planned := _planned(item, selects)).tests)
    if not suites:
        names = ", ".join(repr(test.name) for item in loaded for test in item.suite.tests)
        tags = ", ".join(sorted({tag for item in loaded for test in item.suite.tests for tag in test.tags}))
        asked = (("test", selection.names), ("tag", selection.tags))
        options = " and ".join(f"`{setting}={','.join(words)}`" for setting, words in asked if words)
        raise UsageError(f"No test matches {options}. Tests: {names}. Tags: {tags or 'none'}.")
    return Plan(suites=suites, loops=loops, definitions=tuple(map(_definition, loaded)))


def _planned(loaded: LoadedSuite, selects: Callable[[Test], bool]) -> PlannedSuite:
    redactor = Redactor(values=loaded.secrets)
    digests = _digests(loaded, redactor)
    whole = PlannedSuite(
        suite=loaded.suite,
        file=loaded.file,
        digest=digest([redactor.text(loaded.suite.name), *digests]),
        tests=loaded.suite.tests,
        test_digests=tuple(digests),
        test_lines=loaded.test_lines,
        start_folder=loaded.start_folder,
        other_users=frozenset(loaded.users),
    )
    return with_tests(whole, [i for i, test in enumerate(loaded.suite.tests) if selects(test)])


def with_tests(suite: PlannedSuite, indices: Sequence[int]) -> PlannedSuite:
    """Return the suite with these of its tests alone."""
    return replace(
        suite,
        tests=tuple(suite.tests[i] for i in indices),
        test_digests=tuple(suite.test_digests[i] for i in indices),
        test_lines=tuple(suite.test_lines[i] for i in indices),
    )


_AUDIT_PROMPTS = ("conversation/prompts/audit_system.md.j2", "conversation/prompts/audit.md.j2")
_DEFINING_FIELDS = {"name", "user_info", "guidelines", "system_prompt", "turns", "evaluations", "canaries"}
_DEFINING_KEYS = {Test.model_fields[name].alias or name for name in _DEFINING_FIELDS}
_EACH_STEP: dict[str, Any] = {"__all__": {"http": {"url"}, "sql": {"url"}, "timeout": True}}
_NOT_OF_THE_WORLD = dict.fromkeys(("setup", "probes", "teardown"), _EACH_STEP)
"""A service that has moved, or is waited for longer, is the same."""


def _digests(loaded: LoadedSuite, redactor: Redactor) -> list[str]:
    """Return each test's SHA-256 of all that defines it: turns, user, criteria and weights, its world.

    Tags, position, floor and optimal workflows change no verdict and are left out, and so is the agent, which
    is what runs are compared for. Secrets are redacted first, so that a digest does not depend on them,
    but on the names of their variables.
    """
    suite = loaded.suite
    auto_turn = PlannedTurn(user=AUTO).model_dump(mode="json", by_alias=True)
    digests = []
    for index, test in enumerate(suite.tests):
        defined = test.model_dump(mode="json", by_alias=True, include=_DEFINING_FIELDS)
        if not test.canaries:
            del defined["canaries"]  # so that tests without any have the digests that they always had
        turns = defined.pop("turns")
        turns += [auto_turn] * (len(suite.turns_of(test)) - len(test.planned_turns))
        world = suite.world_of(test)
        around = [world.model_dump(mode="json", by_alias=True, exclude=_NOT_OF_THE_WORLD)] if world else []
        asked = [templates.digest(*prompts)] if (prompts := _own_prompts(test)) else []
        if test.may_escalate:
            asked.append("mayEscalate")
        if test.audit_user:
            asked += [templates.digest(*_AUDIT_PROMPTS), *filter(None, [suite.audit_model])]
        written = [one for one in _written(loaded, "tests", index) if _DEFINING_KEYS.issuperset(one[0][:1])]
        digests.append(digest([*redactor.json([defined, turns, *around, *asked]), *written]))
    return digests


def _written(loaded: LoadedSuite, *place: str | int) -> list[tuple[Path, str]]:
    """Return the strings with secrets within a place, as they are written, in the order of their own places.

    `${CANARY}`, `${OTHER}` and `***` are the same once they are redacted, and mean something else.
    """
    within = [
        (path[len(place) :], text) for path, text in loaded.written.items() if path[: len(place)] == place
    ]
    return sorted(within, key=lambda one: [str(part) for part in one[0]])


def _own_prompts(test: Test) -> list[str]:
    """Return the templates that are used for this test and not for every other one."""
    return sorted({name for evaluation in test.evaluations for name in evaluation.own_prompts})


def _definition(loaded: LoadedSuite) -> SuiteDefinition:
    """Return what a suite requires. Names may still hold secrets; digests do not depend on them."""
    suite, redactor = loaded.suite, Redactor(values=loaded.secrets)
    return SuiteDefinition(
        name=suite.name,
        file=loaded.file,
        min_score=suite.min_score,
        tests=tuple(_test_definition(loaded, index, redactor) for index in range(len(suite.tests))),
    )


def _test_definition(loaded: LoadedSuite, index: int, redactor: Redactor) -> TestDefinition:
    test = loaded.suite.tests[index]
    turns = [turn.model_dump(mode="json", by_alias=True, exclude_defaults=True) for turn in test.turns]
    written = _written(loaded, "tests", index, "turns")
    criteria = tuple(
        _criterion_definition(evaluation, _written(loaded, "tests", index, "evaluations", number), redactor)
        for number, evaluation in enumerate(test.evaluations)
    )
    evaluations = [[one.criterion, one.digest, one.weight] for one in criteria]
    when = test.when or loaded.suite.when
    # Tests of one cluster may differ in their users alone: one is no new name of another.
    user = [test.guidelines] if test.cluster else []
    return TestDefinition(
        name=test.name,
        content=digest([*redactor.json([turns, evaluations, *user]), *written]),
        tags=test.tags,
        difficulty=test.difficulty,
        critical=test.critical,
        may_escalate=test.may_escalate,
        quarantined=test.quarantine is not None,
        cluster=test.cluster,
        user=loaded.users.get(test.name, ()),
        min_score=test.min_score,
        when=when.paths if when else None,
        criteria=criteria,
    )


def _criterion_definition(
    evaluation: Criterion, written: Sequence[tuple[Path, str]], redactor: Redactor
) -> CriterionDefinition:
    """Return the criterion with a digest that a key with a default value does not change."""
    left_out = {"weight", "criterion"} if isinstance(evaluation, StrictCheck) else {"weight"}
    deciding = evaluation.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=left_out)
    named = [one for one in written if left_out.isdisjoint(one[0][:1])]
    return CriterionDefinition(
        criterion=evaluation.criterion,
        digest=digest([*redactor.json([evaluation.strict_kind, deciding]), *named]),
        weight=evaluation.weight,
    )
