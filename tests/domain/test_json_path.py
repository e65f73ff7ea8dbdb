"""Paths into JSON: what is there, what is not, and what nobody may be held up by."""

import json

import jsonpath
import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.support.json_path import MAX_LENGTH, JsonPath

PATHS = [
    "$", "$.a", "$.a.b", "$.*", "$[*]", "$.a[*].b", "$..b", "$[0]", "$.a[1:3]", "$.a[?@.b == 1]", "$[?@]",
]  # fmt: skip
NAMES = st.sampled_from("abc") | st.text()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)


@each_row(("path", "value", "expected"), [
    ("$", {"a": 1}, ({"a": 1},)),
    ("$.a", {"a": None}, (None,)),
    ("$.a", {}, None),
    ("$.a", "a text", None),
    ("$.a[0]", {"a": [7]}, (7,)),
    ("$['two words'].x", {"two words": {"x": 1}}, (1,)),
    ("$.a[*].n", {"a": [{"n": 1}, {}, {"n": 2}]}, (1, 2)),
    ("$.a[?@.t == 'tool'].n", {"a": [{"t": "tool", "n": 1}, {"t": "text", "n": 2}]}, (1,)),
    ("$..n", {"a": [{"n": 1}], "n": 2}, (2, 1)),
    ("$.a", [1], None),
    ("$.a[*].n", {"a": []}, ()),
    ("$.a[?@.t == 'tool'].n", {"a": [{"t": "text"}]}, ()),
    ("$.a[0:2]", {"a": []}, ()),
    ("$.a.*", {"a": {}}, ()),
    ("$.a[*].n", {}, None),
    ("$.a[*].n", {"a": [{"name": "other wire"}]}, None),
    ("$.a[?@.t == 'tool'].n", {"a": {"t": "tool"}}, None),
    ("$.a[0]", {"a": []}, None),
    ("$..n", {"a": []}, None),
    ("$.a[*]", {"a": "text"}, None),
])  # fmt: skip
def test_json_path_finds_existing_values_and_empty_lists_but_no_missing_value(path, value, expected):
    """An empty list tells that nothing happened; a missing value tells nothing."""
    assert JsonPath(path).find(value) == expected


@each_row(("path", "why"), [
    ("reply", "it must begin with '$'"),
    ("", "it must begin with '$'"),
    ("$.a[", "unexpected end"),
    ("$.a b", "at character"),
    ("$.a | $.b", "unexpected token"),
    ("$[?match(@.a, '(a+)+$')]", "'match' is not defined"),
    ("$[?search(@.a, @.b)]", "'search' is not defined"),
    ("$[?@.a =~ /x/]", "unexpected token"),
    ("$[?@.*]", "more than one place"),
    ("$[?count($..*) > 1]", "more than one place"),
    ("$[?@[?@.a]]", "more than one place"),
    ("$" + ".a" * MAX_LENGTH, f"longer than {MAX_LENGTH} characters"),
    ("$[?@.a > 1e999]", "too large"),
    ("$[" * 200, "JSONPath"),
    ("$[" + "(" * 400, "JSONPath"),
])  # fmt: skip
def test_invalid_or_unbounded_path_is_refused_with_the_reason(path, why):
    with pytest.raises(ValueError) as refused:
        JsonPath(path)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


@each_row(("path", "value"), [
    ("$..x", [[]] * 60_000),
    ("$[*]", [0] * 60_000),
    ("$[?@.x == 1]", [{}] * 60_000),
    ("$..*..*..*..x", json.loads("[" * 60 + "]" * 60)),
    ("$" + "[0,0]" * 60, json.loads("[" * 90 + "]" * 90)),
    ("$.*[*]", {"k" * 1_000_000: [0] * 60_000}),
], ids=lambda value: value[:20] if isinstance(value, str) else "")  # fmt: skip
def test_search_of_too_much_data_is_refused(path, value):
    """Without a limit these searches take minutes or for ever."""
    with pytest.raises(ValueError, match="holds too much to look through"):
        JsonPath(path).find(value)


@given(st.sampled_from(PATHS), JSON)
def test_json_path_search_of_any_value_returns_tuple_or_none(path, value):
    result = JsonPath(path).find(value)
    assert result is None or isinstance(result, tuple)


SHORT = ["$.a", "$.*", "$[*]", "$[*].a", "$.a[?@.b == 'x'].a", "$[?@.b == 'x'].a", "$[?@.b == '1']"]
"""Paths that are followed without the library that reads them."""
ITEMS = st.fixed_dictionaries({"b": st.sampled_from(["x", "1", 1, None, True])}, optional={"a": JSON})


@given(st.sampled_from(SHORT), JSON | st.lists(ITEMS | JSON) | st.fixed_dictionaries({"a": st.lists(ITEMS)}))
def test_shortcut_search_finds_same_values_as_jsonpath_library(path, value):
    result = [match.obj for match in jsonpath.finditer(path, value, strict=True)]
    assert [*(JsonPath(path).find(value) or ())] == result
    short, long = JsonPath(path), JsonPath(path)
    assert all(shortcut for _, shortcut, _ in short._segments)
    long._segments = [(segment, None, chooses) for segment, _, chooses in long._segments]
    assert json.dumps(short.find(value)) == json.dumps(long.find(value))


@given(
    st.sampled_from([*PATHS, "$[?@.a == 'x']", "$[?@.a == 'x'].b", "$[*].a", "$[*].a.b"]),
    JSON | st.fixed_dictionaries({"a": st.sampled_from("xy")}),
)
def test_item_excluded_by_prefilter_is_not_found_by_full_search(path, item):
    searched = JsonPath(path)
    if searched.finds_none_in_list_of(item):
        assert not searched.find([item])


def test_item_without_path_match_is_recognized_by_prefilter():
    for path in ("$[?@.a == 'x'].b", "$[*].a"):
        searched = JsonPath(path)
        assert searched.finds_none_in_list_of({"type": "text"})
        assert not searched.finds_none_in_list_of({"a": "x"})
