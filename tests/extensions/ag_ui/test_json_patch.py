"""JSON Patch: the examples of RFC 6902, and what an agent may do to us with it."""

import json
import re
import time

import pytest
from each_row import each_row

from ci_evals.extensions.ag_ui.json_patch import MAX_COPIED, Patcher, PatchError

APPLIES = {
    "A.1 add a member": ({"foo": "bar"}, [["add", "/baz", "qux"]], {"baz": "qux", "foo": "bar"}),
    "A.2 add an element": ({"foo": ["bar", "z"]}, [["add", "/foo/1", "qux"]], {"foo": ["bar", "qux", "z"]}),
    "A.3 remove a member": ({"baz": "qux", "foo": "bar"}, [["remove", "/baz"]], {"foo": "bar"}),
    "A.4 remove an element": ({"foo": ["bar", "qux"]}, [["remove", "/foo/1"]], {"foo": ["bar"]}),
    "A.5 replace": ({"baz": "qux"}, [["replace", "/baz", "boo"]], {"baz": "boo"}),
    "A.6 move a value": ({"f": {"a": 1}, "q": {}}, [["move", "/q/t", "/f/a"]], {"f": {}, "q": {"t": 1}}),
    "A.7 move an element": ({"foo": [1, 2, 3, 4]}, [["move", "/foo/3", "/foo/1"]], {"foo": [1, 3, 4, 2]}),
    "A.8 test": ({"baz": "qux", "foo": ["a", 2]}, [["test", "/foo/1", 2]], {"baz": "qux", "foo": ["a", 2]}),
    "A.10 add a nested member": ({"foo": 1}, [["add", "/child", {"a": {}}]], {"foo": 1, "child": {"a": {}}}),
    "A.11 unknown members": ({}, [["add", "/baz", "qux", {"xyz": 123}]], {"baz": "qux"}),
    "A.14 escapes": ({"/": 9, "~1": 10}, [["test", "/~01", 10], ["replace", "/~1", 8]], {"/": 8, "~1": 10}),
    "A.16 append": ({"foo": ["bar"]}, [["add", "/foo/-", ["abc"]]], {"foo": ["bar", ["abc"]]}),
    "the whole document": ("a text", [["replace", "", {"a": 1}], ["add", "/b", None]], {"a": 1, "b": None}),
    "a copy is its own": ({"a": [1]}, [["copy", "/c", "/a"], ["add", "/a/1", 2]], {"a": [1, 2], "c": [1]}),
    "a blank key": ({"": 1}, [["replace", "/", 2]], {"": 2}),
    "no operation": ([1], [], [1]),
}
FAILS = {
    "A.9 a test fails": ({"a": "b"}, [["test", "/a", "c"]], "operation 0 (test '/a'): the values differ"),
    "A.12 no such parent": ({"a": "b"}, [["add", "/b/c", "q"]], "operation 0 (add '/b/c'): no such path"),
    "A.15 a text is no number": ({"/": 9}, [["test", "/~1", "9"]], "(test '/~1'): the values differ"),
    "true is not 1": ({"a": [1]}, [["test", "/a", [True]]], "(test '/a'): the values differ"),
    "nothing to replace": (
        {},
        [["add", "/b", 1], ["replace", "/c", 1]],
        "operation 1 (replace '/c'): no such path",
    ),
    "nothing to remove": ({"a": [1]}, [["remove", "/a/1"]], "(remove '/a/1'): no such path"),
    "no index": ({"a": [1]}, [["add", "/a/01", 1]], "(add '/a/01'): no such path"),
    "a negative index": ({"a": [1]}, [["replace", "/a/-1", 1]], "(replace '/a/-1'): no such path"),
    "below a text": ({"a": "b"}, [["add", "/a/0", 1]], "(add '/a/0'): no such path"),
    "into itself": (
        {"a": {}},
        [["move", "/a/b", "/a"]],
        "(move '/a' to '/a/b'): Cannot move values into their own children",
    ),
    "nothing to copy": ({"a": [1]}, [["copy", "/b", "/a/-"]], "(copy '/a/-' to '/b'): "),
    "the whole document removed": ({"a": 1}, [["remove", ""]], "(remove ''): "),
    "a huge index": ({"a": [1]}, [["remove", "/a/" + "9" * 6000]], "…'): no such path"),
    "no pointer": ({}, [["add", "a", 1]], "(add 'a'): no such path"),
    "no operation of the standard": ({}, [["addap", "/a", 1]], "Unknown operation 'addap'"),
}


def patched(document, *patches):
    """The document after these patches."""
    patcher = Patcher(document)
    for patch in patches:
        patcher.apply(patch)
    return patcher.document


def operation(name, path, value=None, more=None):
    last = {"from": value} if name in ("move", "copy") else {"value": value}
    return {"op": name, "path": path, **({} if name == "remove" else last), **(more or {})}


@each_row(("document", "patch", "result"), APPLIES.values(), ids=APPLIES)
def test_patch_examples_of_rfc_6902_apply(document, patch, result):
    assert patched(document, [operation(*each) for each in patch]) == result


@each_row(("document", "patch", "message"), FAILS.values(), ids=FAILS)
def test_inapplicable_patch_is_refused_with_its_operation_and_reason(document, patch, message):
    with pytest.raises(PatchError, match=re.escape(message)):
        patched(document, [operation(*each) for each in patch])


@each_row(
    "patch",
    [
        *(None, {"op": "add"}, [None], ["add"], [{}]),
        [{"op": [], "path": ""}],
        [{"op": "add", "path": "/a"}],
        [{"op": "copy", "path": "/a"}],
        [{"op": "copy", "path": "/a", "from": {}}],
        [{"op": "test", "path": 1}],
        [{"op": "append", "path": "/a", "value": "no operation of the standard"}],
    ],
)
def test_malformed_patches_are_refused(patch):
    with pytest.raises(PatchError):
        patched({}, patch)


def test_json_patch_that_copies_or_nests_too_much_is_refused():
    """40 operations would make 10^12 values; a copied text takes memory only when it is written."""
    doubling = [operation("copy", f"/{number}", "") for number in range(40)]
    begun = time.process_time()
    with pytest.raises(PatchError, match=f"copies more than {MAX_COPIED:,} values"):
        patched({"a": 1}, *([one] for one in doubling))
    assert time.process_time() - begun < 2
    copies = [operation("copy", f"/b{number}", "/a") for number in range(1000)]
    with pytest.raises(PatchError, match="copies more than"):
        patched({"a": "x" * 1_000_000}, copies)
    assert len(patched({"a": "x" * 1_000}, copies)) == 1001
    nested = json.loads('{"a":' * 300 + "{}" + "}" * 300)
    deeper = [operation("add", "/a" * 301 * number, nested) for number in range(12)]
    with pytest.raises(PatchError, match=r"operation 12 \(copy .*\): the value is nested too deep"):
        patched(None, [*deeper, operation("copy", "/b", "")])


def test_patch_errors_do_not_show_the_document():
    for failing in (operation("test", "/a", "y"), operation("add", "/b/c", 1), operation("remove", "/c")):
        with pytest.raises(PatchError) as caught:
            patched({"a": "private"}, [failing])
        assert "private" not in str(caught.value)
