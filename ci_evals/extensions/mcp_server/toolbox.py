"""The tools: arguments in, facts and words out."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.files.suite_loading import load_suites
from ci_evals.cli.github.github_job import GitHubJob
from ci_evals.cli.github.trust import FileTrust
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.choices import OutputFormat
from ci_evals.domain.errors import CiEvalsError, Exit, Problem, SuiteError, UsageError
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.suite import Test
from ci_evals.extensions.mcp_server import saved
from ci_evals.extensions.mcp_server.children import Children, Ended
from ci_evals.extensions.mcp_server.saved import Answer, name
from ci_evals.extensions.mcp_server.settings import AGENT_OPTIONS, McpSettings
from ci_evals.extensions.mcp_server.words import Words, texts_in
from ci_evals.extensions.mcp_server.workspace import check_suites, results_path
from ci_evals.planning.parse import LoadedSuite
from ci_evals.planning.selection import Selection
from ci_evals.planning.selection import plan as make_plan
from ci_evals.reports import sanitize
from ci_evals.reports.names import RESULTS

_MOST_LISTED = 500
_MOST_PROBLEMS = 100
_MOST_MESSAGE = 2_000
_WARNING = "warning: "
_MUTATIONS = "_mutations.json"


class ToolError(CiEvalsError):
    """A tool could not do what it was asked for."""


class Toolbox:
    """The tools of one server, by their names."""

    def __init__(self, settings: McpSettings, context: RunContext, children: Children, root: Path) -> None:
        self._settings, self._context, self._children, self._root = settings, context, children, root
        self._spent = 0.0
        self._one_run = asyncio.Lock()

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        """Return what a tool answers.

        Raises:
            CiEvalsError: with one message for the client.
        """
        if suites := arguments.get("suites"):
            check_suites(suites, self._root)
        match tool:
            case "list_tests":
                return self._list_tests(arguments)
            case "validate":
                return await self._validate(arguments)
            case "plan":
                return Answer(await self._plan(arguments))
            case "run":
                async with self._one_run:
                    return Answer(await self._run(arguments))
            case "failures" | "explain":
                return self._explain(tool, arguments)
            case _:
                return await self._suggest_checks(arguments)

    def _list_tests(self, arguments: Mapping[str, Any]) -> Answer:
        loaded = self._load(arguments["suites"])
        planned = make_plan(loaded, _selection(arguments), 1)
        lines = {(item.file, test.name): line for item in loaded for test, line in _tests(item)}
        tests: list[JsonValue] = []
        for suite in planned.suites:
            for test in suite.tests:
                strict = sum(one.strict_kind is not None for one in test.evaluations)
                tests.append(
                    {
                        "suite": name(suite.file),
                        "line": lines[suite.file, test.name],
                        "test": name(test.name),
                        "tags": [name(tag) for tag in test.tags],
                        "critical": test.critical,
                        "strict": strict,
                        "judged": len(test.evaluations) - strict,
                    }
                )
        return Answer({"tests": tests[:_MOST_LISTED], "moreTests": max(0, len(tests) - _MOST_LISTED)})

    async def _validate(self, arguments: Mapping[str, Any]) -> Answer:
        try:
            loaded = self._load(arguments["suites"])
        except SuiteError as error:
            problems: list[JsonValue] = [_problem(one) for one in error.problems[:_MOST_PROBLEMS]]
            more = max(0, len(error.problems) - _MOST_PROBLEMS)
            return Answer({"valid": False, "problems": problems, "moreProblems": more})
        options = {option: getattr(self._settings, option) for option in AGENT_OPTIONS}
        options |= {"suites": [*arguments["suites"]], "strict": True}
        ended = await self._children.call("validate", arguments["suites"], options)
        if ended.code != Exit.PASSED:
            raise self._failed("validate", ended)
        lines = self._context.redactor.text(ended.stderr).splitlines()
        warnings: list[JsonValue] = [
            sanitize.one_line(line.removeprefix(_WARNING), _MOST_MESSAGE)
            for line in lines
            if line.startswith(_WARNING)
        ]
        suites: list[JsonValue] = [
            {"suite": name(item.file), "tests": len(item.suite.tests)} for item in loaded
        ]
        return Answer({"valid": True, "suites": suites, "warnings": warnings[:_MOST_PROBLEMS]})

    def _load(self, names: Sequence[str]) -> list[LoadedSuite]:
        settings = self._settings.of_suites([*names])
        trust = FileTrust(settings, GitHubJob.of(settings, self._context))
        return load_suites(settings, trust, without_key=True)

    async def _plan(self, arguments: Mapping[str, Any]) -> dict[str, JsonValue]:
        options = self._played(arguments) | {"output_format": OutputFormat.JSON}
        ended = await self._children.call("plan", arguments["suites"], options)
        if ended.code != Exit.PASSED:
            raise self._failed("plan", ended)
        printed = json.loads(ended.stdout)
        facts = {key: printed[key] for key in ("trials", "turns", "strict", "judged", "calls", "estimate")}
        return {"tests": printed["tests"], **facts}

    async def _run(self, arguments: Mapping[str, Any]) -> dict[str, JsonValue]:
        folder = results_path(arguments.get("results"), self._root)
        self._refuse_above_limits(await self._plan(arguments))
        before = _run_id(folder)
        spent = self._spent
        left = max(0.0, self._settings.max_cost - spent)
        options = self._played(arguments) | {"output_dir": folder, "max_cost": left, "quiet": True}
        # Until a run tells its cost, nobody knows what it has spent.
        self._spent = max(spent, self._settings.max_cost)
        ended = await self._children.call("run", arguments["suites"], options, self._settings.max_trials)
        if ended.code == Exit.USAGE and not _may_be_new(folder, before):
            self._spent = spent  # nothing was played
        if ended.code not in (Exit.PASSED, Exit.FAILED, Exit.INVALID):
            raise _ended_early("run", ended)
        results = self._open(folder)
        if results.run.id == before or results.gate.exit_code != ended.code:
            raise ToolError(
                f"No verdict: the run ended with exit code {ended.code}, and wrote no results that say so. "
                "Run `ci-evals run` in a terminal to see why."
            )
        if results.usage.cost_usd is not None:
            self._spent = spent + results.usage.cost_usd
        again = "Call `failures` for reasons." if results.gate.exit_code else None
        return {**saved.summary(results), "results": str(folder), "next": again}

    def _refuse_above_limits(self, plan: Mapping[str, JsonValue]) -> None:
        """Refuse a run that may exceed a limit.

        Raises:
            ToolError: with the estimate.
        """
        estimate: Any = plan["estimate"]
        trials: Any = plan["trials"]
        dollars = estimate["dollars"]
        cost = f"${dollars[0]:.4f} to ${dollars[1]:.4f}" if dollars else "unknown"
        seconds = f"{estimate['seconds'][0]:.0f} to {estimate['seconds'][1]:.0f} s"
        estimated = f"Estimate: {trials[1]} trials at most, cost {cost}, {seconds}."
        hint = "Nothing was played. Select fewer tests with `tests` or `tags`, or lower `loops`."
        if trials[1] > self._settings.max_trials:
            limit = f"this server allows {self._settings.max_trials} trials in a run (--max-trials)"
            raise ToolError(f"Refused: {limit}. {estimated} {hint}")
        left = max(0.0, self._settings.max_cost - self._spent)
        is_above = dollars[1] > left if dollars else left == 0
        if is_above:
            limit = f"${left:.4f} of ${self._settings.max_cost:g} are left (--max-cost)"
            raise ToolError(f"Refused: {limit}. {estimated} {hint}")

    def _played(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        """Return the options that select and play tests."""
        options = {option: getattr(self._settings, option) for option in AGENT_OPTIONS}
        provider = str(self._settings.provider)  # its type is made anew in each process
        options |= {"suites": [*arguments["suites"]], "provider": provider}
        if tests := arguments.get("tests"):
            options["test"] = [*tests]
        if tags := arguments.get("tags"):
            options["tag"] = ",".join(tags)
        if loops := arguments.get("loops"):
            options["loops"] = loops
        return options

    def _explain(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        results = self._open(results_path(arguments.get("results"), self._root))
        words = Words() if arguments.get("conversation") else None
        read = saved.failures if tool == "failures" else saved.explain
        answer = read(results, arguments.get("tests") or (), _SuiteTexts(self).of, words)
        return replace(answer, words_cut=words.cut) if words else answer

    async def _suggest_checks(self, arguments: Mapping[str, Any]) -> Answer:
        folder = results_path(arguments.get("results"), self._root)
        for suite in self._open(folder).suites:
            check_suites([suite.file], self._root)
        options = {"results": folder, "quiet": True, "trust_suites": self._settings.trust_suites}
        ended = await self._children.call("mutate", [str(folder)], options)
        if ended.code != Exit.PASSED:
            raise _ended_early("mutate", ended)
        file = (folder if folder.is_dir() else folder.parent) / _MUTATIONS
        found = json.loads(file.read_text(encoding="utf-8"))
        faults: list[JsonValue] = [
            {key: fault[key] for key in ("kind", "planted", "noticed", "undecided")}
            for fault in found["faults"]
            if fault["planted"]
        ]
        suggestions: list[JsonValue] = [
            {
                "suite": name(one["suite"]),
                "test": name(one["test"]),
                "faults": [*one["kinds"]],
                "check": name(str(one["evaluation"].get("strict"))),
            }
            for one in found["suggestions"]
        ]
        facts: dict[str, JsonValue] = {
            "faults": faults,
            "suggestions": suggestions[:_MOST_LISTED],
            "file": str(file.parent / "suggestions.yaml"),
            "next": "`ci-evals mutate RESULTS --apply=SUITE` adds the checks to a suite.",
        }
        if not arguments.get("conversation"):
            return Answer(facts)
        words = Words()
        whole: list[JsonValue] = []
        for one in found["suggestions"]:
            text = words.take(json.dumps(one["evaluation"], ensure_ascii=False))
            whole.append({"test": name(one["test"]), "check": text})
        return Answer(facts, whole, words_cut=words.cut)

    def suite_texts(self, file: str) -> Mapping[str, frozenset[str]]:
        """Return all texts of the tests of a suite by the tests' names; none if it cannot be read here."""
        try:
            check_suites([file], self._root)
            loaded = self._load([file])
        except UsageError:
            return {}
        return {test.name: frozenset(_texts_of(test)) for item in loaded for test, _ in _tests(item)}

    def _open(self, path: Path) -> Results:
        return SavedRun.open(path, self._context.redactor).results

    def _failed(self, command: str, ended: Ended) -> ToolError:
        """Return the error of a command that asks no agent, and reads nothing that one said."""
        if ended.code in (Exit.USAGE, Exit.INVALID):
            message = self._context.redactor.text(ended.stderr).strip()
            return ToolError(sanitize.cut(sanitize.log(message), _MOST_MESSAGE, "…"))
        return _ended_early(command, ended)


class _SuiteTexts:
    """Reads each suite of a run once."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._known: dict[str, Mapping[str, frozenset[str]]] = {}

    def of(self, suite: SuiteResult, test: TestResult) -> frozenset[str]:
        """Return all texts of a test in its suite."""
        if suite.of_other_tool:
            return frozenset()
        if suite.file not in self._known:
            self._known[suite.file] = self._toolbox.suite_texts(suite.file)
        return self._known[suite.file].get(test.name, frozenset())


def _ended_early(command: str, ended: Ended) -> ToolError:
    """Return the error of a command without its own message, which may hold words of an agent."""
    return ToolError(
        f"`ci-evals {command}` could not start or ended early (exit code {ended.code}). Run it in a terminal "
        "to see why."
    )


def _tests(item: LoadedSuite) -> list[tuple[Test, int]]:
    return list(zip(item.suite.tests, item.test_lines, strict=True))


def _texts_of(test: Test) -> list[str]:
    texts: list[str] = []
    for evaluation in test.evaluations:
        texts += texts_in(evaluation.model_dump(mode="json", exclude_none=True))
    return texts


def _problem(problem: Problem) -> JsonValue:
    return {
        "file": name(problem.file),
        "line": problem.line,
        "column": problem.column,
        "path": name(problem.path),
        "message": sanitize.one_line(problem.message, _MOST_MESSAGE),
    }


def _selection(arguments: Mapping[str, Any]) -> Selection:
    return Selection.of(arguments.get("tests") or None, ",".join(arguments.get("tags") or ()) or None)


def _may_be_new(folder: Path, before: str | None) -> bool:
    """Return whether the results in a folder may be of another run than the one before."""
    if not (folder / RESULTS).exists():
        return False
    return before is None or _run_id(folder) != before


def _run_id(folder: Path) -> str | None:
    """Return the id of the run whose results are in a folder; None if there are none that can be read."""
    if not (folder / RESULTS).exists():
        return None
    try:
        return SavedRun.open(folder, None, unfinished=True, earlier_version=True).results.run.id
    except UsageError:
        return None
