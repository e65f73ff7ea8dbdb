"""No secret leaves the program, in whatever form it comes back."""

import json
from base64 import b64encode
from urllib.parse import quote, quote_plus

import builders as build
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from ci_evals.domain.base import Record
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Outcome
from ci_evals.redaction import MASK, Redactor

KEY = 'sk-"pröj"/+=&\\n-123'

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    "form",
    [
        KEY,
        json.dumps(KEY)[1:-1],
        json.dumps(KEY, ensure_ascii=False)[1:-1],
        json.dumps(KEY)[1:-1].replace("/", "\\/"),
        quote(KEY),
        quote(KEY, safe=""),
        quote_plus(KEY),
        b64encode(KEY.encode()).decode(),
    ],
)
def test_a_key_is_hidden_in_every_form_it_is_echoed_in(form):
    """As it is, in a JSON string, in an address, and in base 64."""
    shown = Redactor(keys=[KEY]).text(f"401 for {form}, sorry")
    assert shown.rstrip("=").replace("=,", ",") == f"401 for {MASK}, sorry"


def test_a_key_is_hidden_without_the_line_end_of_its_file():
    """A secret that was read with its last line end is sent, and echoed, without it."""
    assert Redactor(keys=["sk-12345678\n"]).text("no sk-12345678 here") == f"no {MASK} here"


def test_the_longer_of_two_secrets_goes_first():
    """No tail of a secret stays because another is its beginning."""
    assert Redactor(keys=["secret-key"], values=["secret-key-two"]).text("secret-key-two") == MASK


def test_short_values_and_blank_keys_are_left_alone():
    """`a` or the empty string as a secret would blot out every report."""
    redactor = Redactor(keys=["", " ", "key"], values=["short", "1234567"])
    assert redactor.text("short key 1234567") == "short key 1234567"
    assert Redactor().text("anything") == "anything"


def test_values_may_be_told_to_the_agent_and_keys_may_not():
    """The customer's number from the environment is the agent's to know; the key is nobody's."""
    redactor = Redactor(keys=["sk-12345678"], values=["customer-77"])
    assert redactor.only_keys.text("customer-77 with sk-12345678") == f"customer-77 with {MASK}"


def test_a_model_is_redacted_to_its_leaves():
    """In lists, keys, nested values and numbers of a trace; what is no free text keeps its type."""
    redactor = Redactor(keys=["sk-12345678"], values=["40050060"])
    exchange = build.exchange(
        agent="your key is sk-12345678",
        params={"sk-12345678": ["x", {"account": 40050060, "share": 0.5, "ok": True}]},
        rules=("rule sk-12345678",),
        trace={"number": -40050060, "many": [140050060, 1]},
        raw="sk-12345678",
    )
    clean = redactor.model(exchange)
    assert clean.agent == f"your key is {MASK}"
    assert clean.params == {MASK: ["x", {"account": MASK, "share": 0.5, "ok": True}]}
    assert clean.rules == (f"rule {MASK}",)
    assert clean.trace == {"number": MASK, "many": [MASK, 1]}
    assert clean.raw == MASK
    assert exchange.agent == "your key is sk-12345678"


def test_closed_sets_and_counts_survive_any_secret():
    """A secret that spells an outcome must not make the results file unreadable."""
    results = build.results()
    redacted = Redactor(keys=["passed", "completed", "strict", "fixed"], values=["completed"]).model(results)
    again = type(results).model_validate_json(redacted.model_dump_json(by_alias=True))
    assert again == redacted
    trial = again.suites[0].tests[0].trials[0]
    assert (trial.status, trial.findings[0].outcome) == (EndState.COMPLETED, Outcome.PASSED)
    assert again.counts == results.counts


class Holder(Record):
    """Any JSON."""

    value: JsonValue


@given(json_values, st.text(min_size=8, alphabet='ab"\\/é\U0001f600 1'), st.text(), st.text())
def test_no_planted_key_is_ever_in_the_dump(value, key, before, after):
    """Wherever it stands, the written file has it in no form."""
    if len(key.strip()) < 8:
        return
    planted = {"a": [value, before + key + after, {before + key: value}], "b": json.dumps({"k": key})}
    redactor = Redactor(keys=[key])
    for clean in (redactor.json(planted), redactor.model(Holder(value=planted)).value):
        for text in strings(clean):
            assert key.strip() not in text
            assert json.dumps(key.strip())[1:-1] not in text


def strings(value):
    """Every string of a JSON value, keys included."""
    match value:
        case str():
            yield value
        case dict():
            for key, item in value.items():
                yield from (key, *strings(item))
        case list():
            for item in value:
                yield from strings(item)
