"""The options of `odds`."""

from dataclasses import dataclass

from ci_evals.cli.settings.gate_rules import odds_options, settings_class
from ci_evals.cli.settings.shared import (
    Run,
)

_OddsOptions = settings_class("_OddsOptions", odds_options())


@dataclass(frozen=True, kw_only=True)
class OddsSettings(_OddsOptions):  # type: ignore[misc, valid-type]  # its fields are what the rules declare
    """Options of `odds`, each instead of the saved run's."""

    results: Run
