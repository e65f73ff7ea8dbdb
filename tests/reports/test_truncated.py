"""The parts of a report that are kept if there is little room."""

import re

import hostile_text
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.reports.markdown.sections import (
    Rank,
    Section,
    folded,
    group,
    joined,
    listing,
    tabled,
    truncated,
)
from ci_evals.reports.story.table import Column, table_of

ELSEWHERE = "The summary.md has everything."
HEAD = Section("the verdict", "## Verdict")
FOOT = Section("the facts", "<sub>facts</sub>")


def section(name: str, rank: Rank, size: int) -> Section:
    """A section of about so many bytes."""
    return Section(name, f"### {name}\n\n{'x' * size}", rank)


def rows(name: str, rank: Rank, number: int, size: int = 20) -> Section:
    """A list of so many rows."""
    return Section(name, f"### {name}", rank, tuple(f"- {place:03} {'r' * size}" for place in range(number)))


def section_names(text: str) -> list[str]:
    return [line.removeprefix("### ") for line in text.split("\n") if line.startswith("### ")]


def omitted(text: str) -> str:
    """The parts that the note names."""
    return text.rpartition("Left out here for lack of space: ")[2].partition(f". {ELSEWHERE}")[0]


def test_sections_keep_their_order_and_the_least_important_are_omitted_first():
    sections = [HEAD, section("lists", Rank.LISTS, 400), section("failing", Rank.FAILING, 50), FOOT]
    text = truncated(sections, 1_000, ELSEWHERE)
    assert text == joined(sections)
    assert section_names(text) == ["lists", "failing"]
    assert truncated(sections, len(text.encode()), ELSEWHERE) == text
    assert omitted(truncated(sections, len(text.encode()) - 1, ELSEWHERE)) == "lists"
    sections = [HEAD, section("details", Rank.DETAILS, 400), section("failing", Rank.FAILING, 400), FOOT]
    text = truncated(sections, 700, ELSEWHERE)
    assert text.startswith("## Verdict\n\n### failing\n")
    assert text.endswith(
        "<sub>facts</sub>\n\n"
        "<sub>Left out here for lack of space: details. The summary.md has everything.</sub>\n"
    )


def test_section_that_is_too_large_leaves_room_for_smaller_ones():
    small = [section(rank.name, rank, 50) for rank in (Rank.FAILING, Rank.TELLING, Rank.DETAILS)]
    text = truncated([HEAD, section("huge", Rank.FAILING, 5_000), *small], 800, ELSEWHERE)
    assert section_names(text) == ["FAILING", "TELLING", "DETAILS"]
    assert omitted(text) == "huge"


@each_row("rank", [Rank.FAILING, Rank.REST])
def test_list_of_all_tests_is_omitted_before_a_failed_test(rank):
    everything = section("all tests", Rank.LISTS, 50)
    text = truncated([HEAD, section("failing", rank, 5_000), everything], 800, ELSEWHERE)
    assert section_names(text) == []
    assert omitted(text) == "failing; all tests"
    text = truncated([HEAD, section("details", Rank.DETAILS, 5_000), everything], 800, ELSEWHERE)
    assert section_names(text) == ["all tests"]


def test_truncated_list_has_short_rows_or_drops_rows_and_states_their_number():
    text = truncated([HEAD, rows("tests", Rank.FAILING, 100), FOOT], 1_000, ELSEWHERE)
    taken = text.count("- 0")
    assert 10 < taken < 40
    assert f"- {taken - 1:03} " in text
    assert f"\n- and {100 - taken} more tests\n" in text
    assert omitted(text) == "part of tests"
    long = rows("tests", Rank.FAILING, 10, size=300)
    both = Section(long.name, long.head, long.rank, long.rows, tuple(f"- {place}" for place in range(10)))
    text = truncated([HEAD, both], 900, ELSEWHERE)
    assert "r" * 20 not in text
    assert "- 0\n- 1\n" in text
    assert "more test" not in text
    assert omitted(text) == "part of tests"


def test_truncated_table_is_valid_html_with_count_of_omitted_rows():
    inner = Section("tests", "", Rank.LISTS, noun="test")
    columns = (Column("test", words=True, show=lambda place: f"Test {place}"), Column("score", show=str))
    table = table_of("Tests", columns, range(200))
    text = truncated([HEAD, folded("All tests", tabled(inner, table))], 1_000, ELSEWHERE)
    page = hostile_text.RenderedMarkdown(text)
    assert page.tags.count("table") == page.tags.count("details") == 1
    assert page.tags.count("tr") > 20
    assert "more tests\n\n</details>\n" in text


def test_rest_of_long_list_goes_into_separate_details_block():
    first, rest = listing(rows("tests", Rank.FAILING, 9), 3, Rank.REST)
    assert len(first.rows) == 3
    assert rest.text.startswith("<details>\n<summary>6 more tests</summary>\n\n- 003")
    assert rest.text.endswith("\n\n</details>\n")
    assert (first.rank, rest.rank) == (Rank.FAILING, Rank.REST)
    assert rest.name == "the rest of tests"
    assert len(listing(rows("tests", Rank.FAILING, 4), 3)) == 1


def test_note_names_five_omitted_sections_and_no_text_is_left_without_room_for_it():
    sections = [HEAD, *(section(f"part {number}", Rank.TELLING, 2_000) for number in range(40))]
    text = truncated(sections, 1_000, ELSEWHERE)
    assert omitted(text) == "part 0; part 1; part 2; part 3; part 4; and 35 more parts"
    assert truncated([HEAD, section("failing", Rank.FAILING, 50)], 30, ELSEWHERE) == ""
    assert truncated([HEAD], -5, ELSEWHERE) == ""


any_sections = st.lists(
    st.builds(
        lambda name, rank, number, size: (
            rows(name, rank, number, size) if number else section(name, rank, size)
        ),
        st.sampled_from(["a", "ü" * 30, "the failed tests"]),
        st.sampled_from(Rank),
        st.integers(0, 30),
        st.integers(0, 300),
    ),
    max_size=12,
)


@given(any_sections, st.integers(0, 6_000))
def test_truncated_report_stays_within_budget_and_names_omissions(sections, budget):
    text = truncated(sections, budget, ELSEWHERE)
    assert len(text.encode()) <= budget
    if text and text != joined(sections):
        assert omitted(text)


def test_empty_details_blocks_are_omitted():
    for inner in ((), (Section("nothing", ""),), (Section("a", ""), Section("b", " \n"))):
        assert group("the details", "Details", inner) == ()
    sections = [HEAD, *group("the details", "Details", [section("one", Rank.DETAILS, 300)]), FOOT]
    for budget in range(150, 900, 50):
        text = truncated(sections, budget, ELSEWHERE)
        assert not re.search(r"<summary>[^\n]*</summary>\s*</details>", text)
        assert text.count("<details>") == text.count("</details>")
