"""Writes what was said to a suite, as a drafted test, with the agent that it was said to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_evals.adapters import files
from ci_evals.adapters.suite_paths import ENDINGS
from ci_evals.adapters.suites import read_text
from ci_evals.domain.agents import DEFAULT_ADAPTER
from ci_evals.domain.errors import Problem, UsageError
from ci_evals.domain.transcript import Turn
from ci_evals.extension_support.drafting.conversation import RecordedConversation
from ci_evals.extension_support.drafting.draft import draft, short_name
from ci_evals.extension_support.drafting.suite_file import new_suite, with_test
from ci_evals.extension_support.start_command import moved
from ci_evals.extension_support.suite_writing import literal
from ci_evals.extensions.chat.settings import ChatSettings
from ci_evals.planning.documents.document import Path as KeyPath
from ci_evals.planning.documents.reader import read
from ci_evals.planning.parse import LoadedSuite
from ci_evals.support.json_text import JsonObject
from ci_evals.support.redaction import Redactor

TAGS = ("chat",)
_OF_THE_AGENT = (
    "adapter", "adapterOptions", "agentId", "apiKey", "baseUrl", "start", "waitFor", "startTimeout", "trace",
    "model",
)  # fmt: skip
_OF_THE_WORLD = ("setup", "probes", "teardown", "lock")
_VARIABLE = "${"


@dataclass(frozen=True)
class ChatSaver:
    """Saves conversations of a chat."""

    loaded: LoadedSuite
    """The suite with the one test that was talked about."""
    settings: ChatSettings
    redactor: Redactor

    def save(self, turns: Sequence[Turn], path: Path, name: str) -> str:
        """Write the turns as a test, to a new suite or at the end of one that is there; return its name.

        Raises:
            UsageError: nothing was said, or the file cannot hold it. Nothing is written then.
        """
        if not turns:
            raise UsageError("Nothing was said yet.")
        if path.suffix.lower() not in ENDINGS:
            raise UsageError(f"{path}: is not a suite's name. End it in {', '.join(ENDINGS)}.")
        if files.is_folder(path):
            raise UsageError(f"{path}: is a folder. Name a file.")
        test, notes = self._drafted(turns, name)
        file = path.as_posix()
        if not files.is_there(path):
            text = new_suite(self._head(path), test, file, notes)
            files.write_new(path.parent, {path.name: text})
        else:
            before = read_text(path, file)
            self._check_adapter(before, file)
            files.write(path, with_test(before, file, test, notes))
        return str(test["name"])

    def _drafted(self, turns: Sequence[Turn], name: str) -> tuple[JsonObject, Mapping[KeyPath, str]]:
        test = self.loaded.suite.tests[0]
        conversation = RecordedConversation(
            name="a chat",
            place=Problem(self.loaded.file, 1, 1, "", ""),
            turns=tuple(turns),
            title=name,
            user_info=test.user_info,
            system_prompt=test.system_prompt or "",
            history=tuple({line["role"]: line["content"]} for line in test.history),
        )
        drafted = draft(conversation, tags=TAGS)
        hide = self.redactor.json
        fields = {"name": short_name(hide(drafted.title))} | hide(drafted.fields)
        notes = {path: self.redactor.text(text) for path, text in drafted.notes.items()}
        return literal(fields) | self._world(), notes

    def _world(self) -> JsonObject:
        """Return the steps around the test, as its suite has them."""
        name = self.loaded.suite.tests[0].name
        value = self.loaded.document.value
        written = value.get("tests") if isinstance(value, dict) else None
        for test in written if isinstance(written, list) else ():
            if isinstance(test, dict) and test.get("name") == name:
                return {key: test[key] for key in _OF_THE_WORLD if key in test}
        return {}

    def _head(self, path: Path) -> JsonObject:
        """Return a suite without tests that reaches the same agent, without its key."""
        value = self.loaded.document.value
        suite = {key: value[key] for key in (*_OF_THE_AGENT, *_OF_THE_WORLD) if key in value}
        if _VARIABLE not in str(suite.get("apiKey", _VARIABLE)):
            del suite["apiKey"]
        given = self._given(path.parent)
        if "adapter" in given and given["adapter"] != suite.get("adapter", DEFAULT_ADAPTER):
            suite.pop("adapterOptions", None)
        suite["adapter"] = self.loaded.suite.adapter
        if "start" in suite:
            suite["start"] = moved(suite["start"], Path(self.loaded.start_folder or "."), path.parent)
        head: JsonObject = {"name": path.stem} | self.redactor.json(suite | given)
        return head

    def _given(self, folder: Path) -> JsonObject:
        """Return what options say of the agent, in the words of a suite in `folder`."""
        settings = self.settings
        given: JsonObject = {
            "adapter": settings.adapter,
            "agentId": settings.agent_id,
            "baseUrl": settings.base_url,
            "start": literal(moved(settings.start, Path(), folder)) if settings.start else None,
            "waitFor": settings.wait_for,
            "trace": "otlp" if settings.otlp else None,
        }
        if settings.adapter_options:
            file = str(settings.adapter_options)
            given["adapterOptions"] = read(read_text(settings.adapter_options, file), file).value
        return {key: value for key, value in given.items() if value is not None}

    def _check_adapter(self, text: str, file: str) -> None:
        """Make sure that a suite that is there is of an agent of the same kind."""
        value = read(text, file).value
        adapter = value.get("adapter", DEFAULT_ADAPTER) if isinstance(value, dict) else None
        ours = self.loaded.suite.adapter
        if isinstance(adapter, str) and adapter != ours:
            raise UsageError(
                f"{file}: its agent has the adapter {adapter!r}, this one {ours!r}. Name another."
            )
