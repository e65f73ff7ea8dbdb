"""JUnit files of several runners become rows."""

from pathlib import Path

import pytest
from each_row import each_row

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


def outcomes_of(results: ResultSet) -> list[object]:
    return [row.undecided or row.passed for row in results.rows]


def test_failures_errors_skips_and_reruns_are_distinguished():
    results = read(
        suite(
            '<testcase classname="test_a" name="test_1[&lt;b&gt;]" time="0.5" />'
            '<testcase classname="test_a" name="test_2"><failure message="1 == 2">trace</failure></testcase>'
            '<testcase classname="test_a" name="test_3"><error message="failed on setup">x</error></testcase>'
            '<testcase classname="test_a" name="test_4"><skipped type="pytest.xfail" message="" /></testcase>'
        )
    )
    assert results.suite == "pytest"
    assert outcomes_of(results) == [True, False, Undecided.ERROR, Undecided.SKIPPED]
    first, second, *_ = results.rows
    assert (first.test, first.groups, first.seconds) == ("test_a › test_1[<b>]", ("test_a",), 0.5)
    assert second.reason == "1 == 2\n\ntrace"
    assert results.official
    assert (results.official.value, results.official.of) == (1 / 3, 3)
    cases = '<testcase name="a"/><testcase name="a"/><testcase name="b"/>'
    results = read(suite(cases, 'name="p" tests="2"'))
    assert outcomes_of(results) == [False, True, True]
    assert results.official
    assert (results.official.value, results.official.of) == (1, 2)
    results = read(suite('<testcase name="a"/><testcase name="a"/>', 'name="p" tests="2"'))
    assert [(row.test, row.passed) for row in results.rows] == [("a", True), ("a #2", True)]
    results = read(suite('<testcase name="a" time="1,234.5"><flakyFailure message="m"/></testcase>'))
    assert (outcomes_of(results), results.rows[0].reason) == ([False, True], "m")
    assert results.rows[0].seconds == 1234.5


@each_row(("case", "expected"), [
    ("><failure/><error/></testcase>", False),
    ("><error/><failure/></testcase>", False),
    ('><error message="no server"/><skipped/></testcase>', Undecided.ERROR),
    ('status="failed"/>', False),
    ('status="error"/>', Undecided.ERROR),
    ('status="notrun" result="suppressed"/>', Undecided.SKIPPED),
    ('status="run" result="completed"/>', True),
    ('status="passed"/>', True),
])  # fmt: skip
def test_worst_element_or_status_attribute_decides_outcome(case, expected):
    assert outcomes_of(read(suite(f'<testcase name="a" {case}'))) == [expected]


def test_nested_and_namespaced_suites_are_read_as_groups_or_parts_of_names():
    case = '<x:testcase name="a"><x:failure/></x:testcase>'
    assert outcomes_of(read(f'<x:testsuite xmlns:x="urn:x" name="s">{case}</x:testsuite>')) == [False]
    inner = '<testsuite name="i" failures="1"><testcase name="a"><failure/></testcase></testsuite>'
    assert outcomes_of(read(suite(inner, 'name="o" failures="1"'))) == [False]
    results = read(
        '<testsuites name="vitest tests"><testsuite name="a.test.ts"><testcase name="x &gt; y"/></testsuite>'
        '<testsuite name="b.test.ts"><testcase name="x &gt; y" classname="b.test.ts"/>'
        "</testsuite></testsuites>"
    )
    assert results.suite == "vitest tests"
    tests = [(row.test, row.groups) for row in results.rows]
    assert tests == [(f"{file} › x > y", (file,)) for file in ("a.test.ts", "b.test.ts")]
    results = read(suite('<testcase classname="p" name="a"/><testcase name="a"/>', 'name="p"'))
    assert [row.test for row in results.rows] == ["p › a", "a"]


@each_row(("text", "message"), [
    (suite('<error message="no server"/><testcase name="a"/>'), "the suite itself broke"),
    (suite('<testcase name="a"><failure/><testcase name="b"/></testcase>'), "a testcase within a test"),
    (suite("<testcase name='a'/>")[:-20], "is broken JUnit XML"),
    ('<!DOCTYPE x [<!ENTITY a "b">]><testsuite/>', "declares XML entities"),
    ("<testsuite>" * 300, "nested more than 200"),
    ("<testsuites><testcase name='a'/></testsuites>", "outside of every testsuite"),
    ("<promptfoo/>", "no known format"),
    ("<a", "no known format"),
])  # fmt: skip
def test_broken_or_foreign_file_is_refused(text, message):
    with pytest.raises(UsageError, match=f"^junit.xml: .*{message}"):
        read(text)


FILES = Path(__file__).parent / "files/junit"


def test_files_of_pytest_vitest_jest_and_gradle_are_read():
    results = read((FILES / "pytest.xml").read_text())
    assert {row.test: row.undecided or row.passed for row in results.rows} == {
        "test_shop › test_adds": True, "test_shop › test_ships[<fast>]": True,
        "test_shop › test_ships[slow]": False, "test_shop › test_breaks": Undecided.ERROR,
        "test_shop › test_refunds": Undecided.SKIPPED, "test_shop › test_known": Undecided.SKIPPED,
    }  # fmt: skip
    assert results.rows[2].reason.startswith("AssertionError: assert 'slow' == '<fast>'")
    results = read((FILES / "vitest.xml").read_text())
    assert {row.test: row.undecided or row.passed for row in results.rows} == {
        "shop.test.js › cart > adds": True, "shop.test.js › cart > ships <fast>": False,
        "shop.test.js › cart > refunds": Undecided.SKIPPED, "shop.test.js › cart > breaks": False,
        "shop.test.js › is flaky": True,
    }  # fmt: skip
    assert results.official
    assert (results.official.value, results.official.of) == (0.5, 4)
    rows = read((FILES / "vitest-bail.xml").read_text()).rows
    assert [row.passed for row in rows] == [True, False, *[None] * 14]
    # A class name that repeats the test's is no group; a file that does not load has broken.
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
    # One file for each class, whose name stands once in a test's whole name.
    results = read((FILES / "gradle.xml").read_text())
    assert results.suite == "shop.RefundTest"
    assert {row.test: row.undecided or row.passed for row in results.rows} == {
        "orderIsLookedUp": False, "windowIs30Days": True, "partialRefunds": Undecided.SKIPPED,
        "amountIsTold": False,
    }  # fmt: skip
    assert {row.groups for row in results.rows} == {("shop.RefundTest",)}


VITEST = 'name="a.test.js" timestamp="t" hostname="h" tests="2" failures="{}" errors="0" skipped="0" time="1"'
FAILED = '<testcase classname="a.test.js" name="f" time="0.1"><failure message="m"/></testcase>'


@each_row(("attributes", "other", "time", "expected"), [
    (VITEST.format(1), FAILED, "0", Undecided.EMPTY),
    (VITEST.format(1), FAILED, "0.0001", True),
    (VITEST.format(0), "", "0", True),
    ('name="pytest"', FAILED, "0", True),
])  # fmt: skip
def test_vitest_tests_not_started_after_failure_are_undecided(attributes, other, time, expected):
    case = f'<testcase classname="a.test.js" name="a" time="{time}"></testcase>'
    row = read(suite(other + case, attributes)).rows[-1]
    assert (row.passed or row.undecided) == expected
