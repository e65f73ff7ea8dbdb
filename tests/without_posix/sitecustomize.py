"""Take from Python what Windows does not have, except what its event loop needs here to start programs."""

import asyncio  # noqa: F401
import concurrent.futures.process  # noqa: F401
import multiprocessing.util  # noqa: F401
import os
import select
import shutil  # noqa: F401
import signal
import socketserver  # noqa: F401
import subprocess  # noqa: F401
import sys
import tempfile  # noqa: F401
from asyncio import unix_events

for name in ("fork", "killpg", "setsid", "geteuid", "chown", "O_NOFOLLOW", "O_NONBLOCK"):
    delattr(os, name)
for name in ("SIGHUP", "SIGALRM", "SIGSTOP", "SIGCONT", "pthread_sigmask", "sigwait", "setitimer"):
    delattr(signal, name)
for name in ("poll", "POLLIN", "epoll"):
    delattr(select, name)
sys.modules["fcntl"] = sys.modules["resource"] = sys.modules["pwd"] = None


def add_signal_handler(*_):
    """As the event loops of Windows answer."""
    raise NotImplementedError


unix_events._UnixSelectorEventLoop.add_signal_handler = add_signal_handler
