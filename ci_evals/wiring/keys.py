"""The keys that a run uses: what nobody else may see."""

from collections.abc import Sequence

from ci_evals.domain.agents import secrets_of
from ci_evals.planning.parse import LoadedSuite
from ci_evals.support.secrets import in_addresses
from ci_evals.wiring.connections import Connections


def keys_of(adapter: object, suites: Sequence[LoadedSuite]) -> list[str]:
    """The keys that a run uses."""
    keys = [suite.suite.api_key.get_secret_value() for suite in suites if suite.suite.api_key]
    if isinstance(adapter, Connections):
        keys += [
            adapter.llm_key or "",
            adapter.llm_token or "",
            *(part for value in adapter.headers.values() for part in value.split()),
        ]
        keys += adapter.headers.values()
    keys += (part for suite in suites for part in secrets_of(suite.suite.adapter_options))
    return [*keys, *(part for suite in suites for part in in_addresses(suite.suite.base_url or ""))]
