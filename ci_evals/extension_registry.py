"""The registry of extensions: what is installed beside the core, and what the core asks of it.

An extension is a package that a line in the entry point group `ci_evals.extensions` names. Ours are folders
of `ci_evals/extensions`; those of other distributions are found in the same way. Nothing but its folder and
its line names an extension, and each of its parts is imported when it is needed. A part is a module of one of
these names:

- `agent_kinds`: `KINDS`, the kinds of agents that it adds, each an `AgentKind` by the name of its adapter
  (`agent_registry`);
- `commands`: `COMMANDS`, functions for the command line that `takes` has made. One of a known name takes that
  one's place;
- `result`: `KINDS`, the types of what it keeps in the results of a run;
- `report`: `report(results)`, the `StudyReport` of what results hold of it, or None, and its `RANK` among the
  reports of all extensions;
- `run_study`: `study(results)`, what it keeps in the results of each run as soon as it is scored: a `Study`
  that follows from these results alone, or None;
- `providers`: `PROVIDERS`, rows of providers of models (`domain/providers`);
- `python_objects`: `adapter_of(target, name, settings)`, an object with the methods of an adapter if `target`
  is an agent of a type that it knows, else None; and `FORM`, a few words on these types for messages;
- `readers`: `READERS`, formats of other tools' results that `gate` reads
  (`extension_support/result_files`);
- `report_files`: `FORMAT`, a name for `report` to take, its `SUMMARY` for the help, and `files(results)`, the
  texts of that format by their paths;
- `findings`: `FILE`, the name of a file next to the results of a run, and `read(text, results)`, the
  `Study` in it that `report` shows, or None;
- `run_hook`: `OPTIONS` of `run`, by which it plays the trials in other processes: `is_asked(settings)`, and
  if so `check(settings, plan)` and `elsewhere(settings)`, a context with a `PlayElsewhere` (`job/job`);
- `run_loop`: `OPTIONS` of `run`, by which it runs again and again: `is_asked(settings)`, and if so
  `repeat(settings, context)`, which takes the place of the run and returns its exit code;
- `suite_keys`: `SUITE_KEYS` and `TEST_KEYS`, models of the keys that it adds to suites and tests, and
  `expand(written)`, which says what tests are played (`planning/suite_keys`);
- `suite_base`: `SUITE_KEYS`, a model of the keys `extends` and `with`, `suites()`, what each suite to extend
  is about, by its name, and `extended(document)`, the document of a suite with the tests that its `extends`
  brings; unchanged if that names nothing of the extension;
- `after_run`: `OPTIONS` of `run`, by which it sends finished results somewhere: `is_asked(settings)`, and if
  so `check(settings, environ)` before the run, and the coroutine `send(results, settings, environ, redactor)`
  once reports are written. If that fails there is a warning, and no other verdict;
- `later_runs`: `read(path)`, `rejudged(results, judged)` and `merged(results, shards)`, which give later runs
  what is known of an earlier one, as `read_calibration`, `after_rejudging` and `after_merging` below;
- `platform`: another platform than GitHub: `NAME` and `TITLE`, `HELP` of the option `platform`,
  `is_job(environ)`, `has_base(environ)`, `comment(results, settings, context)` and
  `find_baseline(output_dir, branch, earlier, context)`;
- `span_receiver`: `open_receiver(host, port)`, a `SpanReceiver` (`ports`) for runs with `trace: otlp`;
- `world_steps`: `WorldSteps(environ, redactor, base_url)`, which does the steps of tests' worlds (`ports`).

An extension that cannot be loaded is named with the reason, once, and left out from then on.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from ci_evals.domain.errors import UsageError
from ci_evals.domain.options import Option
from ci_evals.domain.providers import ANTHROPIC, OFFLINE, OPENAI, SECRETS, Provider
from ci_evals.support.entry_points import EntryPoint, entry_points, installation_folders

if TYPE_CHECKING:  # the help imports this module, and must not wait for pydantic
    from ci_evals.domain.results.run import Results
    from ci_evals.domain.results.studies import Study
    from ci_evals.support.redaction import Redactor

GROUP = "ci_evals.extensions"
_OURS = "ci-evals"
"""The distribution of this package."""

NEEDED = {
    "agent_kinds": ("KINDS",),
    "commands": ("COMMANDS",),
    "result": ("KINDS",),
    "report": ("report", "RANK"),
    "run_study": ("study",),
    "providers": ("PROVIDERS",),
    "python_objects": ("adapter_of", "FORM"),
    "readers": ("READERS",),
    "report_files": ("FORMAT", "SUMMARY", "files"),
    "findings": ("FILE", "read"),
    "run_hook": ("OPTIONS", "is_asked", "check", "elsewhere"),
    "run_loop": ("OPTIONS", "is_asked", "repeat"),
    "suite_keys": ("SUITE_KEYS", "TEST_KEYS", "expand"),
    "suite_base": ("SUITE_KEYS", "suites", "extended"),
    "after_run": ("OPTIONS", "is_asked", "check", "send"),
    "later_runs": ("read", "rejudged", "merged"),
    "platform": ("NAME", "TITLE", "HELP", "is_job", "has_base", "comment", "find_baseline"),
    "span_receiver": ("open_receiver",),
    "world_steps": ("WorldSteps",),
}
"""What each part must have."""

Addition: TypeAlias = Callable[["Results", "Redactor"], "Results"]
"""Adds what is known from an earlier study to a run, without secrets."""


class Extensions:
    """Installed extensions. Those that fail to load are reported, and left out."""

    def __init__(self, lines: Iterable[EntryPoint]) -> None:
        """Take the lines of the group. The first of a name counts, and ours come first."""
        self.warn: Callable[[str], None] = lambda text: warnings.warn(text, RuntimeWarning, stacklevel=2)
        """Is told of each extension that cannot be loaded."""
        self.others_failed = False
        """True once an extension of another distribution could not be loaded."""
        self._lines: dict[str, EntryPoint] = {}
        self._failures: dict[str, str] = {}
        self._modules: dict[tuple[str, str], ModuleType | None] = {}
        self._doubles = []
        for line in sorted(lines, key=lambda line: line.distribution != _OURS):
            if self._lines.setdefault(line.name, line) is not line:
                self._doubles.append(line)

    def names(self) -> tuple[str, ...]:
        """Return the names of the extensions that have not failed so far."""
        return tuple(name for name in self._lines if name not in self._failures)

    def parts(self, part: str) -> Iterator[Any]:
        """Yield the module of this name of each extension that has one."""
        while self._doubles:
            line = self._doubles.pop()
            self._report(line, f"{self._lines[line.name].distribution} has an extension of this name")
        for name, line in self._lines.items():
            if name not in self._failures and (module := self._part(line, part)):
                yield module

    def _part(self, line: EntryPoint, part: str) -> ModuleType | None:
        key = line.name, part
        if key not in self._modules:
            try:
                self._modules[key] = _import(f"{line.module}.{part}", part)
            except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever foreign code raises
                self._failures[line.name] = reason = f"{type(error).__name__}: {error}"
                self._report(line, reason)
                return None
        return self._modules[key]

    def _report(self, line: EntryPoint, reason: str) -> None:
        if line.distribution != _OURS:
            self.others_failed = True
        self.warn(f"the extension {line.name!r} of {line.distribution} was not loaded: {reason}")


def _import(path: str, part: str) -> ModuleType | None:
    """Import the part of an extension, None if it has none."""
    if find_spec(path) is None:
        return None
    module = import_module(path)
    missing = [name for name in NEEDED[part] if not hasattr(module, name)]
    if missing:
        raise ImportError(f"{path} has no {' and no '.join(missing)}")
    if part == "commands" and not all(hasattr(command, "complete") for command in module.COMMANDS):
        raise ImportError(f"{path} has a command that was not made by `takes`")
    if part == "agent_kinds" and not all(hasattr(kind, "agent_class") for kind in module.KINDS.values()):
        raise ImportError(f"{path} has a kind that is no `AgentKind`")
    if "OPTIONS" in NEEDED[part] and not all(isinstance(option, Option) for option in module.OPTIONS):
        raise ImportError(f"{path} has an option that is no `Option`")
    return module


@cache
def installed() -> Extensions:
    """Return the extensions that are installed beside this package."""
    return Extensions(entry_points(GROUP, installation_folders()))


def commands() -> dict[str, Any]:
    """Return the commands of all extensions by their names. The last of a name counts."""
    return {
        _command_name(command): command
        for module in installed().parts("commands")
        for command in module.COMMANDS
    }


def _command_name(command: Callable[..., None]) -> str:
    return command.__name__.strip("_").replace("_", "-")


def register_commands(app: Any) -> None:
    """Add the commands of all extensions to the Typer app, each after the command that its facts name."""
    known = {_command_name(info.callback): info for info in app.registered_commands}
    core = tuple(known)
    for name, command in commands().items():
        app.command(name)(command)
        known[name] = app.registered_commands[-1]
    added = [name for name in known if name not in core]
    listed: list[str] = []

    def add(name: str) -> None:
        if name not in listed:
            listed.append(name)
            for other in added:
                if known[other].callback.facts.after == name:
                    add(other)

    for name in core + tuple(added):
        add(name)
    app.registered_commands[:] = [known[name] for name in listed]


def study_kinds() -> dict[str, type["Study"]]:
    """The types of what extensions keep in results, by their keys."""
    kinds: dict[str, type[Study]] = {}
    for module in installed().parts("result"):
        for kind in module.KINDS:
            kinds.setdefault(kind.KEY, kind)
    return kinds


def study_reports(results: "Results") -> Iterator[Any]:
    """Yield the `StudyReport` of each extension on these results, in the order of their ranks."""
    modules = installed().parts("report") if results.studies else ()
    for module in sorted(modules, key=lambda module: module.RANK):
        if report := module.report(results):
            yield report


def run_studies(results: "Results") -> Iterator["Study"]:
    """Yield what extensions keep in the results of a run that was just scored."""
    for module in installed().parts("run_study"):
        if study := module.study(results):
            yield study


def providers() -> dict[str, Provider]:
    """Return the providers of models by their names, in the order in which options list them."""
    rows = {row.name: row for row in (OPENAI, ANTHROPIC)}
    for module in installed().parts("providers"):
        for row in module.PROVIDERS:
            rows.setdefault(row.name, row)
    return {**rows, OFFLINE.name: OFFLINE}


def judging_providers() -> list[str]:
    """Return the names of the providers that have models, and so can judge."""
    return [name for name, row in providers().items() if row.models]


def provider_secrets() -> frozenset[str]:
    """Return the variables of the environment that hold keys and tokens of any provider."""
    return SECRETS.union(*(row.secrets for row in providers().values()))


def knows_all_providers() -> bool:
    """Return whether no extension of others failed: one that did may have providers with secrets."""
    providers()
    return not installed().others_failed


def adapter_of(target: Any, name: str, settings: Any) -> Any | None:
    """Return an object with the methods of an adapter for the object `target` if an extension knows its type.

    Raises:
        UsageError: it cannot be used as an agent, or not with these settings.
    """
    for module in installed().parts("python_objects"):
        if (adapter := module.adapter_of(target, name, settings)) is not None:
            return adapter
    return None


def object_forms() -> list[str]:
    """Return what else can be an agent in Python, in the words of the extensions that know it."""
    return [module.FORM for module in installed().parts("python_objects")]


def result_readers() -> Iterator[Any]:
    """Yield the readers of other tools' results, each extension's in its order."""
    for module in installed().parts("readers"):
        yield from module.READERS


def report_formats() -> Iterator[Any]:
    """Yield the module of each format of reports that extensions write."""
    yield from installed().parts("report_files")


def findings_files() -> Iterator[Any]:
    """Yield the module of each file next to results that an extension writes."""
    yield from installed().parts("findings")


def run_options() -> tuple["Option", ...]:
    """Return the options that extensions add to `run`."""
    options: dict[str, Option] = {}
    for module in (*run_hooks(), *run_loops(), *installed().parts("after_run")):
        for option in module.OPTIONS:
            options.setdefault(option.name, option)
    return tuple(options.values())


def run_hooks() -> Iterator[Any]:
    """Yield the module of each extension that can play the trials of a run elsewhere."""
    yield from installed().parts("run_hook")


def run_loops() -> Iterator[Any]:
    """Yield the module of each extension that can run again and again."""
    yield from installed().parts("run_loop")


def suite_keys() -> Iterator[Any]:
    """Yield the module of each extension that adds keys to suites."""
    yield from installed().parts("suite_keys")


def suite_bases() -> Iterator[Any]:
    """Yield the module of each extension that has suites to extend."""
    yield from installed().parts("suite_base")


def asked_after_run(settings: Any) -> list[Any]:
    """Return the module of each extension that the options of a run ask to do something with its results."""
    return [module for module in installed().parts("after_run") if module.is_asked(settings)]


def read_calibration(path: Path) -> Addition:
    """Return what the file of the option `calibration` says of a run.

    Raises:
        UsageError: it cannot be read, or is something else.
    """
    problem = UsageError(f"`calibration={path}`: no installed extension can read it")
    for number, module in enumerate(installed().parts("later_runs")):
        try:
            addition: Addition = module.read(path)
        except UsageError as error:
            if number == 0:
                problem = error
        else:
            return addition
    raise problem


def after_rejudging(results: "Results", judged: "Results") -> "Results":
    """Return `results` with what was known of `judged`, whose conversations were judged again."""
    for module in installed().parts("later_runs"):
        results = module.rejudged(results, judged)
    return results


def after_merging(results: "Results", shards: Sequence["Results"]) -> "Results":
    """Return `results` with what was known of all shards alike."""
    for module in installed().parts("later_runs"):
        results = module.merged(results, shards)
    return results


def platforms() -> Iterator[Any]:
    """Yield the module of each platform that extensions know beside GitHub."""
    yield from installed().parts("platform")


def platform_of(environ: Mapping[str, str]) -> Any | None:
    """Return the platform whose job a command runs in; None if it is GitHub, or none."""
    return next((module for module in platforms() if module.is_job(environ)), None)


def lacks_gitlab(environ: Mapping[str, str]) -> bool:
    """Return whether this is a job of GitLab, and no installed extension knows GitLab."""
    return bool(environ.get("GITLAB_CI")) and "gitlab" not in platform_words()


def platform_words() -> list[str]:
    """Return the values of the option `platform`."""
    return ["auto", "github", *(module.NAME for module in platforms())]


def span_receiver(host: str, port: int) -> Any:
    """Return the `SpanReceiver` of a run, which has taken the port.

    Raises:
        UsageError: it cannot be had, or no installed extension receives spans.
    """
    for module in installed().parts("span_receiver"):
        return module.open_receiver(host, port)
    raise UsageError("`otlp=` or `trace: otlp`: no installed extension can receive spans")


def world_steps(environ: Mapping[str, str], redactor: "Redactor", base_url: str) -> Any:
    """Return the `WorldSteps` of a suite, whose agent has this address.

    Raises:
        UsageError: no installed extension does them.
    """
    for module in installed().parts("world_steps"):
        return module.WorldSteps(environ, redactor, base_url)
    raise UsageError("no installed extension does the steps of a world: setup, probes and teardown")
