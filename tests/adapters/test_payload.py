"""What foreign servers send, made safe to keep and short to show."""

import json

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from json_values import json_values
from processor_time import at_most

from ci_evals.support import payload
from ci_evals.support.redaction import Redactor

NOTHING = Redactor()


def test_non_json_values_are_replaced_and_deep_nesting_is_truncated():
    """NaN, infinities and lone surrogates would break whoever writes or validates the value later."""
    body = rb'{"a": NaN, "b": [Infinity, -Infinity, 1e999, 1.5], "\ud800": "x\udfff \ud83d\ude00"}'
    numbers = {"a": None, "b": [None, None, None, 1.5]}
    assert payload.parse(body) == numbers | {"\ufffd": "x\ufffd \N{GRINNING FACE}"}
    # A body nested deeper than any reader can follow keeps its upper part, and says so.
    depth = payload.MAX_DEPTH + 50
    value = payload.parse(b'{"text": "Hi", "deep": ' + b"[" * depth + b"]" * depth + b"}")
    assert isinstance(value, dict)
    assert value["text"] == "Hi"
    assert payload.TOO_DEEP in json.dumps(value)


texts = st.text('a\\"[{,ud8\ud83d\ude00\u200bé')
values = json_values(st.none() | st.booleans() | st.integers() | st.floats() | texts, keys=texts)


@given(values, st.booleans(), st.sampled_from([0, 1, payload.MAX_DEPTH - 2, payload.MAX_DEPTH]))
def test_parsing_payload_equals_cleaning_decoded_json(value, escaped, depth):
    text = '{"in": [' * depth + json.dumps([value, 1e300], ensure_ascii=escaped) + "]}" * depth
    for number in ("1e300", "1e999"):
        written = text.replace("1e+300", number)
        assert payload.parse(written.encode(errors="surrogatepass")) == payload.clean(json.loads(written))


@each_row(("body", "reason"), [
    (b"", "not JSON"),
    (b"<html>", "not JSON"),
    (b'{"a": ', "not JSON"),
    (b"\xff\xfe\xff", "not JSON"),
    (b"9" * 5000, "not JSON"),
    (b"[" * 90_000, "nested too deep"),
    (b'{"a": [' + b'{"b": 0},' * 50_000 + b"0]}", "JSON of more than 100,000 values"),
    (b"[" + b"[], " * 99_999 + b"[ ]]", "JSON of more than 100,000 values"),
])  # fmt: skip
def test_invalid_json_is_reported_with_its_reason(body, reason):
    with pytest.raises(ValueError, match=reason):
        payload.parse(body)


@each_row(("body", "expected"), [
    ('{"detail": "Not authenticated"}', "Not authenticated"),
    ('{"decision": "deny", "reason": "no such key"}', "no such key"),
    ('{"detail": [{"loc": ["body", "task_id"], "msg": "Field required", "type": "missing"}]}',
     "body.task_id: Field required"),
    ('{"errors": [{"loc": ["body", 0], "msg": "A"}, {"msg": "B"}]}', "body.0: A; B"),
    ('{"status_code": 400, "description": "Content moderation triggered", "message": "It was flagged."}',
     "Content moderation triggered: It was flagged."),
    ('{"error": {"code": "bad_key", "message": "Wrong", "details": [{"field": "k", "message": "m"}]}}',
     "bad_key: Wrong: k: m"),
    ('{"error": "boom"}', "boom"),
    ('"plain"', "plain"),
    ('{"other": 1}', '{"other": 1}'),
    ("<!doctype html><title>502 Bad\n Gateway &amp;</title>", "an HTML page titled '502 Bad Gateway &'"),
    ("<html><body>x", "an HTML page"),
    ("<html><title> </title>", "an HTML page"),
    ("<html><title", "an HTML page"),
    ("  \n", "an empty body"),
    ("upstream\nconnect  error", "upstream connect error"),
])  # fmt: skip
def test_error_body_of_any_form_becomes_one_short_line(body, expected):
    assert payload.error_detail(body.encode(), NOTHING) == expected


def test_payload_with_100000_values_is_parsed():
    assert payload.parse(b"[" + b"[], " * 99_998 + b"{ }]") == [[]] * 99_998 + [{}]
    text = '[{,\\"\\' * 40_000
    assert payload.parse(json.dumps([text]).encode()) == [text]
    assert payload.parse(json.dumps([text]).encode("utf-16")) == [text]


@each_row("body", [
    "<html>" + "<title>" * 200_000,
    "<html>" + "<title" * 200_000,
    " " * 1_000_000,
    "<!doctype" + " " * 1_000_000,
    '{"detail": "' + "x " * 500_000 + '"}',
    '{"detail": [' + '{"loc": ["a"], "msg": "b"},' * 30_000 + '{"msg": "c"}]}',
])  # fmt: skip
def test_long_error_body_is_truncated_in_linear_time(body):
    with at_most(loops=1500):  # where it was quadratic: minutes
        detail = payload.error_detail(body.encode(), NOTHING)
    assert len(detail) <= payload.MAX_EXCERPT + 30
    assert len(payload.error_detail(b"word " * 10_000, NOTHING)) <= payload.MAX_EXCERPT


@each_row("body", [
    '{"detail": "' + "x" * 290 + 's3cret-value-1234"}',
    '{"detail": "' + "x" * 290 + '\\u00733cret-value-1234"}',
    "x" * 290 + "s3cret-value-1234",
    "<html><title>" + "x" * 290 + "s3cret-value-1234</title>",
    "<html><title>" + "x" * 290 + "&#115;3cret-value-1234</title>",
])  # fmt: skip
def test_secret_at_truncation_point_of_error_body_is_fully_masked(body):
    error = payload.error_detail(body.encode(), Redactor(values=["s3cret-value-1234"]))
    assert "xx***" in error
    assert "3cre" not in error
