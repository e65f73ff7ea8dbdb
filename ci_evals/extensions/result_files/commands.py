"""The command `gate`."""

import gc
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import CommandFacts, takes

if TYPE_CHECKING:
    from ci_evals.extensions.result_files.settings import GateFilesSettings


def _formats() -> Iterable[tuple[str, str]]:
    from ci_evals.extensions.result_files.reading import rows_of_help

    return rows_of_help()


_FACTS = CommandFacts(after="comment", formats=_formats, is_input=True, has_outputs=True)


@takes("ci_evals.extensions.result_files.settings", "GateFilesSettings", _FACTS)
def gate(settings: "GateFilesSettings", context: RunContext) -> None:
    """Gate the results of another tool.

    Reads result files, and does with them what is done with a run: score and interval, thresholds,
    comparison with a baseline, reports, comment. Several files or repeats of one test are its trials. Exit
    codes as of run.

    \b
    FORMATS

    \b
    ci-evals gate junit.xml --baseline=main/ --regression=any
    ci-evals gate runs/*.csv --min-score=70 --map=map.yaml
    """
    from ci_evals.extensions.result_files.gate_files import gate_files

    gc.disable()  # results make no cycles, and looking for some among thousands takes a sixth of the time
    try:
        gate_files(settings, context)
    finally:
        gc.enable()


COMMANDS = (gate,)
