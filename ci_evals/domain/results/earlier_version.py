"""Results of schema version 2, read as those of this version."""

from ci_evals.support.json_text import JsonObject

VERSION = 2
_QUARTER = (
    "Only the tests that looked worst were compared with the base agent (both-sides worst-quarter of an "
    "earlier version)."
)


def upgrade(data: JsonObject) -> JsonObject:
    """Return a document of version 2 as one of version 3, as far as its form can be trusted.

    Trials that were played to confirm a result count as all others do, and so do those of the tests that
    looked worst: results warn that these alone were compared. A base agent that was never played counts as
    none.
    """
    upgraded = data | {"schemaVersion": 3}
    run = data.get("run")
    if not isinstance(run, dict):
        return upgraded
    run = dict(run)
    config, warnings = run.get("config"), run.get("warnings")
    if isinstance(config, dict) and config.get("bothSides") == "never":
        run["config"] = config | {"against": False}
    if run.get("worstQuarter") and isinstance(warnings, list | None):
        run["warnings"] = [*(warnings or ()), _QUARTER]
    return upgraded | {"run": run}
