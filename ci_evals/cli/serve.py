"""`demo-agent`: the embedded agent alone, until interrupted."""

import signal
import sys
from dataclasses import dataclass
from types import FrameType

import typer

from ci_evals.demo_agent.faults import Fault
from ci_evals.demo_agent.server import DemoServer
from ci_evals.demo_agent.server import serve as serve_until_interrupted
from ci_evals.demo_agent.temper import UnknownWorkflowError
from ci_evals.domain.errors import UsageError


@dataclass(frozen=True)
class Manners:
    """What the agent is to do wrong, as the options of these names have it."""

    fault: str | None
    noise: float
    seed: int
    broken: str | None

    def __str__(self) -> str:
        """What is on, in one sentence; empty for nothing."""
        parts = [f"it shows {name}" for name in _names(self.fault)]
        parts += [f"it slips at {100 * self.noise:g} % of messages (seed {self.seed})"] if self.noise else []
        parts += [f"{code} is broken" for code in _names(self.broken)]
        return f"Mind: {'; '.join(parts)}." if parts else ""


def serve(host: str, port: int, manners: Manners) -> None:
    """Serves the demo agent with such manners.

    Raises:
        UsageError: an unknown fault or workflow, or the address cannot be had.
    """
    faults = _names(manners.fault)
    unknown = [name for name in faults if name not in list(Fault)]
    if unknown:
        raise UsageError(f"--fault: there is no {unknown[0]!r}; there are: {', '.join(Fault)}")
    try:
        server = DemoServer(
            host=host,
            port=port,
            faults=[Fault(name) for name in faults],
            noise=manners.noise,
            seed=manners.seed,
            broken=_names(manners.broken),
        )
    except OSError as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    except UnknownWorkflowError as error:
        raise UsageError(f"--break: {error}") from error
    # As process 1 of a container Python would ignore SIGTERM.
    signal.signal(signal.SIGTERM, _end)
    serve_until_interrupted(server, lambda base_url: _announce(base_url, manners))


def _names(listed: str | None) -> list[str]:
    return [name.strip() for name in (listed or "").split(",") if name.strip()]


def _end(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(0)


def _announce(base_url: str, manners: Manners) -> None:
    typer.echo(f"The demo agent listens on {base_url}")
    if said := str(manners):
        typer.echo(said)
    typer.echo(f"\nTry:  ci-evals run demo:hr --base-url={base_url} --provider=offline")
    sys.stdout.flush()
