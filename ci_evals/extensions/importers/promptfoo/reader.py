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

from ci_evals.domain.checks.evaluation import STRICT_KINDS
from ci_evals.domain.suite import AUTO, MOST_LOOPS
from ci_evals.extension_support.drafting.draft import ANSWERS, SAYS_ITS_LINES, fixed, short_name
from ci_evals.extensions.importers.imported import ImportedSuite, turns_at_most
from ci_evals.extensions.importers.importer import Importer
from ci_evals.extensions.importers.other_files import OtherFiles
from ci_evals.extensions.importers.promptfoo.assertions import ReplySelector, map_assertion
from ci_evals.extensions.importers.promptfoo.cases import PromptfooCase, cases
from ci_evals.extensions.importers.promptfoo.configuration import Configuration, read_configuration
from ci_evals.extensions.importers.promptfoo.lines import (
    OverlongError,
    UserLines,
    filled,
    is_whole,
    prompt_texts,
    remembers,
    user_lines,
    user_lines_of_case,
    variables_in,
)
from ci_evals.extensions.importers.promptfoo.places import Place
from ci_evals.extensions.importers.promptfoo.sources import FILE, Sources
from ci_evals.extensions.importers.promptfoo.values import UnmappedError, templates_in
from ci_evals.extensions.importers.records import kind_of
from ci_evals.support.json_text import JsonObject

SIMULATED = "promptfoo:simulated-user"
_DEFAULT_MAX_TURNS = 10
"""The default of promptfoo's simulated user."""

_OF_TEST = {"description", "vars", "assert", "provider", "metadata", "threshold", "options"}
_AS_LINES = "if your agent can be given a history, add 'assistant' lines to the turns"
_FOR_THE_AGENT = re.compile(r"(?i)(system|developer|assistant)([ _-]?(message|prompt|instructions?|role))?$")
"""Common names of variables for the agent's prompt."""
ROW_OF_DATA = "item"
"""The variable of OpenAI's evals that holds all of a row, what graders expect included."""
_REPLY: JsonObject = {"sample": {"output_text": "the reply"}}
"""The reply as OpenAI's graders name it."""
_OF_SIMULATED = {"instructions", "maxTurns", "initialMessages", "stateful"}


def read(text: str, file: str, files: OtherFiles | None = None) -> ImportedSuite:
    """One test for each conversation of a configuration, or of a list of tests."""
    imported = ImportedSuite(f"Imported from {PurePath(file).name}")
    sources = Sources(files, imported)
    place, configuration = read_configuration(text, file, sources, imported)
    config = configuration.fields
    reader = _ConfigReader(place, configuration, imported)
    groups = _conversations(
        cases(configuration, sources, imported), together=remembers(config.get("prompts"))
    )
    for group in groups:
        with imported.leaving_out():
            try:
                reader.add(group)
            except OverlongError as error:
                raise group[0].place.fault(str(error)) from error
    reader.finish()
    return imported


def _needs_trace(evaluation: JsonObject) -> bool:
    check = STRICT_KINDS.get(str(evaluation.get("strict")))
    return check is not None and check.evidence() is not None


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

    def __init__(self, place: Place, configuration: Configuration, imported: ImportedSuite) -> None:
        self.place = place
        config = configuration.fields
        self.config = config
        self.imported = imported
        self.unmapped: list[str] = []
        self.says_prompt = False
        _, self._defaults = configuration.default
        self.of_prompts = variables_in(prompt_texts(config.get("prompts")))

    def finish(self) -> None:
        prompts = self.config.get("prompts")
        unread = [item for item in (prompts if isinstance(prompts, list) else []) if not prompt_texts(item)]
        if unread:
            found = ", ".join(map(kind_of, unread))
            self.imported.note(self.place.at("prompts").problem(f"{found} is no prompt, and is left out"))
        lost = [text for text in prompt_texts(prompts) if not is_whole(text)]
        if prompts and (len(lost) > 1 or (lost and not self.says_prompt) or not prompt_texts(prompts)):
            shown = f" ({short_name(lost[0])!r})" if lost else ""
            self._left_of_suite("prompts", f"the agent has its own instructions{shown}")
        for key in ("providers", "targets"):
            if self.config.get(key):
                self._left_of_suite(key, "name the agent in the suite, or by options")
        options = self._options()
        for key in options:
            if key != "repeat":
                self._left_of_suite(f"evaluateOptions.{key}", "it has no counterpart")
        repeat = options.get("repeat")
        if repeat not in (None, 1) and self._loops() is None:
            self._left_of_suite("evaluateOptions.repeat", f"it is not a number from 1 to {MOST_LOOPS}")

    def _options(self) -> JsonObject:
        options = self.config.get("evaluateOptions")
        return options if isinstance(options, dict) else {}

    def _loops(self) -> int | None:
        repeat = self._options().get("repeat")
        return repeat if type(repeat) is int and 1 < repeat <= MOST_LOOPS else None

    def _left_of_suite(self, key: str, reason: str) -> None:
        problem = self.place.at(key.partition(".")[0]).problem(f"{key} is left out: {reason}")
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
                        case.place, "its variable 'item' is a row of data, and the agent is not given it"
                    )
                elif key not in of_user and key in of_graders:
                    self._note(
                        case.place, f"its variable {key!r} is for assertions, and the agent is not given it"
                    )
                elif key not in of_user and (key in self.of_prompts or _FOR_THE_AGENT.match(key)):
                    self._note(case.place, f"its variable {key!r} is for the agent's prompt, and left out")
                else:
                    info[key] = item
        return info

    def add(self, group: list[PromptfooCase]) -> None:
        """Add the test of one conversation."""
        self.unmapped = []
        first = group[0]
        for case in group:
            if "assert" in case.part("vars"):
                self._note(case.place, "has 'assert' among its variables: indent it less if it is its checks")
            for name in case.elsewhere:
                self._note(case.place, f"its variable {name!r} is another file, which is not read")
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
                self._note(first.place, f"its metadata ({', '.join(others)}) is kept without any effect")
        if self.unmapped:
            test["x-unmapped"] = self.unmapped
        self.imported.add(first.description or _first_words(test), test, first.place.problem(""))

    def _of_steps(self, group: list[PromptfooCase], *, many: bool) -> list[JsonObject]:
        """Return the evaluations of a conversation; of several steps each checks its own reply."""
        simulated, steps = group[0].provider == SIMULATED, len(group) > 1
        evaluations: list[JsonObject] = []
        for number, case in enumerate(group, start=1):
            self._other_fields(case)
            if number > 1:
                own = {"description", "threshold"} & set(case.fields) - set(self._defaults)
                if own:
                    self._note(case.place, f"a later step's {', '.join(sorted(own))} is left out")
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
        if not isinstance(instructions, str) or not instructions.strip() or instructions.startswith(FILE):
            self._leave_out(case.place, "its simulated user has no instructions in this file")
            return None
        most = config.get("maxTurns", _DEFAULT_MAX_TURNS)
        if type(most) is not int or most < 1:
            raise case.place.fault(f"maxTurns: {most!r} is not a number of turns")
        given = case.variables.get("initialMessages", config.get("initialMessages")) or []
        opening = user_lines(given, case.variables) if isinstance(given, list) else UserLines()
        if given and not opening.lines:
            self._note(case.place, "initialMessages are not in this file")
        if opening.replies:
            self._note(case.place, f"what the assistant said in initialMessages is left out; {_AS_LINES}")
        self._unknown(case.place, config, _OF_SIMULATED)
        turns = [fixed(line) for line in opening.lines]
        guidelines = filled(instructions, case.variables)
        self._note_templates(case.place, "what the simulated user is told", guidelines)
        test: JsonObject = {
            "guidelines": guidelines,
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
            if fault := lines.fault(case.variables):
                self._leave_out(case.place, fault)
                return None
            if lines.replies:
                self._note(case.place, f"what the assistant said before is left out; {_AS_LINES}")
            user += lines.lines
            used |= lines.used
            self.says_prompt = self.says_prompt or lines.says_prompt
            system = system or lines.system
        test: JsonObject = {"guidelines": SAYS_ITS_LINES, "turns": [fixed(line) for line in user]}
        test |= {"systemPrompt": system} if system else {}
        self._note_templates(group[0].place, "the system prompt", system)
        return test | {"maxTurns": turns_at_most(len(user))}, used

    def _evaluations(self, case: PromptfooCase, selector: ReplySelector) -> Iterator[JsonObject]:
        for place, assertion in case.asserts:
            if not isinstance(assertion, dict):
                self._note(place, "is no object")
                continue
            kind = repr(assertion.get("type"))
            try:
                result = map_assertion(filled(assertion, _REPLY | case.variables), selector)
            except UnmappedError as error:
                self._note(place, f"{kind} {error}")
                continue
            if any(map(_needs_trace, result.evaluations)):
                self._note(
                    place, f"{kind} needs a trace: it is undecided for an agent that returns only text"
                )
            if result.left:
                self._note(place, f"{kind}: no counterpart for its {', '.join(result.left)}")
            yield from result.evaluations

    def _other_fields(self, case: PromptfooCase) -> None:
        self._unknown(case.place, case.fields, _OF_TEST)
        if isinstance(given := case.fields.get("provider"), dict):
            known = {"id", "config"} if case.provider == SIMULATED else {"id"}
            self._unknown(case.place, given, known, "provider.")
        if case.provider and case.provider != SIMULATED:
            self._note(case.place, f"its own provider {case.provider!r}")
        self._unknown(
            case.place, case.part("options"), {"disableVarExpansion", "disableDefaultAsserts"}, "options."
        )

    def _limits(self, case: PromptfooCase) -> JsonObject:
        limits: JsonObject = {}
        threshold = case.fields.get("threshold")
        if threshold is not None:
            if type(threshold) not in {int, float} or not 0 <= threshold <= 1:
                raise case.place.fault(f"threshold: {threshold!r} is not between 0 and 1")
            limits["minScore"] = round(100 * threshold, 6)
        limits |= {"loops": loops} if (loops := self._loops()) else {}
        return limits

    def _unknown(self, place: Place, given: JsonObject, known: set[str], prefix: str = "") -> None:
        if left := sorted(f"{prefix}{key}" for key in set(given) - known):
            self._note(place, f"no counterpart for its {', '.join(left)}")

    def _note(self, place: Place, message: str) -> None:
        problem = place.problem(message)
        self.unmapped.append(f"{problem.path}: {message}" if problem.path else message)
        self.imported.note(problem)

    def _leave_out(self, place: Place, reason: str) -> None:
        note = str(place.problem(f"left out: {reason}"))
        self.imported.notes.append(note)
        self.imported.left_out.append(note)

    def _note_templates(self, place: Place, name: str, text: str) -> None:
        if "{{" in text or "{%" in text:
            self._note(place, f"{name} has a template that cannot be filled: {templates_in(text)}")


def _tags(case: PromptfooCase) -> list[str]:
    given = case.part("metadata").get("tags")
    tags = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    return [tag.strip() for tag in tags if isinstance(tag, str) and tag.strip()]


def _first_words(test: JsonObject) -> str:
    line = str(test["turns"][0]["user"])
    return str(test["guidelines"]) if line == AUTO else line


IMPORTER = Importer("promptfoo", "the tests of a configuration (promptfooconfig.yaml)", read)
