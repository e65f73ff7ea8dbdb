"""`watch`, as `run --watch` calls it, with runs that are forks, which start in a tenth of the time."""

import fcntl
import multiprocessing
import os
import subprocess
import termios

from ci_evals.cli.process.guard import run_command
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.run_command import RunSettings
from ci_evals.extensions.watch import one_run
from ci_evals.extensions.watch.watching import watch


class ForkedRun(multiprocessing.get_context("fork").Process):
    """A run under way, as `subprocess.Popen` has it."""

    def __init__(self, options):
        super().__init__(target=one_run.play, args=(options,))
        self.start()

    def run(self):
        os.setpgid(0, 0)
        super().run()

    def poll(self):
        return self.exitcode

    def wait(self, timeout=None):
        self.join(timeout)
        if self.exitcode is None:
            raise subprocess.TimeoutExpired("a run", timeout)
        return self.exitcode


if __name__ == "__main__":
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # keys send it signals
    settings = RunSettings(suites=["evals/"], watch=True, provider="offline")
    run_command(lambda: watch(settings, RunContext(), ForkedRun), [])
