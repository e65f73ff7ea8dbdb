"""The server: tools over MCP's standard input and output, until the client is gone."""

from __future__ import annotations  # those of the SDK, which may be missing

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from pydantic import JsonValue

from ci_evals._version import __version__
from ci_evals.cli.files.suite_loading import options_file
from ci_evals.cli.process.supervision import ENDING
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import CiEvalsError, Exit, UsageError
from ci_evals.extensions.mcp_server.children import Children
from ci_evals.extensions.mcp_server.saved import Answer
from ci_evals.extensions.mcp_server.settings import McpSettings
from ci_evals.extensions.mcp_server.toolbox import Toolbox
from ci_evals.extensions.mcp_server.words import untrusted
from ci_evals.reports import sanitize
from ci_evals.support import templates
from ci_evals.support.documentation import extra
from ci_evals.support.json_text import JsonObject, written

try:
    import mcp_types as types
    from mcp.server import Server
    from mcp.server.stdio import stdio_server
except ImportError:  # the extra is not installed, and modules of the package can be imported all the same
    _HAS_SDK = False
else:
    _HAS_SDK = True

_FOLDER = "extensions/mcp_server"
_MOST_MESSAGE = 4_000


def serve(settings: McpSettings, context: RunContext) -> None:
    """Serve until the client closes its end; then end runs that it started, with their agents.

    Raises:
        UsageError: the SDK is not installed, or the file of the option `adapter_options` cannot be read.
    """
    if not _HAS_SDK:
        raise UsageError(f"The server needs the official SDK of MCP, which is not installed: {extra('mcp')}")
    context.hide([settings.agent_key])
    if settings.adapter_options:
        options_file(settings.adapter_options, context.environ, masked=False)
    context.wait(_serve(settings, context))


async def _serve(settings: McpSettings, context: RunContext) -> None:
    children = Children()
    handlers = _Handlers(Toolbox(settings, context, children, Path.cwd()), context)
    server = Server(
        "ci-evals",
        version=__version__,
        instructions=templates.render(f"{_FOLDER}/instructions.md.j2"),
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
    )
    signaled = asyncio.Event()
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError):  # Windows
        for number in ENDING:
            loop.add_signal_handler(number, signaled.set)
    serving = loop.create_task(_run(server))
    waiting = loop.create_task(signaled.wait())
    await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
    await children.end_all()
    if not serving.done():
        # A thread reads standard input, which may never end.
        os._exit(Exit.INTERRUPTED)
    waiting.cancel()
    await serving


async def _run(server: Server[Any]) -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


class _Handlers:
    """Answers what a client asks."""

    def __init__(self, toolbox: Toolbox, context: RunContext) -> None:
        self._toolbox, self._context = toolbox, context
        self._tools = declared_tools()

    async def list_tools(self, _: object, params: object) -> types.ListToolsResult:
        """Return the tools with their arguments."""
        del params
        tools = []
        for name, tool in self._tools.items():
            hints = types.ToolAnnotations(read_only_hint=tool["readOnly"], destructive_hint=False)
            tools.append(
                types.Tool(
                    name=name,
                    description=tool["description"],
                    input_schema=schema_of(tool),
                    annotations=hints,
                )
            )
        return types.ListToolsResult(tools=tools)

    async def call_tool(self, _: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Return the answer of a tool, or one clear message."""
        try:
            answer = await self._toolbox.call(params.name, self._checked(params.name, params.arguments or {}))
        except CiEvalsError as error:
            return self._refused(self._context.message(str(error)))
        except Exception as error:  # noqa: BLE001  # a bug of ours: it must not end the server
            self._context.console.say(f"A bug in ci-evals: {type(error).__name__}: {error}")
            return self._refused(f"A bug in ci-evals ({type(error).__name__}). Please report it.")
        return types.CallToolResult(content=self._contents(answer))

    def _checked(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments of a tool.

        Raises:
            UsageError: there is no such tool, or they do not fit it.
        """
        if tool not in self._tools:
            raise UsageError(f"There is no tool {tool!r}. Tools: {', '.join(self._tools)}")
        problem = jsonschema.validators.Draft202012Validator(schema_of(self._tools[tool])).iter_errors(
            arguments
        )
        if first := next(iter(problem), None):
            where = ".".join(map(str, first.absolute_path))
            raise UsageError(f"{tool}: {where}: {first.message}" if where else f"{tool}: {first.message}")
        return arguments

    def _contents(self, answer: Answer) -> list[types.ContentBlock]:
        redactor = self._context.redactor
        texts = [written(redactor.json(answer.facts))]
        if answer.words is not None:
            texts.append(untrusted(redactor.json(answer.words), cut=answer.words_cut))
        return [types.TextContent(type="text", text=text) for text in texts]

    def _refused(self, message: str) -> types.CallToolResult:
        text = sanitize.cut(self._context.redactor.text(message), _MOST_MESSAGE, "…")
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


def declared_tools() -> JsonObject:
    """Return the tools as they are declared, by their names."""
    text = files("ci_evals").joinpath(_FOLDER, "tools.yaml").read_text(encoding="utf-8")
    tools: JsonObject = yaml.safe_load(text)["tools"]
    return tools


def schema_of(tool: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Return the JSON Schema of the arguments of a tool."""
    return {
        "type": "object",
        "properties": tool["takes"],
        "required": tool.get("needs", []),
        "additionalProperties": False,
    }
