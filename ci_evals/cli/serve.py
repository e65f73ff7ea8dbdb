"""`demo-agent`: the embedded agent alone, until interrupted."""

import signal
import sys
from types import FrameType

import typer

from ci_evals.demo_agent.faults import Fault
from ci_evals.demo_agent.server import DemoServer
from ci_evals.demo_agent.server import serve as serve_until_interrupted
from ci_evals.domain.errors import UsageError


def serve(host: str, port: int, faults: str | None) -> None:
    """Serves the demo agent with the faults named.

    Raises:
        UsageError: an unknown fault, or the address cannot be had.
    """
    wanted = [name.strip() for name in (faults or "").split(",") if name.strip()]
    unknown = [name for name in wanted if name not in list(Fault)]
    if unknown:
        raise UsageError(f"--fault: there is no {unknown[0]!r}; there are: {', '.join(Fault)}")
    try:
        server = DemoServer(host=host, port=port, faults=[Fault(name) for name in wanted])
    except OSError as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    # As process 1 of a container Python would ignore SIGTERM.
    signal.signal(signal.SIGTERM, _end)
    serve_until_interrupted(server, _announce)


def _end(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(0)


def _announce(base_url: str) -> None:
    typer.echo(
        f"The demo agent listens on {base_url}\n\nTry:  ci-evals run demo:hr --base-url={base_url} "
        "--provider=offline"
    )
    sys.stdout.flush()
