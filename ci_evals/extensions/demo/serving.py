"""`demo-agent`: the embedded agent alone, until interrupted."""

import difflib
import signal
import sys
from dataclasses import dataclass
from types import FrameType

import typer

from ci_evals.domain.errors import UsageError
from ci_evals.extensions.demo.faults import Misbehavior, UnknownWorkflowError, drifted
from ci_evals.extensions.demo.server import DemoServer
from ci_evals.extensions.demo.server import serve as serve_until_interrupted


@dataclass(frozen=True)
class DemoBehavior:
    """The errors that the agent is to make, by the options of these names."""

    noise: float
    seed: int
    broken: str | None
    misbehaves: str | None
    drift: float = 0
    day: int = 0

    @property
    def noise_today(self) -> float:
        """The share of messages at which it slips."""
        return drifted(self.noise, self.drift, self.day)

    def __str__(self) -> str:
        """Describe the errors in one sentence; empty if there are none."""
        parts = (
            [f"it slips at {100 * self.noise_today:.3g} % of messages (seed {self.seed})"]
            if self.noise
            else []
        )
        parts += [f"{code} is broken" for code in _names(self.broken)]
        if kinds := _names(self.misbehaves):
            parts.append(f"it misbehaves in every conversation ({', '.join(kinds)})")
        return f"Note: {'; '.join(parts)}." if parts else ""


def serve(host: str, port: int, behavior: DemoBehavior) -> None:
    """Serve the demo agent with such behavior.

    Raises:
        UsageError: an unknown workflow or misbehavior, or the address cannot be had.
    """
    try:
        server = DemoServer(
            host=host,
            port=port,
            noise=behavior.noise_today,
            seed=behavior.seed,
            broken=_names(behavior.broken),
            misbehaves=_misbehaviors(behavior.misbehaves),
        )
    except OSError as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    except UnknownWorkflowError as error:
        raise UsageError(f"`break_=`: {error}") from error
    # As process 1 of a container Python would ignore SIGTERM.
    signal.signal(signal.SIGTERM, _end)
    serve_until_interrupted(server, lambda base_url: _announce(base_url, behavior))


def _misbehaviors(listed: str | None) -> list[Misbehavior]:
    for name in _names(listed):
        if name not in list(Misbehavior):
            close = difflib.get_close_matches(name.lower(), Misbehavior, n=1)
            hint = f" (did you mean {str(close[0])!r}?)" if close else ""
            raise UsageError(f"`misbehave=`: unknown kind {name!r}{hint}. Kinds: {', '.join(Misbehavior)}.")
    return [Misbehavior(name) for name in _names(listed)]


def _names(listed: str | None) -> list[str]:
    return [name.strip() for name in (listed or "").split(",") if name.strip()]


def _end(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(0)


def _announce(base_url: str, behavior: DemoBehavior) -> None:
    typer.echo(f"The demo agent listens on {base_url}")
    if summary := str(behavior):
        typer.echo(summary)
    typer.echo(f"\nTry:  ci-evals run demo:hr --base-url={base_url} --provider=offline")
    sys.stdout.flush()
