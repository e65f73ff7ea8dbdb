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
    (example,) = blocks("yaml", PAGE)
    loaded = load(example, "shop.yaml", Reading())
    assert [str(problem) for problem in weaknesses(loaded)] == []
    (planned,) = plan([loaded], Selection(), 1).suites
    assert [test.name for test in planned.tests] == [
        *("Refund", "Refund (rushed)", "Refund (fraudster)"),
        *("Address", "Address (careless)"),
    ]


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
