"""The agent that a suite is played with: the one it names, unless the user names another."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from pydantic import SecretStr, ValidationError
from pydantic.alias_generators import to_snake

from ci_evals.agent_registry import AGENT_KINDS, AgentKind, KeyNeed
from ci_evals.domain.agents import DEFAULT_ADAPTER, lacks_secret
from ci_evals.domain.checks.strict.state import StateCheck
from ci_evals.domain.errors import SuiteError, UsageError
from ci_evals.domain.suite import Suite
from ci_evals.domain.world import AGENT_STATE
from ci_evals.planning.adapter_options import OptionsFile, complaint
from ci_evals.planning.documents.document import Document, Path
from ci_evals.planning.parse import BrokenSuiteError, LoadedSuite, in_order
from ci_evals.support import placeholders
from ci_evals.support.documentation import see


@dataclass(frozen=True)
class AgentChoice:
    """The user's options for the agent; None leaves it to the suite. `start` runs in the current folder."""

    adapter: str | None = None
    options: OptionsFile | None = None
    plugins: frozenset[str] = frozenset()
    """Adapters that plug-ins add to the built-in ones."""
    agent_id: str | None = None
    agent_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    start: str | None = None
    wait_for: str | None = None

    @property
    def replaces(self) -> frozenset[str]:
        """The keys of a suite that this replaces."""
        options = {
            "agentId": self.agent_id,
            "apiKey": self.agent_key,
            "baseUrl": self.base_url,
            "start": self.start,
            "waitFor": self.wait_for,
        }
        return frozenset(key for key, value in options.items() if value)

    def start_folder(self, of_suite: str | None) -> str | None:
        """Return the folder in which the chosen `start` runs; None for the current one."""
        return None if self.start else of_suite


def choose(
    loaded: LoadedSuite, choice: AgentChoice, *, without_key: bool = False, unasked: bool = False
) -> LoadedSuite:
    """Return the suite with the agent that it is played with.

    An id or an address of an agent takes a suite off an embedded agent; a key alone does not, as it may
    be set for all suites of a job. With `without_key` a suite without a key may pass: see `has_key`.
    `unasked` is for an agent that nobody will reach: it may lack everything.

    Raises:
        SuiteError: something that the adapter needs is missing, or its options do not fit it.
        UsageError: there is no such adapter, or an embedded agent is requested at another address.
    """
    suite = chosen_agent(loaded.suite, loaded.document, choice, without_key=without_key, unasked=unasked)
    secrets = choice.options.secrets if choice.options else frozenset()
    return replace(
        loaded,
        suite=suite,
        secrets=loaded.secrets | secrets,
        start_folder=choice.start_folder(loaded.start_folder),
    )


def with_missing(
    broken: BrokenSuiteError, choice: AgentChoice, *, without_key: bool = False, unasked: bool = False
) -> SuiteError:
    """Return the problems of a suite that cannot be read, with what it lacks to reach its agent.

    Raises:
        UsageError: as `choose`.
    """
    if broken.agent is None:
        return broken
    try:
        chosen_agent(broken.agent, broken.document, choice, without_key=without_key, unasked=unasked)
    except SuiteError as lacking:
        known = {problem.path for problem in broken.problems}
        more = [one for one in lacking.problems if one.path not in known and one.path in _OF_THE_AGENT]
        return SuiteError(in_order([*broken.problems, *more]))
    return broken


_OF_THE_AGENT = frozenset({"agentId", "apiKey", "baseUrl", "model", "start", "waitFor"})
"""Keys of which it is known whether they are missing, whatever is wrong with the tests."""


def chosen_agent(
    suite: Suite, document: Document, choice: AgentChoice, *, without_key: bool = False, unasked: bool = False
) -> Suite:
    """The suite of a document with the agent that it is played with; as `choose`."""
    if choice.adapter and (fault := complaint(choice.adapter, choice.plugins)):
        raise UsageError(f"`adapter=`: {choice.adapter!r} {fault}")
    elsewhere = bool(choice.agent_id or choice.base_url)
    adapter = choice.adapter or suite.adapter
    if elsewhere and not choice.adapter and _is_embedded(suite):
        adapter = DEFAULT_ADAPTER
    if choice.base_url and adapter in AGENT_KINDS and AGENT_KINDS[adapter].embedded:
        raise UsageError(
            f"`adapter={adapter}` is the embedded agent, which has no `base_url=`; "
            f"use `adapter={DEFAULT_ADAPTER}`"
        )
    chosen = _validated(_changed(suite, choice, adapter))
    problems = [document.problem(path, message) for path, message in _missing(chosen)]
    if not choice.base_url and adapter in AGENT_KINDS and not _is_address(chosen.base_url or "http://"):
        problems.append(document.problem(("baseUrl",), "must begin with http:// or https://"))
    if problems and not unasked and not (without_key and not has_key(chosen)):
        raise SuiteError(problems)
    return chosen


def _changed(suite: Suite, choice: AgentChoice, adapter: str) -> Suite:
    """Return the suite with the values of options, which are not validated yet."""
    changed = suite.copy_with(adapter=adapter)
    if choice.agent_id:
        changed = changed.copy_with(agent_id=choice.agent_id)
    if choice.agent_key:
        changed = changed.copy_with(api_key=SecretStr(choice.agent_key))
    if choice.base_url:
        changed = changed.copy_with(base_url=choice.base_url)
    if choice.start:
        changed = changed.copy_with(start=choice.start)
    if choice.wait_for:
        changed = changed.copy_with(wait_for=choice.wait_for)
    if choice.options:
        changed = changed.copy_with(adapter_options=choice.options.checked(adapter))
    elif adapter != suite.adapter:
        changed = changed.copy_with(adapter_options=None)  # they were meant for the other one
    return changed


def _validated(suite: Suite) -> Suite:
    """Return the suite, whose values from options are validated.

    Raises:
        UsageError: an option is invalid for any suite.
    """
    try:
        values = suite.model_dump(exclude_unset=True, exclude={"tests"}) | {"tests": suite.tests}
        return Suite.model_validate(values)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        setting = to_snake(str(fault["loc"][0]))
        why = fault["ctx"]["error"] if fault["type"] == "value_error" else "must not be empty"
        raise UsageError(f"`{setting}=`: {fault['input']!r} {why}") from None


def _is_address(url: str) -> bool:
    """Return whether an address begins like one; the value may be secret, so that no message shows it."""
    return url.strip().lower().startswith(("http://", "https://"))


def has_key(suite: Suite) -> bool:
    """Return whether the suite has the key that its agent needs, if any."""
    kind = _kind(suite)
    if suite.api_key is not None:  # given, but blank: a secret that is not there
        return _is_embedded(suite) or bool(suite.api_key.get_secret_value().strip())
    match kind.key if kind else KeyNeed.NEVER:
        case KeyNeed.ALWAYS:
            return False
        case KeyNeed.DEFAULT_ADDRESS if suite.base_url is None:
            return False
        case _:
            return "key" not in _names(suite)


def has_filled_headers(suite: Suite) -> bool:
    """Return whether all headers that need a secret have one; in a fork's pull request they may be blank."""
    headers = (suite.adapter_options or {}).get("headers")
    pairs = headers.items() if isinstance(headers, dict) else ()
    return not any(isinstance(value, str) and lacks_secret(name, value) for name, value in pairs)


def awaited_address(suite: Suite) -> str | None:
    """Return what answers once the suite's agent is up; None if nothing says so."""
    kind = _kind(suite)
    return suite.wait_for or suite.base_url or (kind.local_address if kind else None)


def _kind(suite: Suite) -> AgentKind | None:
    """Return the kind of a suite's agent; None if it is code or a plug-in."""
    return AGENT_KINDS.get(suite.adapter)


def _is_embedded(suite: Suite) -> bool:
    kind = _kind(suite)
    return kind is not None and kind.embedded


def _missing(suite: Suite) -> list[tuple[Path, str]]:
    """Return the keys without which the suite's agent cannot be reached, each with a message."""
    missing = [
        *_missing_fields(suite),
        *_named_but_missing(suite),
        *_missing_state(suite),
        *_missing_history(suite),
    ]
    kind = _kind(suite)
    if kind and kind.embedded and (suite.start or suite.wait_for):
        hint = "name your own with `base_url=` or `adapter=`"
        missing.append((("start",), f"{kind.about} needs no start and no wait; {hint}"))
    elif suite.start and not awaited_address(suite):
        hint = "set the agent's address with baseUrl (`base_url=`) or waitFor (`wait_for=`)"
        missing.append((("waitFor",), f"is missing, and so is baseUrl; {hint}"))
    if not has_key(suite):
        instead = "set CI_EVALS_AGENT_KEY (in a workflow the input agent-key)"
        if suite.api_key is None:
            missing.append((("apiKey",), f"is missing; {instead}, or name a variable there: ${{AGENT_KEY}}"))
        else:
            kind = _kind(suite)
            always = kind is not None and kind.key is KeyNeed.ALWAYS
            hint = "" if always else "; if the agent needs no key, delete the line"
            missing.append((("apiKey",), f"is empty; set the variable that it names, or {instead}{hint}"))
    return missing


def _missing_fields(suite: Suite) -> Iterator[tuple[Path, str]]:
    """Yield what the adapter needs beside a key. An agent's id names its model as well."""
    kind = _kind(suite)
    for key, message in kind.needs.items() if kind else ():
        if getattr(suite, to_snake(key)) is None and not (key == "model" and suite.agent_id):
            yield (key,), message


def _missing_state(suite: Suite) -> Iterator[tuple[Path, str]]:
    """Yield a problem if tests check the agent's own state, and it has none."""
    tests = (test for test in suite.tests if AGENT_STATE not in {*suite.probes, *test.probes})
    checks = (one for test in tests for one in test.evaluations if isinstance(one, StateCheck))
    kind = _kind(suite)
    if kind and not kind.reports_state and any(check.probe == AGENT_STATE for check in checks):
        hint = f"look it up with your own probe ({see('worlds')})"
        yield ("tests",), f"check {AGENT_STATE}, but {suite.adapter!r} agents report no state; {hint}"


def _missing_history(suite: Suite) -> Iterator[tuple[Path, str]]:
    """Yield a problem for each test that begins with messages which the agent cannot be given."""
    kind = _kind(suite)
    if kind and not kind.takes_history:
        why = f"{suite.adapter!r} agents cannot be given a history; remove its 'assistant' lines"
    elif kind and kind.history_names and kind.history_names.isdisjoint(_names(suite)):
        why = kind.no_history
    else:
        return
    for number, test in enumerate(suite.tests):
        if test.history:
            yield ("tests", number, "turns"), f"start with an assistant message, but {why}"


def _named_but_missing(suite: Suite) -> Iterator[tuple[Path, str]]:
    """Yield names in the options, as `{{name}}`, that have no value."""
    names = _names(suite)
    if "agentId" in names and suite.agent_id is None:
        yield (
            ("agentId",),
            "is missing, and adapterOptions hold {{agentId}}; or name the agent with `agent_id=`",
        )
    if "model" in names and suite.model is None:
        yield ("model",), "is missing, and adapterOptions hold {{model}}"
    for name in sorted(names):
        _, dot, path = name.partition(".")
        if dot and all(placeholders.member(dict(test.user_info), path) is None for test in suite.tests):
            yield ("adapterOptions",), f"hold {{{{{name}}}}}, which no test has in its userInfo"


def _names(suite: Suite) -> frozenset[str]:
    kind, options = _kind(suite), suite.adapter_options
    if kind is None or options is None:
        return frozenset()
    if kind.filled_options is not None:
        options = {key: value for key, value in options.items() if key in kind.filled_options}
    return frozenset(placeholders.names(options))
