"""The command `chat`."""

from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import takes

if TYPE_CHECKING:
    from ci_evals.extensions.chat.settings import ChatSettings


@takes("ci_evals.extensions.chat.settings", "ChatSettings")
def chat(settings: "ChatSettings", context: RunContext) -> None:
    """Talk to the agent of a suite, or to one that options name.

    Each reply is shown with its tool calls, rules, hand-over and seconds. Lines are read from
    standard input; those that begin with / are commands: /help lists them.

    \b
    ci-evals chat evals/refunds.yaml
    ci-evals chat evals/refunds.yaml --test='Refund an order'
    ci-evals chat --adapter=http --base-url=http://localhost:8000/chat
    echo 'Where is my order?' | ci-evals chat evals/refunds.yaml

    Exits with 3 if the agent cannot be talked to.
    """
    from ci_evals.extensions.chat.chatting import chat as work

    work(settings, context)


COMMANDS = (chat,)
