"""`run`: settings in, reports out, the gate's exit code."""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ci_evals.adapters import files
from ci_evals.cli import actions, progress
from ci_evals.cli.console import Console, colored, environment_keys
from ci_evals.cli.reading import load_suites
from ci_evals.cli.settings import Provider, RunSettings
from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Plan
from ci_evals.domain.progress import Listener
from ci_evals.domain.results import Git, Results
from ci_evals.library import Job, evaluate, keys_of
from ci_evals.planning.parse import LoadedSuite
from ci_evals.planning.selection import Selection, plan
from ci_evals.redaction import MIN_KEY_LENGTH, Redactor
from ci_evals.reports import console as report
from ci_evals.reports import layout
from ci_evals.runner import Options, Stop
from ci_evals.scoring.gate import Exit, Policy, check_names, read_thresholds
from ci_evals.wiring import Adapter, needs_llm


def run_suites(settings: RunSettings) -> None:
    """Runs the suites and exits as the gate decides.

    Raises:
        UsageError: before anything has run.
    """
    environ = os.environ
    thresholds = read_thresholds(settings.thresholds)
    loaded = load_suites(settings, environ)
    check_names(thresholds, [item.suite for item in loaded])
    planned = plan(loaded, Selection.of(settings.test, settings.tag), settings.loops)
    adapter = _adapter(settings, environ)
    if not adapter.offline and needs_llm(planned.suites) and not adapter.llm_key:
        raise UsageError(_no_key(settings.provider))
    redactor = _redactor(settings, adapter, loaded, environ)
    actions.mask(redactor, environ)
    console = Console(sys.stderr, redactor, colored(sys.stderr, environ))
    warnings = tuple(warning for item in loaded for warning in item.warnings) + _short_keys(adapter, loaded)
    for warning in warnings:
        console.say(f"warning: {warning}")
    files.check_writable(settings.output_dir)
    job = Job(
        plan=planned,
        policy=Policy(settings.min_score, thresholds, settings.max_errors, enforced=not settings.no_gate),
        options=Options(parallel=settings.parallel, retries=settings.retries),
        redactor=redactor,
        config=_config(settings),
        git=Git(
            commit=environ.get("GITHUB_SHA"),
            ref=environ.get("GITHUB_REF"),
            repository=environ.get("GITHUB_REPOSITORY"),
        ),
        ci="github-actions" if environ.get("GITHUB_ACTIONS") == "true" else None,
        warnings=warnings,
    )
    with _listening(settings, planned, console) as listen:
        results = asyncio.run(_run(job, adapter, listen))
    sys.exit(_publish(results, settings, console))


async def _run(job: Job, adapter: Adapter, listen: Listener) -> Results:
    stop = Stop()
    loop = asyncio.get_running_loop()
    # As process 1 of a container Python ignores SIGTERM unless there is a handler. A second signal ends the
    # program at once.
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # on Windows
            loop.add_signal_handler(number, _interrupt, loop, stop)
    return await evaluate(job, adapter, listen=listen, stop=stop)


def _interrupt(loop: asyncio.AbstractEventLoop, stop: Stop) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.remove_signal_handler(number)
    stop.interrupt()


@contextmanager
def _listening(settings: RunSettings, planned: Plan, console: Console) -> Iterator[Listener]:
    if settings.quiet:
        yield progress.silent
    elif console.stream.isatty():
        with progress.live(planned, console) as listen:
            yield listen
    else:
        yield progress.lines(planned, console)


def _publish(results: Results, settings: RunSettings, console: Console) -> int:
    """Writes every report and output, shows the result, and gives the exit code."""
    junit = settings.junit or settings.output_dir / layout.JUNIT
    code = results.gate.exit_code
    written = layout.files(results)
    try:
        files.write_all(settings.output_dir, written)
        if settings.junit:
            files.write(settings.junit, written[layout.JUNIT])
        actions.publish(results, settings.output_dir, junit, os.environ)
    except UsageError as error:
        # The run is paid for: it must not be lost with the disk.
        rescue = Path(tempfile.mkdtemp(prefix="ci-evals-"))
        console.say(f"error: {error}\nThe reports are being written to {rescue} instead.")
        files.write_all(rescue, written)
        code = max(code, Exit.INVALID)
    sys.stdout.write(
        report.render(results, color=colored(sys.stdout, os.environ), verbose=settings.verbose)
        + f"\nReports: {settings.output_dir / layout.SUMMARY}\n"
    )
    return code


def _adapter(settings: RunSettings, environ: Mapping[str, str]) -> Adapter:
    return Adapter(
        provider=settings.provider,
        llm_key=_llm_key(settings, environ),
        judge_model=settings.judge_model,
        user_model=settings.user_model,
        key_header=settings.agent_key_header,
        headers=_headers(settings.agent_headers),
        agent_id_in=settings.agent_id_in,
        task_origin_type=settings.task_origin_type,
        debug=settings.debug,
    )


def _llm_key(settings: RunSettings, environ: Mapping[str, str]) -> str | None:
    if settings.provider is Provider.OFFLINE:
        return None
    own = f"{settings.provider.upper()}_API_KEY"
    return settings.llm_key or environ.get("LLM_API_KEY") or environ.get(own) or None


def _no_key(provider: Provider) -> str:
    return (
        f"no key for the LLM ({provider}) that plays the user and judges: give --llm-key, or set LLM_API_KEY "
        f"or {provider.upper()}_API_KEY; or run without an LLM: --provider=offline"
    )


def _headers(text: str | None) -> dict[str, str]:
    headers = {}
    for line in (text or "").splitlines():
        name, colon, value = line.partition(":")
        if line.strip() and not (colon and name.strip() and value.strip()):
            raise UsageError("--agent-headers: a line is not of the form NAME: VALUE")
        if line.strip():
            headers[name.strip()] = value.strip()
    return headers


def _redactor(
    settings: RunSettings, adapter: Adapter, loaded: Sequence[LoadedSuite], environ: Mapping[str, str]
) -> Redactor:
    keys = [
        *environment_keys(environ),
        settings.llm_key or "",
        settings.agent_key or "",
        *keys_of(adapter, loaded),
    ]
    return Redactor(keys=keys, values={value for item in loaded for value in item.secrets})


def _short_keys(adapter: Adapter, loaded: Sequence[LoadedSuite]) -> tuple[str, ...]:
    short = [key for key in keys_of(adapter, loaded) if key and len(key) < MIN_KEY_LENGTH]
    if not short:
        return ()
    return (f"a key has fewer than {MIN_KEY_LENGTH} characters and is not redacted in the reports",)


def _config(settings: RunSettings) -> dict[str, str | int | float | bool | None]:
    """The options that tell how the run was made; no secret is among them."""
    return {
        "provider": settings.provider,
        "loops": settings.loops,
        "parallel": settings.parallel,
        "retries": settings.retries,
        "test": settings.test,
        "tag": settings.tag,
        "minScore": settings.min_score,
        "thresholds": settings.thresholds,
        "maxErrors": settings.max_errors,
        "gate": not settings.no_gate,
        "debug": settings.debug,
    }
