"""Tables of prices: the one that is shipped, and files of the user's."""

import json
import re
from datetime import date
from pathlib import Path

import pytest
from each_row import each_row

from ci_evals.adapters import prices
from ci_evals.domain.errors import UsageError
from ci_evals.domain.prices import Price, unpriced
from ci_evals.extension_registry import providers

TABLE = Path(prices.__file__).with_name("prices.yaml")


def write_prices(folder, text, name="prices.yaml"):
    """A file of prices with this text."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_default_models_have_prices_and_local_models_are_free():
    """Whoever names no model is told what the run cost: by the table, or by the provider itself."""
    priced = [row for row in providers().values() if not row.reports_cost]
    defaults = [name for row in priced for name in (row.judge, row.user, row.embeddings) if name]
    assert unpriced(defaults, prices.bundled()) == ()
    assert prices.bundled().price_of("local:minishlab/potion-base-8M") == Price(input=0, output=0)


def test_bundled_prices_are_dated_plausible_and_have_a_source():
    table = prices.bundled()
    assert table.as_of
    assert table.as_of >= date(2026, 11, 22)
    assert len(table.models) > 30
    for name, price in table.models.items():
        if "embedding" in name:
            assert (0 < price.input < 1, price.output) == (True, 0), name
            continue
        assert 0 < price.input < price.output < 200, name
        assert price.output <= 10 * price.input, name
    # A price that nobody can look up cannot be kept up to date.
    parts = TABLE.read_text().partition("models:\n")[2].split("\n\n")
    assert len(parts) == 3
    assert all(re.search(r"# \w+.*: https://", part.splitlines()[0]) for part in parts)


WITHOUT_CACHED_INPUT = {"gpt-6.2-sol", "gemini-3.5-flash-lite"}
"""The models for which no published list has such a price."""


def test_cached_input_costs_less_and_has_a_price_for_all_default_judges():
    table = prices.bundled()
    prices_of = {name: price.cached_input for name, price in table.models.items()}
    kept = {name: price for name, price in prices_of.items() if price is not None}
    chat = {name for name in table.models if "embedding" not in name}
    assert chat - kept.keys() == WITHOUT_CACHED_INPUT
    judges = {row.judge for row in providers().values() if row.models and not row.reports_cost}
    assert {judge for judge in judges if judge in table.models} <= kept.keys()
    for name, price in kept.items():
        assert 0.05 * table.models[name].input <= price <= 0.5 * table.models[name].input, name


def test_price_file_replaces_the_bundled_table(tmp_path):
    yaml = write_prices(tmp_path, "# mine\nasOf: 2026-10-01\nmodels:\n  my-model: {input: 0, output: 2.5}\n")
    table = prices.read(yaml)
    assert (table.as_of, dict(table.models)) == (date(2026, 10, 1), {"my-model": Price(input=0, output=2.5)})
    text = json.dumps({"models": {"my-model": {"input": 1, "output": 2}}})
    assert prices.read(write_prices(tmp_path, text, "p.json")).as_of is None


@each_row(("text", "output"), [
    ("models: {m: {input: -1, output: 2}}", ":1:21: models.m.input: should be greater than or equal"),
    ("models:\n  m: {input: a, output: 2}", ':2:14: models.m.input: should be a valid number, found "a"'),
    ("models:\n  m: {input: 1}", "2:6: models.m.output: is missing"),
    ("models:\n  m: 3", "2:6: models.m: should be an object"),
    ("models: {m: {input: 1, output: 2, cached: 0.1}}", "1:35: models.m.cached: unknown key"),
    ("as_off: 2026-01-01\nmodels: {}", "1:1: as_off: unknown key"),
    ("asOf: yesterday\nmodels: {}", "1:7: asOf: should be a valid date"),
    ("models: {m: {input: 1, output: 2}, m: {input: 1, output: 2}}", "key given twice"),
    ("models: {m: {input: 1e999, output: 2}}", "models.m.input: should be a finite number"),
    ("models: {'': {input: 1, output: 2}}", "models."),
    ("asOf: 2026-01-01", "1:1: models: is missing"),
    ("- 1", "should be an object"),
    ("models: [", "not YAML"),
    ("", "the file is empty"),
    (b"\xff\xfe", "not UTF-8"),
])  # fmt: skip
def test_invalid_price_file_is_rejected_with_line_and_column(tmp_path, text, output):
    path = write_prices(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        prices.read(path)
    assert str(caught.value).startswith(path.as_posix())
    assert output in str(caught.value)


def test_unreadable_price_file_is_rejected_with_all_faults(tmp_path):
    ending = "the name of a price file ends in .json, .yaml, .yml"
    for name, text in {"nowhere.yaml": "cannot be read: No such file", ".": ending, "p.txt": ending}.items():
        with pytest.raises(UsageError, match=re.escape(text)):
            prices.read(tmp_path / name)
    path = write_prices(tmp_path, "models:\n  a: {input: -1, output: 2}\n  b: {inptu: 1, output: 2}\n")
    with pytest.raises(UsageError, match=r"(?s):2:14: .*:3:7: .*in US dollars per million tokens"):
        prices.read(path)
