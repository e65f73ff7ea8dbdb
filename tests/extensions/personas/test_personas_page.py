"""docs/personas.md: its suite is a good one, its table and its options are those of the code."""

from doc_pages import blocks, code, page, table

from ci_evals.extensions.personas.traits import TRAITS
from ci_evals.extensions.validate.quality import weaknesses
from ci_evals.gate.selectors import SelectorKind, read_thresholds
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load
from ci_evals.planning.selection import Selection, plan

PAGE = page("personas.md")


def test_its_suite_plays_the_tests_that_the_page_names():
    example, *_ = blocks("yaml", PAGE)
    loaded = load(example, "shop.yaml", Reading())
    assert [str(problem) for problem in weaknesses(loaded)] == []
    (planned,) = plan([loaded], Selection(), 1).suites
    assert [test.name for test in planned.tests] == [
        *("Refund", "Refund (rushed)", "Refund (fraudster)"),
        *("Address", "Address (careless)"),
    ]


def test_its_suite_in_other_languages_reads_its_lock_file():
    _, example, lock = blocks("yaml", PAGE)
    files = {"shop.lock.yaml": lock}
    loaded = load(example, "shop.yaml", Reading(read_beside=files.__getitem__))
    assert [str(problem) for problem in (*weaknesses(loaded), *loaded.warnings)] == []
    tests = loaded.suite.tests
    assert [test.name for test in tests[:3]] == ["Refund", "Refund (de)", "Refund (pt-BR)"]
    assert [test.name for test in tests[3:]] == ["Address of somebody else"]
    for test, words in zip(tests[1:3], ("kaputt", "quebrado"), strict=True):
        assert words in test.turns[0].user
        assert test.tags == ("orders", test.name.replace("Refund (", "language:").rstrip(")"))


def test_its_numbers_of_tests_are_those_of_the_suite():
    """Three personas and two languages play each test six times."""
    _, example, lock = blocks("yaml", PAGE)
    personas = "personaMatrix: true\npersonas: {a: {traits: [terse]}, b: {traits: [typos]}, c: {note: x}}\n"
    loaded = load(personas + example, "shop.yaml", Reading(read_beside={"shop.lock.yaml": lock}.__getitem__))
    assert len([test for test in loaded.suite.tests if test.name.startswith("Refund")]) == 6


def test_its_table_has_the_traits():
    assert {code(name): title for name, title in table("trait", PAGE)} == {
        trait.name: trait.title for trait in TRAITS.values()
    }


def test_its_floor_is_one_of_a_persona():
    assert "--thresholds=tag:persona:fraudster=100" in PAGE
    (limit,) = read_thresholds("tag:persona:fraudster=100")
    assert (limit.selector.kind, limit.selector.name, limit.limit) == (
        SelectorKind.TAG,
        "persona:fraudster",
        100,
    )
