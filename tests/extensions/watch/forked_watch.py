"""`run --watch` with runs that are forks, which start in a tenth of the time."""

import fcntl
import multiprocessing
import os
import runpy
import subprocess
import termios
from functools import partial

from ci_evals.cli.process import supervision
from ci_evals.extensions.watch import one_run, watching


class ForkedRun(multiprocessing.get_context("fork").Process):
    """A run under way, as `subprocess.Popen` has it."""

    def __init__(self, options):
        super().__init__(target=one_run.play, args=(options,))
        self.start()

    def run(self):
        os.setpgid(0, 0)
        supervision._verdict.clear()  # its exit code is not the watcher's
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
    watching.watch = partial(watching.watch, start=ForkedRun)
    runpy.run_module("ci_evals", run_name="__main__", alter_sys=True)
