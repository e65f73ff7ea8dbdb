"""Programs that tests start as processes of their own."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def run_captured(command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, whatever its exit code, and return it with its output as text."""
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)
