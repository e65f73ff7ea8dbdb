"""docs/personas.md: its suite is a good one, its table and its options are those of the code."""

from doc_pages import blocks, code, page, table

from ci_evals.extensions.personas.traits import TRAITS
from ci_evals.extensions.validate.quality import weaknesses
from ci_evals.gate.selectors import SelectorKind, read_thresholds
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load
from ci_evals.planning.selection import Selection, plan

PAGE = page("personas.md")


def test_docs_suite_runs_the_tests_named_on_the_page():
    example, *_ = blocks("yaml", PAGE)
    loaded = load(example, "shop.yaml", Reading())
    assert [str(problem) for problem in weaknesses(loaded)] == []
    (planned,) = plan([loaded], Selection(), 1).suites
    names = ["Refund", "Refund (rushed)", "Refund (fraudster)", "Address", "Address (careless)"]
    assert [test.name for test in planned.tests] == names


def test_docs_suite_with_languages_reads_its_lock_file():
    _, example, lock = blocks("yaml", PAGE)
    reading = Reading(read_beside={"shop.lock.yaml": lock}.__getitem__)
    loaded = load(example, "shop.yaml", reading)
    assert [str(problem) for problem in (*weaknesses(loaded), *loaded.warnings)] == []
    tests = loaded.suite.tests
    names = ["Refund", "Refund (de)", "Refund (pt-BR)", "Address of somebody else"]
    assert [test.name for test in tests] == names
    for test, words in zip(tests[1:3], ("kaputt", "quebrado"), strict=True):
        assert words in test.turns[0].user
        assert test.tags == ("orders", test.name.replace("Refund (", "language:").rstrip(")"))
    # The page: three personas and two languages play each test six times.
    personas = "personaMatrix: true\npersonas: {a: {traits: [terse]}, b: {traits: [typos]}, c: {note: x}}\n"
    tests = load(personas + example, "shop.yaml", reading).suite.tests
    assert len([test for test in tests if test.name.startswith("Refund")]) == 6


def test_docs_name_all_traits_and_a_valid_threshold():
    titles = {code(name): title for name, title in table("trait", PAGE)}
    assert titles == {trait.name: trait.title for trait in TRAITS.values()}
    assert "--thresholds=tag:persona:fraudster=100" in PAGE
    (limit,) = read_thresholds("tag:persona:fraudster=100")
    result = (limit.selector.kind, limit.selector.name, limit.limit)
    assert result == (SelectorKind.TAG, "persona:fraudster", 100)
