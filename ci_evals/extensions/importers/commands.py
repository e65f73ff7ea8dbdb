"""The command `import`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import CommandFacts, takes

if TYPE_CHECKING:
    from ci_evals.extensions.importers.settings import ImportSettings


def _formats() -> Iterable[tuple[str, str]]:
    from ci_evals.extensions.importers.formats import rows_of_help

    return rows_of_help()


@takes("ci_evals.extensions.importers.settings", "ImportSettings", CommandFacts(formats=_formats))
def import_(settings: "ImportSettings", context: RunContext) -> None:
    """Make a suite of other tests, or of real conversations.

    Real conversations are drafted: what people must decide stands in comments. What cannot be
    converted is listed, and kept in the suite under x-unmapped.

    \b
    FORMATS

    \b
    ci-evals import gaia metadata.jsonl --output=evals/gaia.yaml
    ci-evals import transcript chats.jsonl --output=evals/chats.yaml
    ci-evals import otlp spans.jsonl --as-run --output-dir=past
    """
    from ci_evals.extensions.importers.importing import import_suite

    import_suite(settings, context)


COMMANDS = (import_,)
