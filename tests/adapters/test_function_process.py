"""What a suite's functions are given: probes that failed are unknown, and not absent."""

import pytest

from ci_evals.adapters.world.function_process import Probes

WITHOUT_ERROR = {"orders": [1]}


@pytest.mark.parametrize(
    "look",
    [
        lambda probes: probes["refunds"],
        lambda probes: probes.get("refunds"),
        lambda probes: "refunds" in probes,
        lambda probes: [*probes],
        len,
        bool,
        lambda probes: any(probes.values()),
        lambda probes: [*probes.items()],
        lambda probes: [*probes.keys()],
    ],
)
def test_to_look_for_a_failed_probe_is_an_error(look):
    """`not probes.get("refunds")` would else pass while the database is down."""
    with pytest.raises(LookupError, match="the probe refunds failed: no connection"):
        look(Probes(WITHOUT_ERROR, {"refunds": "no connection"}))


def test_other_probes_can_be_read():
    probes = Probes(WITHOUT_ERROR, {"refunds": "no connection"})
    assert (probes["orders"], probes.get("orders"), "orders" in probes) == ([1], [1], True)
    assert (probes.get("other", 7), "other" in probes) == (7, False)
    with pytest.raises(KeyError):
        probes["other"]
