"""`{{names}}` in what an author wrote."""

from urllib.parse import quote

from ci_evals.support import placeholders

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


def test_part_of_a_value_is_addressed_by_name_or_number():
    assert placeholders.member(FACTS, "user.pets.0") == "cat"
    for path in ("user.pets.1", "user.pets.x", "user.plan.name", "nobody", ""):
        assert placeholders.member(FACTS, path) is None


def test_placeholder_names_are_found_in_all_values_of_a_template():
    template = {"{{no}}": "{{a}} {{ b }}", "list": ["{{c.d}}", 1, None], "odd": "{{ {x} }} {{}} {{"}
    assert [*placeholders.names(template)] == ["a", "b", "c.d", ""]
