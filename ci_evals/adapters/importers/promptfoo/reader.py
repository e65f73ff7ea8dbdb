"""promptfoo's configuration: its tests as conversations with an agent.

Three kinds of test are conversations there, and any other is one of a single line: those of the provider
`promptfoo:simulated-user` (`instructions`, `maxTurns`, `initialMessages`), those whose variables or prompt
hold a list of messages, and steps that share a history (a prompt with `_conversation`, or one
`metadata.conversationId`). Variables are filled in; other files and code are not run or read, but named.
"""

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from ci_evals.adapters.importers.imported import (
    ANSWERS,
    SAYS_ITS_LINES,
    ImportedSuite,
    JsonObject,
    cut,
    fixed,
    turns_at_most,
    whole_document,
)
from ci_evals.adapters.importers.promptfoo.assertions import ReplySelector, map_assertion
from ci_evals.adapters.importers.promptfoo.cases import (
    OverlongError,
    PromptfooCase,
    UserLines,
    cases,
    filled,
    is_whole,
    prompt_texts,
    remembers,
    user_lines,
    user_lines_of_case,
    variables_in,
)
from ci_evals.adapters.importers.promptfoo.values import UnmappedError
from ci_evals.domain.errors import SuiteError
from ci_evals.domain.suite import AUTO, MOST_LOOPS
from ci_evals.planning.documents.document import Document, Path

SIMULATED = "promptfoo:simulated-user"
_DEFAULT_MAX_TURNS = 10
"""The default of promptfoo's simulated user."""

_OF_SUITE = {"description", "prompts", "tests", "scenarios", "defaultTest", "providers", "targets", "$schema"}
_OF_SUITE |= {"evaluateOptions", "assertionTemplates"}
_OF_TEST = {"description", "vars", "assert", "provider", "metadata", "threshold", "options"}
_OF_TRACE = {"tool_used", "tool_not_used", "tool_called", "tool_sequence", "max_tool_calls"}
_AS_LINES = "if your agent can be given a history, add 'assistant' lines to the turns"
_FOR_THE_AGENT = re.compile(r"(?i)(system|developer|assistant)([ _-]?(message|prompt|instructions?|role))?$")
"""Common names of variables for the agent's prompt."""
ROW_OF_DATA = "item"
"""The variable of OpenAI's evals that holds all of a row, what graders expect included."""
_REPLY: JsonObject = {"sample": {"output_text": "the reply"}}
"""The reply as OpenAI's graders name it."""
_OF_SIMULATED = {"instructions", "maxTurns", "initialMessages", "stateful"}


def read(text: str, file: str) -> ImportedSuite:
    """One test for each conversation."""
    document = whole_document(text, file)
    config = document.value
    if not isinstance(config, dict) or not ({"tests", "scenarios"} & set(config)):
        raise SuiteError(
            [document.problem((), "must be promptfoo's configuration, with 'tests' or 'scenarios'")]
        )
    imported = ImportedSuite(str(config.get("description") or f"Imported from {PurePath(file).name}"))
    if left := sorted(str(key) for key in set(config) - _OF_SUITE):
        imported.fields["x-unmapped"] = left
        imported.notes.append(f"{file}: no counterpart for {', '.join(left)}")
    reader = _ConfigReader(document, config, imported)
    groups = _conversations(list(cases(document, imported.notes)), together=remembers(config.get("prompts")))
    for group in groups:
        try:
            reader.add(group)
        except OverlongError as error:
            raise SuiteError([document.problem(group[0].path, str(error))]) from error
    reader.finish()
    return imported


def _conversations(all_cases: list[PromptfooCase], *, together: bool) -> Iterator[list[PromptfooCase]]:
    """The cases of each conversation: steps that share a history are one."""
    groups: dict[Any, list[PromptfooCase]] = {}
    for i, case in enumerate(all_cases):
        conversation = case.part("metadata").get("conversationId")
        alone = case.provider == SIMULATED or not (together or isinstance(conversation, str | int))
        groups.setdefault(i if alone else f"conversation {conversation}", []).append(case)
    yield from groups.values()


class _ConfigReader:
    """Makes tests of cases, and notes what has no counterpart here."""

    def __init__(self, document: Document, config: JsonObject, imported: ImportedSuite) -> None:
        self.document = document
        self.config = config
        self.imported = imported
        self.unmapped: list[str] = []
        self.says_prompt = False
        default = config.get("defaultTest")
        self._defaults = default if isinstance(default, dict) else {}
        self.of_prompts = variables_in(prompt_texts(config.get("prompts")))

    def finish(self) -> None:
        prompts = self.config.get("prompts")
        lost = [text for text in prompt_texts(prompts) if not is_whole(text)]
        if prompts and (len(lost) > 1 or (lost and not self.says_prompt) or not prompt_texts(prompts)):
            shown = f" ({cut(lost[0])!r})" if lost else ""
            self._left_of_suite("prompts", f"the agent has its own instructions{shown}")
        for key in ("providers", "targets"):
            if self.config.get(key):
                self._left_of_suite(key, "name the agent in the suite, or by options")
        options = self.config.get("evaluateOptions")
        for key in options if isinstance(options, dict) else ():
            if key != "repeat":
                self._left_of_suite(f"evaluateOptions.{key}", "it has no counterpart")

    def _left_of_suite(self, key: str, reason: str) -> None:
        problem = self.document.problem((key.partition(".")[0],), f"{key} is left out: {reason}")
        self.imported.fields.setdefault("x-unmapped", []).append(key)
        self.imported.notes.append(str(problem))

    def _user_info(self, group: list[PromptfooCase], used: set[str]) -> JsonObject:
        """Return the variables that are the user's data, not those of the agent's prompt or of assertions.

        What assertions expect must not reach the agent, which gets the user's data with every message.
        """
        info: JsonObject = {}
        for case in group:
            of_user = variables_in([case.provider_config, case.variables])
            of_graders = variables_in([assertion for _, assertion in case.asserts])
            for key, item in case.variables.items():
                if key in used:
                    continue
                if key == ROW_OF_DATA and isinstance(item, dict):
                    self._note(
                        case.path, "its variable 'item' is a row of data, and the agent is not given it"
                    )
                elif key not in of_user and key in of_graders:
                    self._note(
                        case.path, f"its variable {key!r} is for assertions, and the agent is not given it"
                    )
                elif key not in of_user and (key in self.of_prompts or _FOR_THE_AGENT.match(key)):
                    self._note(case.path, f"its variable {key!r} is for the agent's prompt, and left out")
                else:
                    info[key] = item
        return info

    def add(self, group: list[PromptfooCase]) -> None:
        """Add the test of one conversation."""
        self.unmapped = []
        first = group[0]
        for case in group:
            for name in case.elsewhere:
                self._note(case.path, f"its variable {name!r} is another file, which is not read")
        result = self._simulated(first) if first.provider == SIMULATED else self._planned(group)
        if result is None:
            return
        test, used = result
        test |= {"userInfo": info} if (info := self._user_info(group, used)) else {}
        evaluations = self._of_steps(group, many=len(test["turns"]) > 1)
        if not any(item.get("weight", 1) for item in evaluations):
            evaluations.append(dict(ANSWERS))
        test["evaluations"] = evaluations
        test["tags"] = _tags(first) or ["promptfoo"]
        test |= self._limits(first)
        if metadata := {key: item for key, item in first.part("metadata").items() if key != "tags"}:
            test["x-metadata"] = metadata
            if others := sorted(set(metadata) - {"conversationId"}):
                self._note(first.path, f"its metadata ({', '.join(others)}) is kept without any effect")
        if self.unmapped:
            test["x-unmapped"] = self.unmapped
        self.imported.add(first.description or _first_words(test), test)

    def _of_steps(self, group: list[PromptfooCase], *, many: bool) -> list[JsonObject]:
        """Return the evaluations of a conversation; of several steps each checks its own reply."""
        simulated, steps = group[0].provider == SIMULATED, len(group) > 1
        evaluations: list[JsonObject] = []
        for number, case in enumerate(group, start=1):
            self._other_fields(case)
            if number > 1:
                own = {"description", "threshold"} & set(case.fields) - set(self._defaults)
                if own:
                    self._note(case.path, f"a later step's {', '.join(sorted(own))} is left out")
            positive: int | str = "any" if simulated else "last"
            whole = ReplySelector(positive, "any" if simulated or many else "last")
            selector = ReplySelector(number, number) if steps else whole
            for item in self._evaluations(case, selector):
                if steps and "strict" not in item:
                    item["criterion"] = f"In reply {number}: {item['criterion']}"
                evaluations.append(item)
        return evaluations

    def _simulated(self, case: PromptfooCase) -> tuple[JsonObject, set[str]] | None:
        config = case.provider_config
        instructions = config.get("instructions", case.variables.get("instructions"))
        if (
            not isinstance(instructions, str)
            or not instructions.strip()
            or instructions.startswith("file://")
        ):
            self._note(case.path, "left out: its simulated user has no instructions in this file")
            return None
        most = config.get("maxTurns", _DEFAULT_MAX_TURNS)
        if type(most) is not int or most < 1:
            raise SuiteError(
                [self.document.problem(case.path, f"maxTurns: {most!r} is not a number of turns")]
            )
        given = case.variables.get("initialMessages", config.get("initialMessages")) or []
        opening = user_lines(given, case.variables) if isinstance(given, list) else UserLines()
        if given and not opening.lines:
            self._note(case.path, "initialMessages are not in this file")
        if opening.replies:
            self._note(case.path, f"what the assistant said in initialMessages is left out; {_AS_LINES}")
        self._unknown(case.path, config, _OF_SIMULATED)
        turns = [fixed(line) for line in opening.lines]
        test: JsonObject = {
            "guidelines": filled(instructions, case.variables),
            "turns": turns or [{"user": AUTO}],
            "maxTurns": turns_at_most(len(turns) + most),
        }
        return test, {"instructions", "initialMessages"}

    def _planned(self, group: list[PromptfooCase]) -> tuple[JsonObject, set[str]] | None:
        user: list[str] = []
        used: set[str] = set()
        system = ""
        for case in group:
            lines = user_lines_of_case(self.config.get("prompts"), case.variables)
            if not lines.known:
                self._note(case.path, "left out: it is unknown which of its variables the user says")
                return None
            if lines.replies:
                self._note(case.path, f"what the assistant said before is left out; {_AS_LINES}")
            user += lines.lines
            used |= lines.used
            self.says_prompt = self.says_prompt or lines.says_prompt
            system = system or lines.system
        test: JsonObject = {"guidelines": SAYS_ITS_LINES, "turns": [fixed(line) for line in user]}
        test |= {"systemPrompt": system} if system else {}
        return test | {"maxTurns": turns_at_most(len(user))}, used

    def _evaluations(self, case: PromptfooCase, selector: ReplySelector) -> Iterator[JsonObject]:
        for path, assertion in case.asserts:
            if not isinstance(assertion, dict):
                self._note(path, "is no object")
                continue
            kind = repr(assertion.get("type"))
            try:
                result = map_assertion(filled(assertion, _REPLY | case.variables), selector)
            except UnmappedError as error:
                self._note(path, f"{kind} {error}")
                continue
            if any(item.get("strict") in _OF_TRACE for item in result.evaluations):
                self._note(path, f"{kind} needs a trace: it is undecided for an agent that returns only text")
            if result.left:
                self._note(path, f"{kind}: no counterpart for its {', '.join(result.left)}")
            yield from result.evaluations

    def _other_fields(self, case: PromptfooCase) -> None:
        self._unknown(case.path, case.fields, _OF_TEST)
        if isinstance(given := case.fields.get("provider"), dict):
            known = {"id", "config"} if case.provider == SIMULATED else {"id"}
            self._unknown(case.path, given, known, "provider.")
        if case.provider and case.provider != SIMULATED:
            self._note(case.path, f"its own provider {case.provider!r}")
        self._unknown(
            case.path, case.part("options"), {"disableVarExpansion", "disableDefaultAsserts"}, "options."
        )

    def _limits(self, case: PromptfooCase) -> JsonObject:
        limits: JsonObject = {}
        threshold = case.fields.get("threshold")
        if threshold is not None:
            if type(threshold) not in {int, float} or not 0 <= threshold <= 1:
                raise SuiteError(
                    [self.document.problem(case.path, f"threshold: {threshold!r} is not between 0 and 1")]
                )
            limits["minScore"] = round(100 * threshold, 6)
        options = self.config.get("evaluateOptions")
        repeat = options.get("repeat") if isinstance(options, dict) else None
        if type(repeat) is int and 1 < repeat <= MOST_LOOPS:
            limits["loops"] = repeat
        return limits

    def _unknown(self, path: Path, given: JsonObject, known: set[str], prefix: str = "") -> None:
        if left := sorted(f"{prefix}{key}" for key in set(given) - known):
            self._note(path, f"no counterpart for its {', '.join(left)}")

    def _note(self, path: Path, message: str) -> None:
        problem = self.document.problem(path, message)
        self.unmapped.append(f"{problem.path}: {message}")
        self.imported.notes.append(str(problem))


def _tags(case: PromptfooCase) -> list[str]:
    given = case.part("metadata").get("tags")
    tags = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    return [tag.strip() for tag in tags if isinstance(tag, str) and tag.strip()]


def _first_words(test: JsonObject) -> str:
    line = str(test["turns"][0]["user"])
    return str(test["guidelines"]) if line == AUTO else line
