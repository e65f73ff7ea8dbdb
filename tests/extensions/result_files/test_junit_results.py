"""JUnit files of several runners become rows."""

from pathlib import Path

import pytest

from ci_evals.domain.errors import UsageError
from ci_evals.extension_support.result_files.result_rows import ResultSet, Undecided
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.extensions.result_files.reading import read_file


def read(text: str) -> ResultSet:
    reader, (one,) = read_file(SourceFile("junit.xml", text.encode()))
    assert reader.format == "junit"
    return one


def suite(cases: str, attributes: str = 'name="pytest"') -> str:
    return f'<?xml version="1.0"?><testsuites><testsuite {attributes}>{cases}</testsuite></testsuites>'


def outcome(results: ResultSet) -> list[object]:
    return [row.undecided or row.passed for row in results.rows]


def test_failures_errors_and_skips_of_pytest() -> None:
    results = read(
        suite(
            '<testcase classname="test_a" name="test_1[&lt;b&gt;]" time="0.5" />'
            '<testcase classname="test_a" name="test_2"><failure message="1 == 2">trace</failure></testcase>'
            '<testcase classname="test_a" name="test_3"><error message="failed on setup">x</error></testcase>'
            '<testcase classname="test_a" name="test_4"><skipped type="pytest.xfail" message="" /></testcase>'
        )
    )
    assert results.suite == "pytest"
    assert outcome(results) == [True, False, Undecided.ERROR, Undecided.SKIPPED]
    first, second, *_ = results.rows
    assert (first.test, first.groups, first.seconds) == ("test_a › test_1[<b>]", ("test_a",), 0.5)
    assert second.reason == "1 == 2\n\ntrace"
    assert results.official
    assert (results.official.value, results.official.of) == (1 / 3, 3)


def test_a_test_that_fails_and_whose_teardown_breaks_has_failed() -> None:
    assert outcome(read(suite('<testcase name="a"><failure/><error/></testcase>'))) == [False]
    assert outcome(read(suite('<testcase name="a"><error/><failure/></testcase>'))) == [False]


def test_a_test_that_broke_and_is_called_skipped_too_broke() -> None:
    results = read(suite('<testcase name="a"><error message="no server"/><skipped/></testcase>'))
    assert outcome(results) == [Undecided.ERROR]


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ('status="failed"', False),
        ('status="error"', Undecided.ERROR),
        ('status="notrun" result="suppressed"', Undecided.SKIPPED),
        ('status="run" result="completed"', True),
        ('status="passed"', True),
    ],
)
def test_what_a_test_case_says_in_attributes_counts(attributes: str, expected: object) -> None:
    """Some tools write no element for it."""
    assert outcome(read(suite(f'<testcase name="a" {attributes}/>'))) == [expected]


def test_elements_of_a_namespace_are_read() -> None:
    text = (
        '<x:testsuite xmlns:x="urn:x" name="s"><x:testcase name="a"><x:failure/></x:testcase></x:testsuite>'
    )
    assert outcome(read(text)) == [False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (suite('<error message="no server"/><testcase name="a"/>'), "the suite itself broke"),
        (
            suite('<testcase name="a"><failure/><testcase name="b"/></testcase>'),
            "a testcase within a testcase",
        ),
    ],
)
def test_a_suite_that_broke_as_a_whole_is_refused(text: str, message: str) -> None:
    """No test case says so."""
    with pytest.raises(UsageError, match=message):
        read(text)


def test_suites_within_suites_count_all_that_is_within_them() -> None:
    inner = '<testsuite name="i" failures="1"><testcase name="a"><failure/></testcase></testsuite>'
    assert outcome(read(suite(inner, 'name="o" failures="1"'))) == [False]


def test_attempts_that_were_run_again_are_failures_though_they_look_like_passes() -> None:
    results = read(
        suite('<testcase name="a"/><testcase name="a"/><testcase name="b"/>', 'name="p" tests="2"')
    )
    assert outcome(results) == [False, True, True]
    assert results.official
    assert (results.official.value, results.official.of) == (1, 2)


def test_equal_names_that_the_suite_counts_are_two_tests() -> None:
    results = read(suite('<testcase name="a"/><testcase name="a"/>', 'name="p" tests="2"'))
    assert [(row.test, row.passed) for row in results.rows] == [("a", True), ("a #2", True)]


def test_reruns_of_surefire_are_failed_attempts() -> None:
    results = read(suite('<testcase name="a" time="1,234.5"><flakyFailure message="m"/></testcase>'))
    assert outcome(results) == [False, True]
    assert results.rows[0].reason == "m"
    assert results.rows[0].seconds == 1234.5


def test_a_file_with_several_suites_is_one_suite_with_their_names_as_groups() -> None:
    results = read(
        '<testsuites name="vitest tests"><testsuite name="a.test.ts"><testcase name="x &gt; y"/></testsuite>'
        '<testsuite name="b.test.ts"><testcase name="x &gt; y" classname="b.test.ts"/>'
        "</testsuite></testsuites>"
    )
    assert results.suite == "vitest tests"
    assert [(row.test, row.groups) for row in results.rows] == [
        ("a.test.ts › x > y", ("a.test.ts",)),
        ("b.test.ts › x > y", ("b.test.ts",)),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (suite("<testcase name='a'/>")[:-20], "is broken JUnit XML"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><testsuite/>', "declares XML entities"),
        ("<testsuite>" * 300, "nested more than 200"),
        ("<testsuites><testcase name='a'/></testsuites>", "outside of every testsuite"),
        ("<promptfoo/>", "no known format"),
        ("<a", "no known format"),
    ],
)
def test_files_that_are_broken_or_of_another_kind_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"^junit.xml: .*{message}"):
        read(text)


FILES = Path(__file__).parent / "files/junit"


def test_a_file_that_pytest_wrote() -> None:
    results = read((FILES / "pytest.xml").read_text())
    assert {row.test: row.undecided or row.passed for row in results.rows} == {
        "test_shop › test_adds": True,
        "test_shop › test_ships[<fast>]": True,
        "test_shop › test_ships[slow]": False,
        "test_shop › test_breaks": Undecided.ERROR,
        "test_shop › test_refunds": Undecided.SKIPPED,
        "test_shop › test_known": Undecided.SKIPPED,
    }
    assert results.rows[2].reason.startswith("AssertionError: assert 'slow' == '<fast>'")


def test_a_file_that_vitest_wrote() -> None:
    """It tells of an error as of a failure, and of a retry nothing."""
    results = read((FILES / "vitest.xml").read_text())
    assert {row.test: row.undecided or row.passed for row in results.rows} == {
        "shop.test.js › cart > adds": True,
        "shop.test.js › cart > ships <fast>": False,
        "shop.test.js › cart > refunds": Undecided.SKIPPED,
        "shop.test.js › cart > breaks": False,
        "shop.test.js › is flaky": True,
    }
    assert results.official
    assert (results.official.value, results.official.of) == (0.5, 4)


def test_a_file_that_jest_wrote() -> None:
    """A class name that repeats the test's is no group; a file that does not load has broken."""
    results = read((FILES / "jest.xml").read_text())
    assert results.suite == "jest tests"
    assert {row.test: (row.groups, row.undecided or row.passed) for row in results.rows} == {
        "refunds window is 30 days": (("refunds",), True),
        "refunds amount is told": (("refunds",), False),
        "refunds order is looked up": (("refunds",), False),
        "refunds partial refunds": (("refunds",), Undecided.SKIPPED),
        "refunds refunds in euros": (("refunds",), True),  # a todo: the file does not tell it from a pass
        "refunds the agent answers": (("refunds",), True),
        "refunds › order 1": (("refunds",), True),
        "refunds › order 2": (("refunds",), True),
        "Test suite failed to run › t/broken.test.js": (("Test suite failed to run",), False),
    }


def test_a_file_that_gradle_wrote() -> None:
    """One file for each class, whose name stands once in a test's whole name."""
    results = read((FILES / "gradle.xml").read_text())
    assert results.suite == "shop.RefundTest"
    assert {row.test: row.undecided or row.passed for row in results.rows} == {
        "orderIsLookedUp": False,
        "windowIs30Days": True,
        "partialRefunds": Undecided.SKIPPED,
        "amountIsTold": False,
    }
    assert {row.groups for row in results.rows} == {("shop.RefundTest",)}


def test_the_suite_s_name_stays_in_a_test_where_not_all_have_it() -> None:
    """Else two tests would be taken for two trials of one."""
    results = read(suite('<testcase classname="p" name="a"/><testcase name="a"/>', 'name="p"'))
    assert [row.test for row in results.rows] == ["p › a", "a"]


VITEST = 'name="a.test.js" timestamp="t" hostname="h" tests="2" failures="{}" errors="0" skipped="0" time="1"'
FAILED = '<testcase classname="a.test.js" name="f" time="0.1"><failure message="m"/></testcase>'


@pytest.mark.parametrize(
    ("attributes", "other", "time", "expected"),
    [
        (VITEST.format(1), FAILED, "0", Undecided.EMPTY),
        (VITEST.format(1), FAILED, "0.0001", True),
        (VITEST.format(0), "", "0", True),
        ('name="pytest"', FAILED, "0", True),
    ],
    ids=["not started", "ran", "no failure", "another runner"],
)
def test_tests_that_vitest_did_not_start_after_a_failure_are_undecided(
    attributes: str, other: str, time: str, expected: object
) -> None:
    case = f'<testcase classname="a.test.js" name="a" time="{time}"></testcase>'
    row = read(suite(other + case, attributes)).rows[-1]
    assert (row.passed or row.undecided) == expected


def test_a_run_of_vitest_that_ended_at_its_first_failure() -> None:
    rows = read((FILES / "vitest-bail.xml").read_text()).rows
    assert [row.passed for row in rows] == [True, False, *[None] * 14]
