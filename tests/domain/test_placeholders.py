"""`{{names}}` in what an author wrote."""

from urllib.parse import quote

from ci_evals.support import placeholders

FACTS = {"message": 'Say "{{key}}"', "user": {"plan": "Pro", "pets": ["cat"]}, "days": 3, "none": None}


def lookup(name):
    return placeholders.member(FACTS, name)


def test_a_text_that_is_one_name_becomes_the_value():
    """Whatever it is."""
    template = {"a": "{{user}}", "b": ["{{ days }}", "{{none}}"], "c": 7, "{{days}}": True}
    assert placeholders.filled(template, lookup) == {
        "a": {"plan": "Pro", "pets": ["cat"]},
        "b": [3, None],
        "c": 7,
        "{{days}}": True,
    }


def test_in_other_text_a_value_is_written_out():
    """As JSON where it is no text, and what went in is not looked at again."""
    result = placeholders.text("{{days}} days, {{user.plan}}, {{user.pets}}, {{none}}: {{message}}", lookup)
    assert result == '3 days, Pro, ["cat"], : Say "{{key}}"'
    assert placeholders.text("/{{message}}", lookup, quote) == "/Say%20%22%7B%7Bkey%7D%7D%22"


def test_placeholder_takes_a_part_of_a_value_by_name_or_number():
    """By name or number; null where there is none."""
    assert placeholders.member(FACTS, "user.pets.0") == "cat"
    for path in ("user.pets.1", "user.pets.x", "user.plan.name", "nobody", ""):
        assert placeholders.member(FACTS, path) is None


def test_the_names_in_a_template():
    """Wherever a value stands."""
    template = {"{{no}}": "{{a}} {{ b }}", "list": ["{{c.d}}", 1, None], "odd": "{{ {x} }} {{}} {{"}
    assert [*placeholders.names(template)] == ["a", "b", "c.d", ""]
