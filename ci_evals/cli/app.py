"""The commands. Each imports its work when it is called, so that `--help` answers at once."""

import gc
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NoReturn

import typer

from ci_evals._version import __version__
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import takes
from ci_evals.cli.settings.result_commands import (
    CommentSettings,
    CompareSettings,
    ImportSettings,
    InitSettings,
    MergeSettings,
    OddsSettings,
    RejudgeSettings,
    ReportSettings,
)
from ci_evals.cli.settings.suite_commands import PlanSettings, RunSettings, ValidateSettings
from ci_evals.study_registry import register_commands

PROGRAM = "ci-evals"

app = typer.Typer(
    name=PROGRAM,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"ci-evals {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """The CI gate for conversational agents: plays test suites as conversations, judges them, and decides.

    Try it without any key:  ci-evals run demo:hr --provider=offline
    """


@app.command()
@takes(RunSettings)
def run(settings: RunSettings, context: RunContext) -> None:
    """Play suites against the agent, judge, write reports, and exit as the gate decides.

    Exit codes: 0 the gate holds, or a pull request without secrets was skipped; 1 it does not hold; 2 wrong
    usage, configuration or suite (nothing was run); 3 the run cannot be trusted (unsound trials, nothing
    scored, or stopped before all was played); 70 a bug of ours; 130 interrupted.

    \b
    ci-evals run demo:hr --provider=offline     (needs no key)
    ci-evals run evals/ --parallel=10 --loops=3
    ci-evals run evals/ --tag=critical --min-score=85
    """
    gc.disable()  # until it plays: imports leave no garbage, and looking for it takes a tenth of their time
    from ci_evals.cli.commands.run import run_suites

    run_suites(settings, context)


@app.command()
@takes(ValidateSettings)
def validate(settings: ValidateSettings, context: RunContext) -> None:
    """Check suites: every problem with file, line and column; exit 2 if there is any.

    With --strict also what makes a suite weak though it runs, as warnings: no strict check, a criterion that
    asks two things, only happy paths, a test that no tag reaches, guidelines that give the answer away.
    """
    from ci_evals.cli.commands.validate import validate as work

    work(settings, context)


@app.command()
@takes(InitSettings)
def init(settings: InitSettings, context: RunContext) -> None:
    """Write a starter suite and the workflow that plays it on every pull request.

    Asks nothing: the default branch, the folder of suites and their adapter are taken from what is there. A
    file that is there is never written over; then nothing is written at all.

    \b
    ci-evals init                     (an AUI agent)
    ci-evals init --adapter=python    (with a function to put your agent into)
    ci-evals init --adapter=demo      (plays at once, without any key)
    """
    from ci_evals.cli.commands.init import init as work

    work(settings, context)


@app.command("import")
@takes(ImportSettings)
def import_(settings: ImportSettings, context: RunContext) -> None:
    """Make a suite of another tool's file. What cannot be taken along is named, and kept in the suite.

    \b
    gaia       the questions of the GAIA benchmark (metadata.jsonl)
    promptfoo  the tests of a configuration (promptfooconfig.yaml)
    deepeval   conversational goldens or test cases (.json, .jsonl, .csv)
    csv        a table with columns such as name, user, guidelines, expected, criterion, tags

    \b
    ci-evals import gaia metadata.jsonl --output=evals/gaia.yaml
    """
    from ci_evals.cli.commands.importing import import_suite

    import_suite(settings, context)


@app.command()
@takes(PlanSettings)
def plan(settings: PlanSettings, context: RunContext) -> None:
    """Show what would run: tests, turns, trials, calls, and an estimate of tokens, cost and duration.

    Calls nothing and needs no key. Prices are those of the bundled table, or those of your own file alone.
    """
    from ci_evals.cli.commands.plan import plan as work

    work(settings, context)


@app.command()
def list_suites(ctx: typer.Context) -> None:
    """List the bundled suites."""
    from ci_evals.cli.commands.list_suites import list_suites as work

    work(ctx.ensure_object(RunContext))


@app.command()
def schema(
    ctx: typer.Context,
    results: Annotated[
        bool, typer.Option("--results", help="The schema of _results.json in place of the suite's.")
    ] = False,
) -> None:
    """Print the JSON Schema of a suite; name it as "$schema" in a suite and editors complete it."""
    from ci_evals.cli.commands.schema import schema as work

    work(ctx.ensure_object(RunContext), results=results)


@app.command()
@takes(ReportSettings)
def report(settings: ReportSettings, context: RunContext) -> None:
    """Write every report anew, beside the _results.json that it is made from. Plays and judges nothing.

    Further runs stand beside it in report.html: what each costs against what it scores, and the trend.

    \b
    ci-evals report results --open
    ci-evals report results past/ --baseline=main/_results.json
    ci-evals report past/ --format=html,badge      (the newest of the runs in past/)
    """
    from ci_evals.cli.commands.report import report as work

    work(settings, context)


@app.command()
@takes(CompareSettings)
def compare(settings: CompareSettings, context: RunContext) -> None:
    """Compare two runs test by test, and tell whether a change is more than noise.

    Exit code 1 where the score dropped as --max-drop and --regression forbid; 3 where one of them is asked
    and the run itself says nothing (nothing scored, or trials that broke off decide); 0 otherwise, also where
    the two runs cannot be compared, which it then says.

    \b
    ci-evals compare results/ baseline/_results.json --regression=significant
    """
    from ci_evals.cli.commands.compare import compare as work

    work(settings, context)


@app.command()
@takes(CommentSettings)
def comment(settings: CommentSettings, context: RunContext) -> None:
    """Post a run's results as a comment on its pull request, or bring the comment that is there up to date.

    For the second workflow of a fork's pull request and the last job of a matrix; `run` posts by itself. It
    reads the _results.json alone and writes the text itself. What GitHub refuses is a warning, and exits 0.

    \b
    ci-evals comment results/ --pr-number=7
    ci-evals comment results/ --dry-run
    """
    from ci_evals.cli.commands.comment import comment as work

    work(settings, context)


@app.command()
@takes(OddsSettings)
def odds(settings: OddsSettings, context: RunContext) -> None:
    """Tell how often an unchanged agent would fail this gate, from the noise of a recorded run.

    The gate is the run's own; options put other numbers in its place. Proposes the highest --min-score that
    an unchanged agent misses in fewer than 5 % of runs.
    """
    from ci_evals.cli.commands.compare import odds as work

    work(settings, context)


@app.command()
@takes(MergeSettings)
def merge(settings: MergeSettings, context: RunContext) -> None:
    """Make one run of the results of several, as of a matrix's jobs: one file, one gate, one set of reports.

    Every number is computed again from the trials. The gate is that of these options; whether a shard held
    its own does not matter, so play the shards with --no-gate. Exit codes as of run; 3 also where a shard
    is missing (see --shards), stopped or interrupted.

    \b
    ci-evals merge shards/ --min-score=85 --output-dir=merged
    ci-evals merge hr/_results.json retail/_results.json --max-drop=2 --baseline=main/
    """
    from ci_evals.cli.commands.merge import merge_runs

    merge_runs(settings, context)


@app.command()
@takes(RejudgeSettings)
def rejudge(settings: RejudgeSettings, context: RunContext) -> None:
    """Judge a saved run's conversations again, by another judge or the same once more. Asks no agent.

    Strict verdicts stay as they are; every judged one is given anew, and every number with it. Tells which
    verdicts changed and how far the two judges agree. The gate is that of these options; exit codes as of
    run.

    \b
    ci-evals rejudge results/ --output-dir=rejudged                       (does the judge agree with itself?)
    ci-evals rejudge results/ --output-dir=rejudged --provider=anthropic  (and another one?)
    """
    from ci_evals.cli.commands.rejudge import rejudge_run

    rejudge_run(settings, context)


register_commands(app)


@dataclass(frozen=True)
class DemoAgentSettings:
    """Options of `demo-agent`."""

    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")] = 8080
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1"
    fault: Annotated[
        str | None, typer.Option(metavar="KIND,...", help="Faults to show; a wrong name lists them.")
    ] = None
    noise: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=1,
            help="The share of messages, 0 to 1, at which the agent slips: it answers as if it had not "
            "understood, or plays on without its rules.",
        ),
    ] = 0
    seed: Annotated[
        int,
        typer.Option(
            help="What the slips are drawn from: the same for the same conversations, however many are held "
            "at once."
        ),
    ] = 0
    break_: Annotated[
        str | None,
        typer.Option(
            "--break",
            metavar="WORKFLOW,...",
            help="Workflows that have lost their rules and call no integration, such as RETURN_REQUEST.",
        ),
    ] = None
    misbehave: Annotated[
        str | None,
        typer.Option(metavar="KIND,...", help="What it does wrong in every conversation, see above."),
    ] = None


@app.command()
@takes(DemoAgentSettings)
def demo_agent(settings: DemoAgentSettings, _: RunContext) -> None:
    """Serve the embedded demo agent, which speaks the AUI task API, until interrupted.

    It keeps to its playbooks. To see what a gate makes of worse agents, let it slip, or break a workflow:

    \b
    ci-evals demo-agent --noise=0.1 --seed=1
    ci-evals demo-agent --break=RETURN_REQUEST

    To see what a suite notices, break one thing at a time in every conversation (--misbehave=leak):

    \b
    skip_rules         no rule fires, nor is a rule's confirmation asked for
    wrong_integration  another integration is called than the one due
    forget_parameter   one parameter is missing from what was extracted
    escalate_early     a person is called at the first request
    leak               every reply tells another customer's data
    rude               every reply begins with an insult; it takes a judge
    err                every reply is an error response
    """
    from ci_evals.cli.commands.demo_agent import DemoBehavior, serve

    behavior = DemoBehavior(
        settings.fault, settings.noise, settings.seed, settings.break_, settings.misbehave
    )
    serve(settings.host, settings.port, behavior)


def invoke(args: Sequence[str], context: RunContext, name: str | None = None) -> object:
    """Run a command, and return the exit code of one that ends early, as `--help` does.

    `name` is the program's in its usage, by default that of the file that was started.

    Raises:
        typer.TyperException: the command line cannot be read.
    """
    return app(args=list(args), prog_name=name, standalone_mode=False, obj=context)


def main(args: list[str] | None = None) -> NoReturn:
    """Run the command line and exit: see `ci_evals.cli.process.guard` for what each kind of ending means."""
    from ci_evals.cli.process.guard import run_command

    arguments = sys.argv[1:] if args is None else args
    context = RunContext()
    run_command(lambda: invoke(arguments, context), arguments, context)
