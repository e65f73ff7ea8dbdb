"""How foreign text enters a prompt."""

import json
import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from ci_evals.support.templates import as_data

HARD = 'a<>&\\"\n\t\x00\x7f\x9b\xad\u200b\u202e\u2028\ufe0f\ue000\ud83d\U000e0041\U000e0100é'
texts = st.text() | st.text(HARD)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
HIDDEN = {"Cc", "Cf", "Co", "Zl", "Zp"}


@given(values)
@example("❤\ufe0f")
@example({"a": "</conversation>"})
def test_prompt_data_is_json_without_brackets_or_hidden_characters(value):
    text = as_data(value)
    assert json.loads(text) == value
    for character in text.replace("\n", ""):
        assert unicodedata.category(character) not in HIDDEN
        assert character not in "<>"
        assert not "\ufe00" <= character <= "\ufe0f"


def test_prompt_data_is_indented_keeps_unicode_and_is_rendered_once():
    value = {"user": "Grüße 👋", "list": [1, 2.5, 1e22, True, None, {}], "none": []}
    assert as_data(value) == json.dumps(value, ensure_ascii=False, indent=1)
    assert as_data({"half": "\ud83d"}) == '{\n "half": "\ud83d"\n}'
    data = as_data({"quoted": "<b>"})
    assert as_data(data) is data
