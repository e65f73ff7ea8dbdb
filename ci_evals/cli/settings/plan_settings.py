"""The options that say which trials a run plays, and with which models."""

from dataclasses import dataclass
from typing import Annotated

from ci_evals.cli.settings.choices import OutputFormat
from ci_evals.cli.settings.shared import (
    JudgeCheckMode,
    JudgePanel,
    Prices,
    SidesSettings,
    SuiteSettings,
)
from ci_evals.domain.choices import CheckMode
from ci_evals.domain.options import Group, Names, OptionSpec
from ci_evals.domain.providers import OPENAI
from ci_evals.extension_registry import providers


@dataclass(frozen=True)
class PlanSettings(SidesSettings, SuiteSettings):
    """Options of `plan`, and of `run` as far as cost and duration depend on them."""

    loops: Annotated[
        int, OptionSpec("Trials of each test.", group=Group.REPETITION, minimum=1, maximum=1000)
    ] = 1
    rounds: Annotated[
        str,
        OptionSpec(
            "Stop as soon as the verdict is clear.\n\n"
            "Evaluates the run after these numbers of trials per test, some of 2,3,5,7, and stops if more "
            "could hardly change the verdict. `auto` is all of them. With `--against` or `--arms` it is "
            "always 3,5,7. Not with `--loops`.",
            group=Group.REPETITION,
            names=Names.TEXT,
            metavar="off|auto|N,N,...",
        ),
    ] = "off"
    test: Annotated[
        list[str] | None,
        OptionSpec(
            "Only tests with this name, or whose name contains it.\n\n"
            "May be repeated. The whole name of a test selects that test alone. Else parts of names may be "
            "separated by commas. In variables and inputs, write a name a line.",
            group=Group.SUITES,
            names=Names.TEXT,
            metavar="NAME",
        ),
    ] = None
    tag: Annotated[
        str | None,
        OptionSpec(
            "Only tests that have one of these tags.\n\nComma-separated.",
            group=Group.SUITES,
            names=Names.TEXT,
            metavar="TAG,...",
        ),
    ] = None
    provider: Annotated[
        str,
        OptionSpec(
            f"Model provider: {', '.join(providers())}.\n\n"
            "For judge and simulated user. With `offline` nothing is judged and no key is needed.",
            group=Group.MODELS,
            metavar="NAME",
            words=providers,
        ),
    ] = OPENAI.name
    judge_model: Annotated[
        str | None,
        OptionSpec(
            "Judge model, instead of the suite's `judgeModel`.",
            group=Group.MODELS,
            names=Names.TEXT,
            metavar="MODEL",
        ),
    ] = None
    user_model: Annotated[
        str | None,
        OptionSpec(
            "Model of the simulated user, instead of `userModel`.",
            group=Group.MODELS,
            names=Names.TEXT,
            metavar="MODEL",
        ),
    ] = None
    embedding_model: Annotated[
        str | None,
        OptionSpec(
            "Embedding model, for checks that compare meanings.\n\n"
            "One of the provider's models, or `local:NAME`.",
            group=Group.MODELS,
            names=Names.TEXT,
            metavar="MODEL",
        ),
    ] = None
    judge_votes: Annotated[
        int,
        OptionSpec(
            "Judge votes on each criterion, an odd number.\n\n"
            "Voting ends once a criterion is decided. With `--judge-panel` there are at least as many votes "
            "as models.",
            group=Group.MODELS,
            minimum=1,
            maximum=99,
        ),
    ] = 1
    judge_panel: JudgePanel = None
    judge_check: JudgeCheckMode = CheckMode.AUTO
    audit_user: Annotated[
        bool,
        OptionSpec(
            "Let a model check that the simulated user is in character.\n\n"
            "It must follow its guidelines and data. Checks without a model always run.",
            group=Group.MODELS,
        ),
    ] = False
    output_format: Annotated[
        OutputFormat,
        OptionSpec(
            "Form of what is printed.\n\n"
            "With `json`, standard output has one JSON object (of `run`, that of _results.json), and all "
            "else goes to standard error.",
            group=Group.OUTPUT,
            flag="--format",
        ),
    ] = OutputFormat.TEXT
    parallel: Annotated[
        int, OptionSpec("Concurrent conversations.", group=Group.LIMITS, minimum=1, maximum=10_000)
    ] = 1
    prices: Prices = None
