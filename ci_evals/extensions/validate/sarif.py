"""Findings as SARIF 2.1.0, which code scanning services read. Pure.

GitHub shows a result at the first line of its region, in the file below the root of the repository. A suite
outside of it has an absolute address; a bundled one is no file of the user's and has only a name.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import JsonValue

from ci_evals._version import __version__
from ci_evals.domain.suite import is_bundled
from ci_evals.extensions.validate.suite_findings import Rule, SuiteFinding
from ci_evals.reports import sanitize
from ci_evals.support import documentation

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"
_MAX_MESSAGE = 4_000


@dataclass(frozen=True)
class _RuleText:
    """How a rule is described, and how severe what it finds is."""

    name: str
    level: str
    short: str
    full: str


_RULES = {
    Rule.INVALID: _RuleText(
        "InvalidSuite",
        "error",
        "A suite that cannot be run.",
        "Nothing runs until this is corrected.",
    ),
    Rule.WARNING: _RuleText(
        "SuiteWarning",
        "warning",
        "Something in a suite has no effect, or not the expected one.",
        "The suite runs, but part of it is ignored or does not do what it seems to do.",
    ),
    Rule.WEAK: _RuleText(
        "WeakSuite",
        "warning",
        "A suite that tests less than it seems to.",
        "With the option strict: no strict check, a criterion that asks two things, an answer given away.",
    ),
    Rule.VACUOUS: _RuleText(
        "VacuousCriterion",
        "warning",
        "A judged criterion that measures nothing.",
        "With the option probe: it passes in conversations of other tests too.",
    ),
}


@dataclass(frozen=True)
class SarifLog:
    """The log of one call of `validate`."""

    findings: Sequence[SuiteFinding]
    folder: Path
    """The folder that the suites' file names are relative to."""
    root: Path
    """The root of the repository, or the same folder."""
    exit_code: int = 0
    messages: Sequence[str] = ()
    """Errors that have no place in a suite."""

    def render(self) -> JsonValue:
        """Return the log as JSON."""
        return {
            "$schema": _SCHEMA,
            "version": "2.1.0",
            "runs": [
                {
                    "tool": {"driver": _driver()},
                    "columnKind": "unicodeCodePoints",
                    "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
                    "invocations": [self._invocation()],
                    "results": [self._result(finding) for finding in self.findings],
                }
            ],
        }

    def _invocation(self) -> JsonValue:
        invocation: dict[str, JsonValue] = {
            "executionSuccessful": not self.exit_code,
            "exitCode": self.exit_code,
        }
        if self.messages:
            invocation["toolExecutionNotifications"] = [
                {"level": "error", "message": {"text": _sentence(message)}} for message in self.messages
            ]
        return invocation

    def _result(self, finding: SuiteFinding) -> JsonValue:
        problem = finding.problem
        text = f"{problem.path}: {problem.message}" if problem.path else problem.message
        return {
            "ruleId": finding.rule.value,
            "ruleIndex": list(_RULES).index(finding.rule),
            "level": _RULES[finding.rule].level,
            "message": {"text": _sentence(text)},
            "locations": [self._location(problem.file, problem.line, problem.column)],
        }

    def _location(self, file: str, line: int, column: int) -> JsonValue:
        if is_bundled(file):
            return {"logicalLocations": [{"fullyQualifiedName": sanitize.one_line(file), "kind": "module"}]}
        return {
            "physicalLocation": {
                "artifactLocation": self._artifact(file),
                "region": {"startLine": line, "startColumn": column},
            }
        }

    def _artifact(self, file: str) -> dict[str, JsonValue]:
        path = Path(os.path.normpath(self.folder / file))
        if path.is_relative_to(self.root):
            name = path.relative_to(self.root).as_posix()
            return {"uri": quote(os.fsencode(name)), "uriBaseId": _ROOT}
        return {"uri": path.as_uri()}


def _driver() -> dict[str, Any]:
    return {
        "name": "ci-evals",
        "version": __version__,
        "informationUri": documentation.address("writing-a-suite"),
        "rules": [_rule(rule, text) for rule, text in _RULES.items()],
    }


def _rule(rule: Rule, text: _RuleText) -> dict[str, JsonValue]:
    return {
        "id": rule.value,
        "name": text.name,
        "shortDescription": {"text": text.short},
        "fullDescription": {"text": text.full},
        "helpUri": documentation.address("writing-a-suite"),
        "help": {"text": f"{text.full} See {documentation.address('writing-a-suite')}."},
        "defaultConfiguration": {"level": text.level},
    }


def _sentence(text: str) -> str:
    line = sanitize.one_line(text, _MAX_MESSAGE)
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."
