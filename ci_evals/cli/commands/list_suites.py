"""`list-suites`: the suites that come with the package."""

from textwrap import dedent

from ci_evals.adapters.suites import bundled_names, sources
from ci_evals.cli.run_context import RunContext
from ci_evals.extension_registry import suite_bases
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load
from ci_evals.reports import sanitize
from ci_evals.reports.columns import table


def list_suites(context: RunContext) -> None:
    """List the bundled suites with their descriptions."""
    rows = []
    for name in bundled_names():
        (source,) = sources(name)
        suite = load(source.text, source.file, Reading()).suite
        rows.append([source.file, str(len(suite.tests)), sanitize.log_line(suite.description or suite.name)])
    context.show(dedent(table(["name", "tests", "about"], rows, context.width, names=[2], right=[1])))
    context.show("\nRun one with:  ci-evals run demo:hr --provider=offline\n")
    packs = [[*pack] for base in suite_bases() for pack in base.suites().items()]
    if packs:
        context.show(dedent(table(["to extend", "about"], packs, context.width, names=[1])))
        context.show(f"\nName one in a suite of yours:  extends: {packs[0][0]}")
