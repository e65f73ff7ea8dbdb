"""What stays of a report where there is little room."""

import re

import hostile_text
import pytest
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


def of(name: str, rank: Rank, size: int) -> Section:
    """A section of about so many bytes."""
    return Section(name, f"### {name}\n\n{'x' * size}", rank)


def rows(name: str, rank: Rank, number: int, size: int = 20) -> Section:
    """A list of so many rows."""
    return Section(name, f"### {name}", rank, tuple(f"- {place:03} {'r' * size}" for place in range(number)))


def shown(text: str) -> list[str]:
    """Names of the sections that stand in it."""
    return [line.removeprefix("### ") for line in text.split("\n") if line.startswith("### ")]


def left_out(text: str) -> str:
    """What the note names."""
    return text.rpartition("Left out here for lack of space: ")[2].partition(f". {ELSEWHERE}")[0]


def test_what_fits_is_whole():
    """Every section, in the order of reading, without a note."""
    sections = [HEAD, of("lists", Rank.LISTS, 400), of("failing", Rank.FAILING, 50), FOOT]
    text = truncated(sections, 1_000, ELSEWHERE)
    assert text == joined(sections)
    assert shown(text) == ["lists", "failing"]
    assert truncated(sections, len(text.encode()), ELSEWHERE) == text
    assert left_out(truncated(sections, len(text.encode()) - 1, ELSEWHERE)) == "lists"


def test_the_important_stays_where_it_stands_to_be_read():
    """Importance decides what stays, not where."""
    sections = [HEAD, of("details", Rank.DETAILS, 400), of("failing", Rank.FAILING, 400), FOOT]
    text = truncated(sections, 700, ELSEWHERE)
    assert text.startswith("## Verdict\n\n### failing\n")
    assert text.endswith(
        "<sub>facts</sub>\n\n"
        "<sub>Left out here for lack of space: details. The summary.md has everything.</sub>\n"
    )


def test_section_that_is_too_large_leaves_room_for_smaller_ones():
    """Of the same importance and of less."""
    sections = [
        HEAD,
        of("huge", Rank.FAILING, 5_000),
        of("small", Rank.FAILING, 50),
        of("telling", Rank.TELLING, 50),
        of("details", Rank.DETAILS, 50),
    ]
    text = truncated(sections, 800, ELSEWHERE)
    assert shown(text) == ["small", "telling", "details"]
    assert left_out(text) == "huge"


@pytest.mark.parametrize("rank", [Rank.FAILING, Rank.REST])
def test_no_list_of_all_tests_where_one_that_failed_has_no_room(rank):
    """Not even where the list would still fit."""
    failing = of("failing", rank, 5_000)
    text = truncated([HEAD, failing, of("all tests", Rank.LISTS, 50)], 800, ELSEWHERE)
    assert shown(text) == []
    assert left_out(text) == "failing; all tests"
    details = of("details", Rank.DETAILS, 5_000)
    assert shown(truncated([HEAD, details, of("all tests", Rank.LISTS, 50)], 800, ELSEWHERE)) == ["all tests"]


def test_lists_are_shortened_by_rows():
    """As many rows as fit, then how many more there are; the note names the list."""
    text = truncated([HEAD, rows("tests", Rank.FAILING, 100), FOOT], 1_000, ELSEWHERE)
    taken = text.count("- 0")
    assert 10 < taken < 40
    assert f"- {taken - 1:03} " in text
    assert f"\n- and {100 - taken} more tests\n" in text
    assert left_out(text) == "part of tests"


def test_many_rows_in_few_words_rather_than_few_in_many():
    """A list that has both is shown in few words where not all of the others have room."""
    long = rows("tests", Rank.FAILING, 10, size=300)
    both = Section(long.name, long.head, long.rank, long.rows, tuple(f"- {place}" for place in range(10)))
    text = truncated([HEAD, both], 900, ELSEWHERE)
    assert "r" * 20 not in text
    assert "- 0\n- 1\n" in text
    assert "more test" not in text
    assert left_out(text) == "part of tests"


def test_a_shortened_table_is_a_table():
    """With its headers; what is left out is told below it."""
    inner = Section("tests", "", Rank.LISTS, noun="test")
    columns = (Column("test", words=True, show=lambda place: f"Test {place}"), Column("score", show=str))
    table = table_of("Tests", columns, range(200))
    text = truncated([HEAD, folded("All tests", tabled(inner, table))], 1_000, ELSEWHERE)
    page = hostile_text.RenderedMarkdown(text)
    assert page.tags.count("table") == page.tags.count("details") == 1
    assert page.tags.count("tr") > 20
    assert "more tests\n\n</details>\n" in text


def test_the_rest_of_a_list_is_folded_and_can_be_left_out_alone():
    """One more than is shown is shown too: a fold for one thing would take its room."""
    first, rest = listing(rows("tests", Rank.FAILING, 9), 3, Rank.REST)
    assert len(first.rows) == 3
    assert rest.text.startswith("<details>\n<summary>6 more tests</summary>\n\n- 003")
    assert rest.text.endswith("\n\n</details>\n")
    assert (first.rank, rest.rank) == (Rank.FAILING, Rank.REST)
    assert rest.name == "the rest of tests"
    assert len(listing(rows("tests", Rank.FAILING, 4), 3)) == 1


def test_the_note_names_five_and_counts_the_others():
    """It stays one line however much is left out."""
    sections = [HEAD, *(of(f"part {place}", Rank.TELLING, 2_000) for place in range(40))]
    text = truncated(sections, 1_000, ELSEWHERE)
    assert left_out(text) == "part 0; part 1; part 2; part 3; part 4; and 35 more parts"


def test_without_room_for_the_note_there_is_nothing():
    """Half a note would not say what it is."""
    assert truncated([HEAD, of("failing", Rank.FAILING, 50)], 30, ELSEWHERE) == ""
    assert truncated([HEAD], -5, ELSEWHERE) == ""


drawn = st.lists(
    st.builds(
        lambda name, rank, number, size: rows(name, rank, number, size) if number else of(name, rank, size),
        st.sampled_from(["a", "ü" * 30, "the failed tests"]),
        st.sampled_from(Rank),
        st.integers(0, 30),
        st.integers(0, 300),
    ),
    max_size=12,
)


@given(drawn, st.integers(0, 6_000))
def test_no_report_is_larger_than_its_budget(sections, budget):
    """Whatever the sections are; and all that is left out is named or counted."""
    text = truncated(sections, budget, ELSEWHERE)
    assert len(text.encode()) <= budget
    if text and text != joined(sections):
        assert left_out(text)


@pytest.mark.parametrize("inner", [(), (Section("nothing", ""),), (Section("a", ""), Section("b", " \n"))])
def test_a_fold_in_which_nothing_is_is_left_out(inner):
    """A reader who opens it would find nothing."""
    assert group("the details", "Details", inner) == ()


@each_row("budget", range(150, 900, 50))
def test_a_fold_is_left_out_with_all_that_is_in_it(budget):
    """Whatever room there is."""
    sections = [HEAD, *group("the details", "Details", [of("one", Rank.DETAILS, 300)]), FOOT]
    text = truncated(sections, budget, ELSEWHERE)
    assert not re.search(r"<summary>[^\n]*</summary>\s*</details>", text)
    assert text.count("<details>") == text.count("</details>")
