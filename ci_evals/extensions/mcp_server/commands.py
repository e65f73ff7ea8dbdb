"""The command `mcp`."""

from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import CommandFacts, takes

if TYPE_CHECKING:
    from ci_evals.extensions.mcp_server.settings import McpSettings


@takes("ci_evals.extensions.mcp_server.settings", "McpSettings", CommandFacts(is_supervised=False))
def mcp(settings: "McpSettings", context: RunContext) -> None:
    """Serve coding agents over MCP, on standard input and output.

    Tools: list_tests, validate, plan, run, failures, explain, suggest_checks. What agents, users and judges
    said is in no answer, unless a call asks for it with `conversation`. Only files in the current folder are
    read and written.

    \b
    pip install 'ci-evals[mcp]'
    claude mcp add ci-evals -- ci-evals mcp --max-cost=1
    """
    from ci_evals.extensions.mcp_server.server import serve

    serve(settings, context)


COMMANDS = (mcp,)
