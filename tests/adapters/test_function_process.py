"""What a suite's functions are given: probes that failed are unknown, and not absent."""

import os

import pytest
from each_row import each_row

from ci_evals.adapters.processes import functions
from ci_evals.adapters.processes.function_process import Probes
from ci_evals.ports import FunctionError
from ci_evals.support.redaction import Redactor

WITHOUT_ERROR = {"orders": [1]}
GET, JSON = 'probes.get("refunds")', "json.dumps(probes)"
PAST_THE_METHODS = 'len(dict.get(probes, "refunds"))'
LOOKS = [
    GET, JSON, PAST_THE_METHODS, 'probes["refunds"]', 'probes.get("refunds", [])', '"refunds" in probes',
    '"refunds" not in probes', 'probes.pop("refunds", None)', 'probes.setdefault("refunds", [])',
    'probes.__setitem__("refunds", [])', "[name for name in probes]", "list(probes.keys())",
    "any(probes.values())", "dict(probes.items())", "list(reversed(probes))", "len(probes)", "not probes",
    "probes == {'orders': [1]}", "probes != {'orders': [1]}", "'refund' in repr(probes)", "f'{probes}'",
    "dict(probes)", "{**probes}", "dict(**probes)", "probes.copy()", "copy.copy(probes)",
    "copy.deepcopy(probes)", "pickle.dumps(probes)", "probes | {}", "{} | probes", "{}.update(probes)",
    "json.dumps(probes, indent=1)", "sorted(probes)", 'dict.copy(probes)["refunds"] == []', "match(probes)",
]  # fmt: skip
"""Ways to look at the probe `refunds`."""

MODULE = """
import copy, json, pickle

def match(probes):
    match probes:
        case {"refunds": [_]}:
            return True

def swallows(probes):
    try:
        LOOK
    except BaseException:
        pass
    return True

async def swallows_later(probes):
    return swallows(probes)

def looks(probes):
    return bool(LOOK) or True

class Checks:
    @staticmethod
    def swallows(probes):
        return swallows(probes), "all is well"

def looks_elsewhere(probes, transcript):
    return probes["orders"] == [1] and "orders" in probes and probes.get("claims") is None
"""
ERRORS = {"refunds": "no connection"}


async def decide(name, look, folder, monkeypatch, values=WITHOUT_ERROR):
    """The function's return value; raises if there is none."""
    (folder / "checks.py").write_text(MODULE.replace("LOOK", look))
    monkeypatch.chdir(folder)
    arguments = {"transcript": {}, "trace": [], "probes": values, "probe_errors": ERRORS}
    return await functions.call(f"checks:{name}", arguments, os.environ, Redactor(), timeout=60)


@each_row("look", LOOKS)
def test_every_kind_of_access_to_failed_probe_raises(look):
    """`not probes.get("refunds")` would else pass while the database is down."""
    names = {}
    exec(MODULE.replace("LOOK", "0"), names)
    for values in (WITHOUT_ERROR, {}):
        probes = Probes(values, ERRORS)
        with pytest.raises(LookupError, match="the probe refunds failed: no connection"):
            eval(look, names | {"probes": probes})
        assert "no connection" in probes.unknown


@pytest.mark.parametrize(("name", "look"), [
    ("swallows", GET), ("swallows", JSON), ("swallows", PAST_THE_METHODS), ("swallows_later", GET),
    ("Checks.swallows", GET), ("looks", GET), ("looks", JSON), ("looks", PAST_THE_METHODS),
])  # fmt: skip
async def test_function_that_catches_error_of_failed_probe_is_undecided(tmp_path, monkeypatch, name, look):
    """It went on without what it wanted to know."""
    with pytest.raises(FunctionError, match="the probe refunds failed: no connection"):
        await decide(name, look, tmp_path, monkeypatch)


async def test_probes_without_an_error_can_be_read_and_decide_a_python_check(tmp_path, monkeypatch):
    assert await decide("looks_elsewhere", "0", tmp_path, monkeypatch) is True
    probes = Probes(WITHOUT_ERROR, ERRORS)
    assert (probes["orders"], probes.get("orders"), "orders" in probes) == ([1], [1], True)
    assert (probes.get("other", 7), "other" in probes) == (7, False)
    with pytest.raises(KeyError):
        probes["other"]
