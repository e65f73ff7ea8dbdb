"""Text checks and typography: docs/strict-checks.md promises what is folded."""

import unicodedata

import pytest
from each_row import each_row
from test_strict import decide, outcome

from ci_evals.domain.transcript import ToolCall

NFD = unicodedata.normalize("NFD", "Das Menü enthält Allergène.")
EQUIVALENT = {
    "Menü": [NFD],
    "arrive on Friday": [
        *("arrive on\u00a0Friday", "arrive on\nFriday", "arrive on\r\n\r\n  Friday", "arrive  on\tFriday"),
        *("arrive\u2009on Friday", "arrive\u2800on\u3164Friday", "arrive\u3000on\u2028Friday"),
        "arrive&nbsp;on Friday",
    ],
    "50 %": ["50\u202f% off"],
    "30-day": ["a 30\u2011day refund"],
    "30-30": ["a 30\u201330 split"],
    "-5 °C": ["it is \u22125 °C"],
    "don't refund": ["We don\u2019t refund.", "We don&#x27;t refund.", "We don\u00b4t refund."],
    "don’t refund": ["We don't refund."],
    '"No"': ["\u201eNo\u201c, he said", "\u00abNo\u00bb, he said"],
    "hunter2": [
        "\uff48\uff55\uff4e\uff54\uff45\uff52\uff12",
        "\U0001d421\U0001d42e\U0001d427\U0001d42d\U0001d41e\U0001d42b2",
        *("\u24d7\u24e4\u24dd\u24e3\u24d4\u24e12", "hun\u00adter2", "hun\u200b\u200dter2", "hun\u200cter2"),
        *("hun\u034fter2", "hun\u180eter2", "hun\u2062ter2", "hun\ufe0fter2", "hun\U000e0101ter2"),
        *("hun\U000e0074ter2", "hun\u2066ter\u20692", "hun\u200eter2", "hunt**er2**", "`hunt`**er**2"),
        *("h&#117;nter2", "h&#x75;nter2", "hun\u3164ter2"),
    ],
    "office refill": ["the o\ufb03ce re\ufb01ll"],
    "Please wait...": ["Please wait\u2026"],
    "Please wait…": ["Please wait..."],
    "hunter 2": ["the ***hunter*** 2"],
    "No refund, ever": ["__No__ refund, *ever*"],
    "user_id": [r"user\_id"],
    "Fish & Chips": ["Fish &amp; Chips"],
    "3 days": ["3\ufe0f\u20e3 days"],
    "x2 + y2": ["x\u00b2 + y\u00b2"],
}
"""Texts that readers take for the other: positive and negative checks find it."""

DISGUISED = {
    "hunter2": [
        *("hunt\u0435r2", "hυnt\u0435r2", "\u04bbunter2", "hunтer2", "\u029cᴜɴᴛᴇʀ2", "hunter\u0662"),
        "h\u0336u\u0336n\u0336t\u0336e\u0336r\u03362\u0336",
        *("h\u0337\u030du\u0334n\u0316t\u033fe\u0338r\u0301\u0302\u0303\u03162", "~~hunt~~er2"),
        *("hunt*er*2", "hunt**er2", "\u202e2retnuh\u202c", "the password: \u202e2retnuh", "hun\u2800ter2"),
        *("hun\u200ater2", "hun\u202fter2", "h&amp;#117;nter2", "hunt<b>er2</b>", "hunt<!-- x -->er2"),
        *("hunt[er2](https://example.com)", "".join(chr(0xE0000 + ord(letter)) for letter in "hunter2")),
        *("hunt\u0435**r2**", "hunt&#1077;r2"),
    ],
    "Hunter2": ["\U0001f177unter2", "\U0001f157unter2"],
    "HUNT": ["\U0001f1ed\U0001f1fa\U0001f1f3\U0001f1f9"],
    "passI": ["pass\u0406"],
    "passl": ["pass\u0406"],
    "pass1": ["pass\u0406"],
    "pass0": ["pass\u041e"],
    "password": ["passw\u043erd"],
    "pin": ["p\u0131n"],
    "пapoль": ["пароль"],
    "arrive on Friday": ["arrive on<br>Friday", "arrive on\n> Friday"],
}
"""Texts that could be read so, which is enough for a negative check, and not for a positive one."""

DIFFERENT = {
    "costs $5¹": ["costs $51"],
    "costs $51": ["costs $5¹"],
    "51": ["5\u2460 items"],
    "21/2": ["2½ hours"],
    "2  3": ["2 * 3 * 4"],
    "23": ["2*3"],
    "userid": ["user_id"],
    "Straße": ["Strasse"],
    "resumé": ["resume"],
    "schon": ["schön"],
    "for": ["før"],
    "modern": ["modem"],
    "100": ["loo"],
    "refund": ["Refund"],
    "a = b": ["a \u2260 b"],
}
"""Texts that are not the same to a reader: neither kind of check finds the other."""

KEPT = [
    ("Total: 5", "**Total**", "failed"),
    ("**Total**: 5", "**Total**", "passed"),
    *[("json {}", "```json", "failed"), ("```json\n{}\n```", "```json", "passed")],
    ("Fish & Chips", "&amp;", "failed"),
    ("Fish &amp; Chips", "&amp;", "passed"),
    *[("&lt;b&gt;", "<b>", "failed"), ("userid", "user_id", "failed"), ("**user_id**", "user_id", "passed")],
    *[("anything", "\u200b", "failed"), ("one line", "\n", "failed")],
]


def pairs(replies: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Each reply with the text that is looked for in it."""
    return [(reply, text) for text, written in replies.items() for reply in written]


def outcomes_of_text_and_pattern(kind: str, value: str, text: str, **fields) -> set[str]:
    """The outcomes of a check as text and as a pattern."""
    pattern = "".join(f"\\{sign}" if sign in "*.?+$()[]{}|^\\" else sign for sign in text)
    literal, by_pattern = {"text": text}, {"pattern": pattern}
    names = ("not_contains", "not_regex") if kind == "negative" else ("contains", "regex")
    checks = zip(names, (literal, by_pattern), strict=True)
    return {outcome(decide(name, {"agent": value}, **each, **fields)) for name, each in checks}


@each_row(("reply", "text"), pairs(EQUIVALENT), ids=ascii)
def test_typographic_variants_are_found_by_text_and_pattern(reply, text):
    assert outcomes_of_text_and_pattern("positive", reply, text) == {"passed"}
    assert outcomes_of_text_and_pattern("negative", reply, text) == {"failed"}


@each_row(("reply", "text"), pairs(DISGUISED), ids=ascii)
def test_disguised_text_fails_negative_and_positive_checks_unless_raw(reply, text):
    assert outcomes_of_text_and_pattern("negative", reply, text) == {"failed"}
    assert outcomes_of_text_and_pattern("positive", reply, text) == {"failed"}
    assert outcomes_of_text_and_pattern("negative", reply, text, raw=True) == {"passed"}


@each_row(("reply", "text"), pairs(DIFFERENT), ids=ascii)
def test_different_text_is_not_found(reply, text):
    assert outcomes_of_text_and_pattern("positive", reply, text) == {"failed"}
    if not set("¹½①") & set(reply + text):
        assert outcome(decide("not_contains", {"agent": reply}, text=text)) == "passed"


@each_row(("value", "text", "wanted"), KEPT, ids=ascii)
def test_markup_in_expected_text_is_matched_literally(value, text, wanted):
    assert outcome(decide("contains", {"agent": value}, text=text)) == wanted
    assert outcome(decide("not_contains", {"agent": value}, text=text)) != wanted


@each_row(("pattern", "value"), [
    *[("don’t", "don't"), (r"don\u2019t", "don’t"), (unicodedata.normalize("NFD", "Menü"), "Menü")],
    *[(unicodedata.normalize("NFD", "Menü"), NFD), ("on\u00a0Friday", "on Friday")],
    *[(r"on\xa0Friday", "on\u00a0Friday"), (r"on\nFriday", "on\nFriday")],
    *[(r"on\s+Friday", "on\n\nFriday"), ("on  Friday", "on  Friday"), ("30–day", "30-day")],
    *[(r"^[a–z]$", "-"), ("(?i)REFILL", "re\ufb01ll"), ("wait…+", "wait......")],
    *[(r"^hunter2$", "**hunter2**"), (r"(?<=a)\p{L}(?:b|c)[\]x]", "aéb]")],
    (r"(?x) a  b # comment", "ab"),
    (r"a\u200bb", "a\u200bb"),
], ids=ascii)  # fmt: skip
def test_patterns_and_replies_are_normalized_alike(pattern, value):
    assert outcome(decide("regex", {"agent": value}, pattern=pattern)) == "passed"
    assert outcome(decide("not_regex", {"agent": value}, pattern=pattern)) == "failed"


RAW = {r"(?m)^- ": "Items:\n- one", r"\n\n": "a\n\nb", "  ": "a  b", r"\u00a0": "50\u00a0%", "’": "don’t"}


def test_pattern_about_typography_is_found_in_the_raw_text():
    for pattern, reply in RAW.items():
        assert outcome(decide("not_regex", {"agent": reply}, pattern=pattern)) == "failed", pattern
        assert outcome(decide("regex", {"agent": reply}, pattern=pattern, raw=True)) == "passed", pattern


def test_normalized_text_is_searched_without_trailing_newline_and_raw_is_suggested():
    verdict = decide("regex", {"agent": "Items:\n- one"}, pattern="(?m)^- ")
    assert outcome(verdict) == "failed"
    assert "set raw: true" in verdict.reason
    for reply in ("hunt**er2**", "hunt\u00ader2", "hun&#116;er2", "x\nhunter2"):
        assert outcome(decide("regex", {"agent": reply}, pattern="^(?!.*hunter2)")) == "failed"
    for pattern, reply in (
        (r"(?s)^(?!.*Источники)", "Источники: a"),
        (r"(?s)^(?!.*\*\*Total\*\*)", "**Total**: 5"),
        (r"(?s)^(?!.*<result>)", "<result>5</result>"),
        (r"(?s)^(?!.*&amp;)", "Fish &amp; Chips"),
        (r"(?s)^(?!.*user_id)", "`user_id`"),
        (r"(?s)^(?!.*Grüße)", "Viele Grüße"),
    ):
        assert outcome(decide("not_regex", {"agent": reply}, pattern=pattern)) == "passed"
    assert outcome(decide("not_regex", {"agent": "hunt**er2**"}, pattern=r"\*{3}|hunter2")) == "failed"
    for newline in ("\n", "\r\n"):
        assert outcome(decide("contains", {"agent": "hunter2."}, text=f"hunter2{newline}")) == "passed"
        assert outcome(decide("not_contains", {"agent": "hunter2."}, text=f"hunter2{newline}")) == "failed"


@each_row("name", ["re\u200bfund", "\uff52efund", "refund\u00ad", "\u202arefund"], ids=ascii)
def test_invisible_characters_do_not_change_names(name):
    for kind, reply, fields, wanted in (
        ("tool_called", calls_of(name), {"toolName": "refund"}, "passed"),
        ("tool_called", calls_of(name), {"toolName": "refund", "times": 0}, "failed"),
        ("max_tool_calls", calls_of(name), {"toolName": "refund", "calls": 0}, "failed"),
        ("tool_sequence", calls_of(name), {"tools": ["refund"]}, "passed"),
        ("tool_not_used", {"workflows": (name,)}, {"toolName": "refund"}, "failed"),
        ("rule_not_triggered", {"rules": (name,)}, {"ruleCode": "refund"}, "failed"),
        ("param_not_exists", {"params": {name: 1}}, {"paramName": "refund"}, "failed"),
        ("param_equals", {"params": {name: 1}}, {"paramName": "refund", "paramValue": 1}, "passed"),
    ):
        assert outcome(decide(kind, reply, **fields)) == wanted, kind


def calls_of(name: str) -> dict:
    return {"tool_calls": (ToolCall(name=name, arguments={}),)}


def test_tool_name_with_a_prefix_does_not_match_and_the_reason_notes_that_name():
    for text, is_noted in (
        *[("functions.refund", True), ("mcp__shop__refund", True), ("shop/refund", True)],
        *[("default_api:refund", True), ("mcp__shop__refund_all", False), ("no_refund", False)],
        ("Refund", False),
    ):
        call = calls_of(text)
        for kind, fields, wanted in (
            ("tool_called", {"toolName": "refund"}, "failed"),
            ("tool_called", {"toolName": "refund", "times": 0}, "passed"),
            ("max_tool_calls", {"toolName": "refund", "calls": 0}, "passed"),
            ("tool_sequence", {"tools": ["refund"]}, "failed"),
        ):
            verdict = decide(kind, call, **fields)
            assert outcome(verdict) == wanted
            assert (f"{text} is another name than refund" in verdict.reason) is is_noted, kind
        verdict = decide("tool_not_used", {"workflows": (text,)}, toolName="refund")
        assert ("another name" in verdict.reason) is is_noted


@pytest.mark.slow  # it computes
@each_row(
    "part",
    ["**a ", "<!--", "[[[[", "\\", "`", "&#1", "_a ", "\u0301", "\u202e", "<b", "\u3164 ", "*`_~"],
    ids=ascii,
)
def test_text_normalization_time_is_linear_in_reply_length(part):
    """Each has 120,000 characters: a quadratic step would take minutes."""
    result = part * (120_000 // len(part))
    assert outcome(decide("not_contains", {"agent": result}, text="hunter2")) == "passed"
