"""Texts in which nothing can be seen, and `{{names}}` in what an author wrote."""

from urllib.parse import quote

import pytest
from fakes import reply
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.conversation.converse import MAX_CHARACTERS, bounded
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import PlannedTurn
from ci_evals.domain.transcript import ToolCall, ToolStatus
from ci_evals.support import placeholders
from ci_evals.support.text import is_blank

BLANK = ["\u200b", "\u2060\ufeff", "\u00ad", "\x07", "\u2800", "\u3164", "\u3000\u200d", "\u202e\u202c"]
BLANK += ["\U000e0041", "\ufe0f"]


def test_only_text_without_a_visible_character_is_blank():
    for text in ("", " \n\t", *BLANK):
        assert is_blank(text), ascii(text)
    for text in ("a", "\u200b.", "\U0001f44d\ufe0f", "\u4f60", "\u0e2a\u0e27", "\ufffd", "\ue000"):
        assert not is_blank(text), ascii(text)


@given(st.text(st.sampled_from("".join(BLANK)), min_size=1))
def test_blank_text_is_refused_as_user_message_and_reply(text):
    with pytest.raises(ValueError, match=r"visible|pattern"):
        PlannedTurn(user=text)
    if text.strip():
        with pytest.raises(AgentError, match="no visible character"):
            bounded(reply(text))


def test_size_limit_applies_to_evidence_with_lone_surrogates():
    """JSON can carry half of a surrogate pair into a call's arguments."""
    calls = (ToolCall(name="refund", arguments={"note": "\ud83d"}, status=ToolStatus.OK),)
    assert bounded(reply("Done.").model_copy(update={"tool_calls": calls})).tool_calls == calls
    long = (ToolCall(name="refund", arguments={"note": "\ud83d" * MAX_CHARACTERS}),)
    with pytest.raises(AgentError, match="longer than"):
        bounded(reply("Done.").model_copy(update={"tool_calls": long}))


FACTS = {"message": 'Say "{{key}}"', "user": {"plan": "Pro", "pets": ["cat"]}, "days": 3, "none": None}


def lookup(name):
    return placeholders.member(FACTS, name)


def test_string_with_only_a_placeholder_becomes_its_typed_value():
    template = {"a": "{{user}}", "b": ["{{ days }}", "{{none}}"], "c": 7, "{{days}}": True}
    filled = {"a": {"plan": "Pro", "pets": ["cat"]}, "b": [3, None], "c": 7, "{{days}}": True}
    assert placeholders.filled(template, lookup) == filled


def test_placeholder_within_text_is_replaced_once_by_text_or_json():
    result = placeholders.text("{{days}} days, {{user.plan}}, {{user.pets}}, {{none}}: {{message}}", lookup)
    assert result == '3 days, Pro, ["cat"], : Say "{{key}}"'
    assert placeholders.text("/{{message}}", lookup, quote) == "/Say%20%22%7B%7Bkey%7D%7D%22"


def test_placeholders_of_a_template_address_parts_by_name_or_number():
    assert placeholders.member(FACTS, "user.pets.0") == "cat"
    for path in ("user.pets.1", "user.pets.x", "user.plan.name", "nobody", ""):
        assert placeholders.member(FACTS, path) is None
    template = {"{{no}}": "{{a}} {{ b }}", "list": ["{{c.d}}", 1, None], "odd": "{{ {x} }} {{}} {{"}
    assert [*placeholders.names(template)] == ["a", "b", "c.d", ""]
