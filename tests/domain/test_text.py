"""Texts in which nothing can be seen."""

import pytest
from each_row import each_row
from fakes import reply
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.conversation.converse import MAX_CHARACTERS, bounded
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import PlannedTurn
from ci_evals.domain.transcript import ToolCall, ToolStatus
from ci_evals.support.text import is_blank

BLANK = ["\u200b", "\u2060\ufeff", "\u00ad", "\x07", "\u2800", "\u3164", "\u3000\u200d", "\u202e\u202c"]
BLANK += ["\U000e0041", "\ufe0f"]


@each_row("text", ["", " \n\t", *BLANK], ids=ascii)
def test_invisible_text_is_blank(text):
    assert is_blank(text)


@each_row(
    "text", ["a", "\u200b.", "\U0001f44d\ufe0f", "\u4f60", "\u0e2a\u0e27", "\ufffd", "\ue000"], ids=ascii
)
def test_text_with_a_visible_character_is_not_blank(text):
    assert not is_blank(text)


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
