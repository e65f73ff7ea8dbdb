"""`run --watch`: a run in a process of its own, and the next one after a change or a key."""

import os
import pickle
import subprocess  # of ci-evals itself
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from ci_evals.adapters.suite_paths import fixed_folder
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.choices import OutputFormat
from ci_evals.cli.settings.run_command import LAST, RunSettings
from ci_evals.cli.settings.table import options_of
from ci_evals.domain import numbers
from ci_evals.domain.errors import Exit, UsageError
from ci_evals.domain.suite import is_bundled
from ci_evals.extensions.watch.keys import Keys, keys
from ci_evals.extensions.watch.watched_files import Snapshot, WatchedFiles

_BETWEEN_LOOKS = 0.3
_LOOK_SHARE = 10
"""Looking at the files takes at most this part of the time."""
_MOST_SETTLING = 5.0
_STOP_SECONDS = 7.0
"""Time that a run has to end. Its watcher has a little more, after Ctrl-C."""
_MOST_CUT_OFF = 5
"""Runs in a row that a change of one file may stop."""
_SHOWN = 3
"""Changed files that are named."""


class RunProcess(Protocol):
    """A run under way, as `subprocess.Popen` has it."""

    def poll(self) -> int | None:
        """Return its exit code, or None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code once it has ended."""

    def terminate(self) -> None:
        """Ask it to end."""

    def kill(self) -> None:
        """End it at once."""


StartRun = Callable[[Mapping[str, Any]], RunProcess]


def start_run(options: Mapping[str, Any]) -> RunProcess:
    """Start a run with these values of its settings, with the terminal's output and without its keys."""
    command = [sys.executable, "-P", "-m", "ci_evals.extensions.watch.one_run"]
    # In a group of its own, so that Ctrl-C does not reach it twice.
    group: dict[str, Any] = {} if sys.platform == "win32" else {"process_group": 0}
    run: subprocess.Popen[bytes] = subprocess.Popen(command, stdin=subprocess.PIPE, **group)  # noqa: S603  # ourselves
    if run.stdin:
        with suppress(OSError), run.stdin as stdin:  # it has ended at once, which is seen later
            stdin.write(pickle.dumps(options))
    return run


def watch(settings: RunSettings, context: RunContext, start: StartRun = start_run) -> int:
    """Run until `q` or Ctrl-C, and return the exit code of the last whole run.

    Raises:
        UsageError: this is CI, options contradict one another, or there is nothing to watch.
    """
    if context.in_ci:
        raise UsageError("`watch=`: CI runs once for each commit. Omit `watch=` there.")
    refused = {
        "`format=json`": settings.output_format is OutputFormat.JSON,
        "`resume=`": settings.resume is not None,
    }
    for option in (option for option, given in refused.items() if given):
        raise UsageError(f"`watch=`, {option}: with `watch=` there are many runs. Omit one of them.")
    with keys() as pressed:
        loop = _Loop(settings, context, pressed, start)
        try:
            return loop.go_on()
        except KeyboardInterrupt:
            return Exit.INTERRUPTED
        finally:
            loop.stop()


def watched_files(settings: Any, context: RunContext) -> WatchedFiles:
    """Return what the options name, by default the folders of the suites.

    Raises:
        UsageError: there is nothing to watch, or it does not exist.
    """
    names = [name for name in settings.suites if not is_bundled(name)]
    if settings.watch_path:
        roots = tuple(dict.fromkeys(map(Path, settings.watch_path)))
    else:
        roots = tuple(dict.fromkeys(map(fixed_folder, names)))
    if not roots:
        raise UsageError("`watch=`: bundled suites do not change. Name what does with `watch_path=`.")
    if missing := [str(root) for root in roots if not root.exists()]:
        option = "`watch_path=`" if settings.watch_path else "`watch=`"
        raise UsageError(f"{option}: {missing[0]!r} does not exist.")
    written = (settings.output_dir, settings.record, settings.junit)
    left_out = frozenset(Path(os.path.abspath(path)) for path in written if path)  # noqa: PTH100  # as it is written
    return WatchedFiles(roots, left_out, tuple(names), context.environ)


class _Loop:
    """The run under way, the files as they were when it began, and which tests are played."""

    def __init__(self, settings: Any, context: RunContext, pressed: Keys, start: StartRun) -> None:
        self._settings, self._console, self._keys = settings, context.console, pressed
        self._start = start
        self._files = watched_files(settings, context)
        self._seen: Snapshot = {}
        self._between = _BETWEEN_LOOKS
        self._run: RunProcess | None = None
        self._failed_only = False
        self._last_code: int = Exit.INTERRUPTED
        self._cut_off: Counter[Path] = Counter()
        """For each file the runs in a row that its changes have stopped."""
        self._written_by_runs: set[Path] = set()
        """Files that changed in so many runs that their changes start no other."""

    def go_on(self) -> int:
        """Run, and again after each change, until `q`; return the exit code of the last whole run."""
        self._look()
        self._begin()
        while True:
            match self._keys.wait(self._between):
                case "q":
                    return self._last_code
                case "f" | "a" as key:
                    self._failed_only = key == "f"
                    self._cut_off.clear()
                    self._written_by_runs.clear()
                    self.stop()
                    self._look()
                    self._begin()
            self._notice_end()
            if changed := self._changes():
                self._run_again(changed)

    def stop(self) -> None:
        """Stop the run under way, if there is one: it ends its agent and keeps what it has."""
        run, self._run = self._run, None
        if run is None or run.poll() is not None:
            return
        run.terminate()
        try:
            run.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            run.kill()
            run.wait()

    def _begin(self) -> None:
        self._run = self._start(self._options())

    def _options(self) -> dict[str, Any]:
        """Return the values of the settings of the next run."""
        options = {}
        for option in options_of(type(self._settings)):
            value = getattr(self._settings, option.name)
            if option.words and value is not None:
                value = str(value)  # its type is made anew in each process
            options[option.name] = value
        options["watch"] = False
        if self._failed_only and options["only_failed"] is None:
            options["only_failed"] = Path(LAST)
        return options

    def _notice_end(self) -> None:
        if self._run is None or (code := self._run.poll()) is None:
            return
        self._run, self._last_code = None, code
        self._cut_off.clear()
        files = numbers.count(len(self._seen), "file")
        played = "tests that failed" if self._failed_only else "all tests"
        hint = "  Keys: f failed only, a all, q quit." if self._keys.works else ""
        self._console.say(f"Watching {files}. The next change runs {played}.{hint}")

    def _look(self) -> None:
        began = time.monotonic()
        self._seen = self._files.look()
        self._between = max(_BETWEEN_LOOKS, _LOOK_SHARE * (time.monotonic() - began))

    def _changes(self) -> tuple[Path, ...]:
        """Return the files that changed since the run began, once no other changes: editors save several."""
        before, last = self._seen, self._seen
        deadline = time.monotonic() + _MOST_SETTLING
        self._look()
        while self._seen != last and time.monotonic() < deadline:
            last = self._seen
            time.sleep(_BETWEEN_LOOKS)
            self._look()
        changed = self._files.changed(before, self._seen) if self._seen != before else ()
        return tuple(path for path in changed if path not in self._written_by_runs)

    def _run_again(self, changed: Sequence[Path]) -> None:
        """Start the next run, unless it is the runs themselves that change these files."""
        what = numbers.listed([os.path.relpath(path) for path in changed], _SHOWN)
        if self._run is not None:
            self._cut_off = Counter({path: self._cut_off[path] + 1 for path in changed})
            if min(self._cut_off.values()) > _MOST_CUT_OFF:
                self._written_by_runs.update(changed)
                self._console.say(
                    f"{what} changed in each of the last {_MOST_CUT_OFF} runs, as if the agent wrote it. Its "
                    "changes start no run until a key is pressed. Add it to .gitignore, or name other files "
                    "with `watch_path=`."
                )
                return
        self._console.say(f"{what} changed: running again.")
        self.stop()
        self._begin()
