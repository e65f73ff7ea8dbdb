"""No secret leaves the program, in whatever form it comes back."""

import html
import json
import random
import re
import string
from base64 import b64decode, b64encode, encodebytes, urlsafe_b64encode
from urllib.parse import quote, quote_plus

import builders as build
from each_row import each_row
from hypothesis import example, given
from hypothesis import strategies as st
from processor_time import at_most
from pydantic import JsonValue

from ci_evals.domain.base import Record
from ci_evals.domain.checks.rubric import Rubric
from ci_evals.domain.transcript import EndState, Turns
from ci_evals.domain.verdict import Outcome
from ci_evals.support import dataclass_json
from ci_evals.support.redaction import MASK, Redactor
from ci_evals.support.text import bare, visible

KEY = 'sk-"pröj"/+=&\\n(!b6?)*\'-123'

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


HEADERS = [
    encode(before + KEY.encode() + after).decode()
    for encode in (b64encode, urlsafe_b64encode)
    for before in (b"", b"u", b"us", b"user:")
    for after in (b"", b":", b":x")
]


@each_row(
    "form",
    [
        KEY,
        json.dumps(KEY)[1:-1],
        json.dumps(KEY, ensure_ascii=False)[1:-1],
        json.dumps(KEY)[1:-1].replace("/", "\\/"),
        json.dumps(json.dumps(KEY))[3:-3],
        json.dumps(KEY)[1:-1].replace("&", "\\u0026").replace("+", "\\u002B").replace("'", "\\u0027"),
        quote(KEY),
        quote(KEY, safe=""),
        quote(KEY, safe="!*'()"),
        quote_plus(KEY),
        re.sub("%..", lambda found: found[0].lower(), quote(KEY, safe="")),
        html.escape(KEY),
        html.escape(html.escape(KEY)),
        KEY.replace("&", "&#38;").replace('"', "&#x22;").replace("'", "&apos;").replace("ö", "&ouml;"),
        quote(quote(KEY)),
        quote_plus(quote_plus(quote_plus(KEY))),
        quote(KEY, encoding="latin-1"),
        repr(KEY)[1:-1],
        ascii(KEY)[1:-1],
        repr(KEY.encode())[2:-1],
        KEY.replace("'", "'\"'\"'"),
        KEY.replace("'", "'\\''"),
        KEY.encode().hex(),
        KEY.encode().hex().upper(),
        KEY.encode().hex(" "),
        " ".join(KEY),
        KEY[:9] + "\n        " + KEY[9:],
    ],
)
def test_key_is_redacted_in_every_encoding(form):
    assert Redactor(keys=[KEY]).text(f"401 for {form}, sorry") == f"401 for {MASK}, sorry"


@each_row("form", [*HEADERS, *(quote(form, safe="") for form in HEADERS)])
def test_key_is_redacted_in_basic_auth_header(form):
    """Wherever in the groups of three bytes of base64 the key begins."""
    shown = Redactor(keys=[KEY]).text(f"401 for {form}, sorry")
    assert MASK in shown
    standing = shown.removeprefix("401 for ").removesuffix(", sorry").replace(MASK, "").replace("%3D", "")
    assert len(standing) <= len("dXNlcjp" + "6eA==")


@each_row("key", [KEY, "tsd7-ö+/=&%<>'\"\\ " + "x9Kq" * 40 + "\n"])
@each_row(
    "written",
    [
        lambda key: b64encode(json.dumps({"apiKey": key}).encode()).decode(),
        lambda key: b64encode(json.dumps({"apiKey": key}, ensure_ascii=False).encode()).decode(),
        lambda key: b64encode(f"key={quote_plus(key)}&x=1".encode()).decode(),
        lambda key: encodebytes(b"Signed by somebody whose name is long: " + key.encode()).decode(),
        lambda key: json.dumps(encodebytes(b"user:" + key.encode()).decode()),
        lambda key: b64encode(b"user:" + key.encode("latin-1")).decode(),
    ],
)
def test_key_is_redacted_in_base64_of_encoded_texts(key, written):
    for key_sent in (key, key.strip()):
        shown = Redactor(keys=[key]).text(written(key_sent))
        assert MASK in shown
        for clear in re.split("[^A-Za-z0-9+/]+", "".join(shown.replace("\\n", "").split())):
            for at in range(4):
                result = b64decode(clear[at : at + (len(clear) - at) // 4 * 4]).decode("latin-1")
                assert not any(key[place : place + 4] in result for place in range(len(key.strip()) - 4))


INVISIBLE = "👩\u200d💻 ❤\ufe0f \u200fשלום"
DANA = "Dana  Miller\nOslo"
PADDED = ["a       ", "7\n\n\n\n\n\n\n\n"]
"""Without their padding these are too short to be secrets."""


@each_row(
    ("keys", "values", "text", "redacted"),
    [
        # A line end within it, escaped as in JSON within a string
        (["sk-abc-123456"], [], "sk-abc-\\n  123456 no", f"{MASK} no"),
        (["sk-abc-123456"], [], "sk-abc\\\\r\\\\n-123456 no", f"{MASK} no"),
        (["sk-abc-123456"], [], "sk-abc-123456 no", f"{MASK} no"),
        # Several words with any spacing: reports fold white space
        ([], [DANA], "to Dana  Miller\nOslo.", f"to {MASK}."),
        ([], [DANA], "to Dana\n\tMiller Oslo.", f"to {MASK}."),
        ([], [DANA], "to Dana+Miller%0AOslo.", f"to {MASK}."),
        ([], [DANA], "to Dana Miller\\r\\nOslo.", f"to {MASK}."),
        # One secret that overlaps another, and one within another
        (["one-secret-two", "two-secret-three"], [], "a one-secret-two-secret-three", "a ***"),
        (["secret-key"], ["secret-key-two"], "secret-key-two", MASK),
        # Read from a file with its last line end, sent without it
        (["sk-12345678\n"], [], "no sk-12345678 here", f"no {MASK} here"),
        # Invisible characters of a text without a secret are the agent's own
        (["API_KEY_a3f09b62"], [], INVISIBLE, INVISIBLE),
        # Short values and blank keys would blot out every report
        ([], PADDED, "an agent asks, 17 of 27", "an agent asks, 17 of 27"),
        (["", " ", "key"], ["short", "1234567"], "short key 1234567", "short key 1234567"),
        ([], [], "anything", "anything"),
    ],
)
def test_secrets_in_any_spelling_are_redacted_and_other_text_is_kept(keys, values, text, redacted):
    assert Redactor(keys=keys, values=values).text(text) == redacted
    assert not Redactor(values=PADDED).values


def test_json_text_contains_no_key_after_parsing():
    """A reader of JSON sees the characters that an escape (`\\u200b`) hides; other texts stay as they are."""
    redactor = Redactor(keys=["sk-abc-123456"])
    hidden = "\u200b".join("it is sk-abc-123456")
    message = json.dumps({"reasoning": hidden, "of": ["sk-abc-123456"]}, indent=1)
    assert json.loads(redactor.text_to_read(message)) == {"reasoning": f"it is {MASK}", "of": [MASK]}
    for text in ('{"a" : 1.0,\n"b": "\\u200bx"}', "no JSON", "[" * 100_000):
        assert redactor.text_to_read(text) == text


def test_redaction_time_per_megabyte_is_small():
    """Some 40 ms a megabyte for twenty secrets."""
    draw = random.Random(7)
    keys = ["".join(draw.choices(string.ascii_letters, k=40)) for _ in range(16)]
    redactor = Redactor(keys=[*keys, "a!b@c#d$e%f^g&", "4005 0060 1234", KEY, "東京都千代田区一丁目"])
    redactor.text("built when it is first asked")
    words = ["the", "agent", "said:", "order", "4005", "will", "arrive", "on", "Monday,", "please", "confirm"]
    text = " ".join(draw.choices(words, k=400_000))
    with at_most(loops=len(text) // 10_000):
        assert redactor.text(text) == text
        assert redactor.text(text + keys[3]) == text + MASK


REPEATED = ["s", 'sk-"pr\u00f6j', "sk" + " " * 90, "sk-" + "\\n" * 90, "%25", "&amp;", "\\"]


@each_row("unit", [*REPEATED, "\x1b]", "\x1b[", "c2st", "73"])
def test_repetitive_text_does_not_slow_redaction(unit):
    redactor = Redactor(keys=[KEY, "sssssssssssssss", "sk" * 20])
    redactor.text(KEY)
    with at_most(loops=600):
        redactor.text(unit * (500_000 // len(unit)))


@each_row(
    "echo",
    [
        "API_KEY_\u200ba3f09b62",
        "\x1b[31mAPI_\x1b[0mKEY_a3f09b62",
        "API_\x1b]0;x\x07KEY_\ufe0fa3f0\U000e00419b62",
        "API_\x1b[API_KEY_a3f09b62mKEY_a3f09b62",
        "\ufeffAPI_KEY_a3f09b62 and API_\xadKEY_a3f09b62",
    ],
)
def test_key_with_invisible_characters_is_redacted(echo):
    """Reports remove invisible characters and terminal escapes, which would lay the key open."""
    shown = Redactor(keys=["API_KEY_a3f09b62"]).text(f"your key: {echo}!")
    assert MASK in shown
    for text in (shown, bare(shown)):
        assert "KEY_a3f0" not in text
    assert Redactor(keys=["\ufeffAPI_KEY_a3f09b62"]).text("my API_KEY_a3f09b62") == f"my {MASK}"


def test_redactor_of_only_keys_keeps_values():
    only_keys = Redactor(keys=["sk-12345678"], values=["customer-77"]).only_keys
    assert only_keys.text("customer-77 with sk-12345678") == f"customer-77 with {MASK}"


def test_model_is_redacted_in_lists_keys_of_objects_and_numbers():
    redactor = Redactor(keys=["sk-12345678"], values=["40050060"])
    turn = build.turn(
        agent="your key is sk-12345678",
        params={"sk-12345678": ["x", {"account": 40050060, "share": 0.5, "ok": True}]},
        rules=("rule sk-12345678",), trace={"number": -40050060, "many": [140050060, 1]}, raw="sk-12345678",
    )  # fmt: skip
    clean = redactor.model(turn)
    assert clean.agent == f"your key is {MASK}"
    assert clean.params == {MASK: ["x", {"account": MASK, "share": 0.5, "ok": True}]}
    assert clean.rules == (f"rule {MASK}",)
    assert clean.trace == {"number": MASK, "many": [MASK, 1]}
    assert clean.raw == MASK
    assert turn.agent == "your key is sk-12345678"


def test_records_in_dict_with_number_keys_are_redacted():
    level = {"score": 1, "name": "of sk-12345678"}
    fields = {"passAt": 0.5, "dimensions": [{"name": "tact", "levels": [level]}]}
    result = build.test_result(rubrics={1: dataclass_json.from_value(Rubric, fields)})
    clean = Redactor(keys=["sk-12345678"]).model(result).rubrics[1]
    assert (clean.dimensions[0].levels[0].name, clean.pass_at) == (f"of {MASK}", 0.5)


def test_secret_equal_to_enum_value_leaves_results_readable():
    results = build.results()
    redacted = Redactor(keys=["passed", "completed", "strict", "fixed"], values=["completed"]).model(results)
    again = dataclass_json.from_json(type(results), dataclass_json.to_json(redacted))
    assert again == redacted
    trial = again.suites[0].tests[0].trials[0]
    assert (trial.status, trial.findings[0].outcome) == (EndState.COMPLETED, Outcome.PASSED)
    assert again.counts == results.counts


class Holder(Record):
    value: JsonValue


@given(json_values, st.text(min_size=8, alphabet='ab"\\/é\U0001f600 1'), st.text(), st.text())
def test_key_at_any_place_in_json_is_redacted(value, key, before, after):
    if len(key.strip()) < 8:
        return
    planted = {"a": [value, before + key + after, {before + key: value}], "b": json.dumps({"k": key})}
    redactor = Redactor(keys=[key])
    for clean in (redactor.json(planted), redactor.model(Holder(value=planted)).value):
        for text in strings(clean):
            assert key.strip() not in text
            assert json.dumps(key.strip())[1:-1] not in text


SECRETS = (KEY, "40050060", "API_KEY_a3f09b62", "東京都千代田区一丁目", "Dana Miller\nOslo")
PIECES = [
    *(part for secret in SECRETS for part in (secret, secret[:5], secret[5:], json.dumps(secret)[1:-1])),
    *(b64encode(KEY.encode()).decode(), KEY.encode().hex(), "API_KEY_", "\u200ba3f0", "9b62", "x" * 40, ""),
    *("\x1b]", "\x1b[", "\x07", "\x9b", "m", "\\", "\\n", '"', "\n", "\r", " ", "\xa0", "é", "\ufe0f"),
    "\ud83d",
]
pieced = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
pieced_values = st.recursive(
    pieced | st.sampled_from([None, True, 40050060, -40050060.5, 0.5, 140050060, 7]),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(pieced, inner, max_size=4),
    max_leaves=12,
)


@given(pieced_values)
# An escape must not swallow the beginning of the text behind it, or all of it up to the next.
@example(["\x1b]", "API_KEY_\u200ba3f09b62", "\x07"])
@example(["\x1b[", "API_KEY_\u200ba3f09b62"])
@example(["\x9b", {"0": "API_\u200bKEY_a3f09b62"}])
@example({"\x1b ": ["\ud83d", "API_KEY_\u200ba3f09b62", "\\"]})
def test_redacting_json_as_a_whole_equals_redacting_each_string(value):
    """Whatever stands beside it: a secret in any form, half of one, escapes, line ends, what nobody sees."""
    redactor = Redactor(keys=SECRETS[:3], values=SECRETS[3:])
    clean = text_by_text(redactor, value)
    assert redactor.json(value) == clean
    assert redactor.model(Pair(one=[value], other=([value], 7))) == Pair(one=[clean], other=([clean], 7))
    turns = Turns([build.turn(trace=[value]), build.turn(2, raw=[value])])
    cleaned = Turns([build.turn(trace=[clean]), build.turn(2, raw=[clean])])
    assert redactor.model(Talk(turns=turns)).turns == cleaned


def test_json_with_more_strings_than_one_batch_is_redacted():
    redactor = Redactor(keys=["sk-12345678"])
    many = [["no key here"] * 15_000, ["sk-12345678"], ["no key here"] * 15_000]
    assert redactor.json(many) == [many[0], [MASK], many[2]]
    assert redactor.model(Pair(one=many, other=(many,))).other == ([many[0], [MASK], many[2]],)


class Talk(Record):
    """Turns, which are searched as the JSON that they are kept as."""

    turns: Turns


class Pair(Record):
    """JSON in a field, and JSON in one of our own sequences."""

    one: object
    other: tuple[object, ...]


def text_by_text(redactor, value):
    """A JSON value in which every text, name and number was searched alone."""
    match value:
        case str():
            return redactor.text(value)
        case dict():
            return {redactor.text(key): text_by_text(redactor, item) for key, item in value.items()}
        case list():
            return [text_by_text(redactor, item) for item in value]
        case bool() | None:
            return value
        case _:
            return value if redactor.text(repr(value)) == repr(value) else MASK


NOTHING = st.text(st.sampled_from("\u200b\xad\ufe0f\x1b[]0m;\x07\x9b\x85\x00\U000e0041"), max_size=4)


@given(st.lists(NOTHING, min_size=16, max_size=16), NOTHING)
def test_report_sanitizer_does_not_reveal_redacted_key(gaps, before):
    key = "API_KEY_a3f09b62"
    echo = before + "".join(letter + gap for letter, gap in zip(key, gaps, strict=True)) + key
    assert key not in visible(Redactor(keys=[key]).text(echo))


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


INSTALLATION_TOKEN = "ghs_" + ".".join(("eyJhbGciOiJSUzI1NiJ9", "aB3-_x9Q" * 30, "Zk7_-pL2" * 32))


@each_row(
    "written",
    [
        INSTALLATION_TOKEN,
        f"https://x-access-token:{INSTALLATION_TOKEN}@github.com/acme/shop.git",
        json.dumps({"authorization": f"Bearer {INSTALLATION_TOKEN}"}),
        quote(INSTALLATION_TOKEN, safe=""),
        "\n".join(INSTALLATION_TOKEN[start : start + 76] for start in range(0, len(INSTALLATION_TOKEN), 76)),
        b64encode(INSTALLATION_TOKEN.encode()).decode(),
        INSTALLATION_TOKEN.encode().hex(),
    ],
    ids=["itself", "address", "JSON", "form", "wrapped", "base64", "hexadecimal"],
)
def test_installation_token_of_520_characters_is_redacted(written):
    assert len(INSTALLATION_TOKEN) > 510
    shown = Redactor(keys=[INSTALLATION_TOKEN]).text(f"before {written} after")
    assert MASK in shown
    parts = (INSTALLATION_TOKEN[:40], INSTALLATION_TOKEN[-40:], written[-40:-8])
    assert not [part for part in parts if part in shown]
