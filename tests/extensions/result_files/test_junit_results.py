"""JUnit files of several runners become rows; those that contradict themselves name what contradicts."""

import re
from pathlib import Path

import pytest
from each_row import each_row

from ci_evals.domain.errors import UsageError
from ci_evals.extension_support.result_files.result_rows import ResultSet, Undecided
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.extensions.result_files.reading import read_file

FILES = Path(__file__).parent / "files/junit"


def read(text: str) -> ResultSet:
    reader, (one,) = read_file(SourceFile("junit.xml", text.encode()))
    assert reader.format == "junit"
    return one


def in_suites(cases: str, attributes: str = 'name="pytest"') -> str:
    return f'<?xml version="1.0"?><testsuites><testsuite {attributes}>{cases}</testsuite></testsuites>'


def outcomes_of(results: ResultSet) -> list[object]:
    return [row.undecided or row.passed for row in results.rows]


def test_failures_errors_skips_and_reruns_are_distinguished():
    results = read(
        in_suites(
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
    results = read(in_suites(cases, 'name="p" tests="2"'))
    assert outcomes_of(results) == [False, True, True]
    assert results.official
    assert (results.official.value, results.official.of) == (1, 2)
    results = read(in_suites('<testcase name="a"/><testcase name="a"/>', 'name="p" tests="2"'))
    assert [(row.test, row.passed) for row in results.rows] == [("a", True), ("a #2", True)]
    results = read(in_suites('<testcase name="a" time="1,234.5"><flakyFailure message="m"/></testcase>'))
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
    assert outcomes_of(read(in_suites(f'<testcase name="a" {case}'))) == [expected]


def test_nested_and_namespaced_suites_are_read_as_groups_or_parts_of_names():
    case = '<x:testcase name="a"><x:failure/></x:testcase>'
    assert outcomes_of(read(f'<x:testsuite xmlns:x="urn:x" name="s">{case}</x:testsuite>')) == [False]
    inner = '<testsuite name="i" failures="1"><testcase name="a"><failure/></testcase></testsuite>'
    assert outcomes_of(read(in_suites(inner, 'name="o" failures="1"'))) == [False]
    results = read(
        '<testsuites name="vitest tests"><testsuite name="a.test.ts"><testcase name="x &gt; y"/></testsuite>'
        '<testsuite name="b.test.ts"><testcase name="x &gt; y" classname="b.test.ts"/>'
        "</testsuite></testsuites>"
    )
    assert results.suite == "vitest tests"
    tests = [(row.test, row.groups) for row in results.rows]
    assert tests == [(f"{file} › x > y", (file,)) for file in ("a.test.ts", "b.test.ts")]
    results = read(in_suites('<testcase classname="p" name="a"/><testcase name="a"/>', 'name="p"'))
    assert [row.test for row in results.rows] == ["p › a", "a"]


@each_row(("text", "message"), [
    (in_suites('<error message="no server"/><testcase name="a"/>'), "the suite itself broke"),
    (in_suites('<testcase name="a"><failure/><testcase name="b"/></testcase>'), "a testcase within a test"),
    (in_suites("<testcase name='a'/>")[:-20], "is broken JUnit XML"),
    ('<!DOCTYPE x [<!ENTITY a "b">]><testsuite/>', "declares XML entities"),
    ("<testsuite>" * 300, "nested more than 200"),
    ("<testsuites><testcase name='a'/></testsuites>", "outside of every testsuite"),
    ("<promptfoo/>", "no known format"),
    ("<a", "no known format"),
])  # fmt: skip
def test_broken_or_foreign_junit_file_is_refused_with_the_reason(text, message):
    with pytest.raises(UsageError, match=f"^junit.xml: .*{message}"):
        read(text)


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
VITEST_FAILED = '<testcase classname="a.test.js" name="f" time="0.1"><failure message="m"/></testcase>'


@each_row(("attributes", "other", "time", "expected"), [
    (VITEST.format(1), VITEST_FAILED, "0", Undecided.EMPTY),
    (VITEST.format(1), VITEST_FAILED, "0.0001", True),
    (VITEST.format(0), "", "0", True),
    ('name="pytest"', VITEST_FAILED, "0", True),
])  # fmt: skip
def test_vitest_tests_not_started_after_failure_are_undecided(attributes, other, time, expected):
    case = f'<testcase classname="a.test.js" name="a" time="{time}"></testcase>'
    row = read(in_suites(other + case, attributes)).rows[-1]
    assert (row.passed or row.undecided) == expected


PASSED = '<testcase classname="c" name="a"/>'
OTHER = '<testcase classname="c" name="b"/>'
FAILED = '<testcase classname="c" name="f"><failure message="m"/></testcase>'
BROKEN = '<testcase classname="c" name="e"><error message="m"/></testcase>'
PYTEST = 'errors="{errors}" failures="0" skipped="0" tests="{tests}" time="1" timestamp="t" hostname="h"'
SKIPPED = '<testcase classname="c" name="s"><skipped/></testcase>'


def suite(cases: str, attributes: str = "", inner: str = "") -> str:
    return f'<testsuite name="s" {attributes}>{cases}{inner}</testsuite>'


@each_row(("text", "message"), [
    (suite(PASSED, 'tests="100"'), "line 1: testsuite 's' counts 100 tests, but has 1 test case"),
    (suite(PASSED + BROKEN, 'tests="3" errors="1"'), "counts 3 tests, but has 2 test cases"),
    (suite(PASSED, 'tests=" 100 "'), "counts 100 tests"),
    (suite(PASSED, 'tests="99999999999"'), "counts 99,999,999,999 tests"),
    (suite(PASSED + OTHER, 'tests="1"'), "counts 1 test, but 2 of its test cases passed"),
    (suite(PASSED, 'failures="1"'), "counts 1 failures and errors, but its test cases have 0"),
    (suite(PASSED, 'errors="1"'), "counts 1 failures and errors, but its test cases have 0"),
    (suite(PASSED + FAILED, 'failures="1" errors="1"'), "counts 2 failures and errors"),
    (suite(PASSED, 'tests="1" skipped="1"'), "counts 1 skipped test, but 0 of its test cases are"),
    (suite(PASSED, 'disabled="1"'), "counts 1 skipped test, but 0 of its test cases are"),
    (suite(PASSED + SKIPPED, 'skipped="0"'), "counts 0 skipped tests, but 1 of its test cases are"),
    (suite("", inner=suite(PASSED, 'tests="2"')), "counts 2 tests"),
    (suite("", 'tests="2"', suite(PASSED, 'tests="1"')), "counts 2 tests"),
    (suite("", 'failures="1"', suite(PASSED)), "counts 1 failures and errors"),
    (f'<testsuites tests="2">{suite(PASSED)}</testsuites>', "line 1: testsuites counts 2 tests"),
    (f'<testsuites tests="1">{suite(PASSED + OTHER)}</testsuites>', "2 of its test cases passed"),
    (f'<testsuites name="t" failures="1">{suite(PASSED)}</testsuites>', "testsuites 't' counts 1 fail"),
    (f'<testsuites skipped="1">{suite(PASSED)}</testsuites>', "testsuites counts 1 skipped test"),
    (f'<testsuites disabled="1">{suite(PASSED)}</testsuites>', "testsuites counts 1 skipped test"),
])  # fmt: skip
def test_total_contradicted_by_test_cases_is_reported(text, message):
    result = read(text).contradictions
    assert [message in one for one in result] == [True]


@each_row("text", [
    suite(PASSED),  # absent totals say nothing
    suite(PASSED, 'tests="" failures="-1" errors="x"'),
    suite(PASSED + SKIPPED, 'tests="1" skipped="1"'),  # skipped tests are not counted
    suite(PASSED + SKIPPED, 'tests="2" failures="0"'),
    suite(PASSED + BROKEN, PYTEST.format(errors=1, tests=3)),  # its teardown broke
    suite(PASSED + FAILED, 'tests="1" failures="1"'),  # mocha: a hook failed
    suite(FAILED, 'tests="1" failures="0" errors="1"'),  # mocha's xunit
    suite(PASSED + '<testcase name="todo" time="0"/>', 'tests="1"'),  # jest-junit
    suite('<testcase name="d" status="disabled"/>', 'tests="1" skipped="0" disabled="1"'),
    suite('<testcase name="f" status="failed"/>', 'tests="1" failures="1"'),
    suite(PASSED, 'tests="1"', suite(OTHER, 'tests="1"')),  # a suite that counts what is its own
    suite(PASSED, 'tests="2"', suite(OTHER, 'tests="1"')),
    f'<testsuites tests="2">{suite(PASSED)}{suite(OTHER)}</testsuites>',
    *(path.read_text() for path in sorted(FILES.glob("*.xml"))),
])  # fmt: skip
def test_totals_as_real_runners_count_them_cause_no_contradiction(text):
    assert read(text).contradictions == ()


@each_row("name", ["pytest", "gradle", "mocha", "behave", "unittest"])
def test_test_case_missing_from_real_file_is_noticed(name):
    text = (FILES / f"{name}.xml").read_text()
    case = re.search(r"<testcase [^>]*[^/]>.*?</testcase>", text, re.DOTALL)
    assert case
    assert read(text.replace(case[0], "", 1)).contradictions


def test_contradictions_are_limited_and_mention_pytest_subtests():
    suites = suite(PASSED, 'tests="9"') * 50
    messages = read(f"<testsuites>{suites}</testsuites>").contradictions
    assert (len(messages), messages[-1]) == (6, "45 more of its totals contradict its test cases.")
    assert "parametrize them" in read(suite(PASSED, PYTEST.format(errors=0, tests=4))).contradictions[0]


ERROR, SKIP = Undecided.ERROR, Undecided.SKIPPED


@each_row(("case", "expected"), [
    *((f'status="{word}"', ERROR) for word in ("error", "crashed", "Aborted", "timed out", "TIMED_OUT")),
    *((f'status="{word}"', ERROR) for word in ("unknown", "hook_error", "killed", "what is this")),
    *((f'result="{word}"', ERROR) for word in ("crashed", "interrupted")),
    *((f'status="{word}"', True) for word in ("passed", "PASS", "ok", "run", "success", "completed", "")),
    *((f'status="{word}"', False) for word in ("failed", "FAIL", "failure")),
    *((f'status="{word}"', SKIP) for word in ("notrun", "skipped", "disabled", "not_run", "untested")),
    ('status="run" result="suppressed"', SKIP),
    ('status="run" result="failed"', False),
    ('status="error" result="completed"', ERROR),
])  # fmt: skip
def test_junit_status_words_are_mapped_and_unknown_ones_are_errors(case, expected):
    (row,) = read(suite(f'<testcase name="a" {case}/>')).rows
    assert (row.undecided or row.passed) == expected
    assert bool(row.reason) is (row.undecided is ERROR)


@each_row("status", ["", "passed", "failed", "error", "skipped", "run", "crashed", "notrun"])
@each_row(("child", "expected"), [
    ('<error message="no server"/>', ERROR),
    ('<failure message="no server"/>', False),
    ('<error message="later"/><failure message="no server"/>', False),
    ('<skipped/><error message="no server"/>', ERROR),
])  # fmt: skip
def test_child_elements_override_status(status, child, expected):
    (row,) = read(suite(f'<testcase name="a" status="{status}">{child}</testcase>')).rows
    assert (row.undecided or row.passed, row.reason) == (expected, "no server")


def case(name: str, where: str = "") -> str:
    return f'<testcase classname="{where}" name="{name}"/>'


def named(name: str, *inner: str) -> str:
    return f'<testsuite name="{name}">{"".join(inner)}</testsuite>'


def within(title: str, *inner: str) -> str:
    return f'<testsuites name="{title}">{"".join(inner)}</testsuites>'


@each_row(("text", "names"), [
    # The path of the suites is part of a test's name.
    (within("", named("refunds", case("greets")), named("billing", case("greets"))),
     ["refunds › greets", "billing › greets"]),
    (named("all", named("refunds", case("greets", "C")), named("billing", case("greets", "C"))),
     ["all › refunds › C › greets", "all › billing › C › greets"]),
    # Go: the class is the last part of the package.
    (within("", named("shop.io/refunds/api", case("T", "api")), named("shop.io/a/api", case("T", "api"))),
     ["shop.io/refunds/api › T", "shop.io/a/api › T"]),
    # PHPUnit: the outermost suite is the path of its configuration.
    (
        named(
            "/srv/phpunit.xml",
            named("Unit", named(r"App\A", case("t", "App.A")), named(r"App\B", case("t", "App.B"))),
        ),
        ["Unit › App.A › t", "Unit › App.B › t"],
    ),
    # The class or the test repeats the name of the suite.
    (within("x", named("shop.Cart", case("t", "shop.Cart")), named("cart", case("cart adds"))),
     ["shop.Cart › t", "cart adds"]),
    # unittest-xml-reporting: the time of the run.
    (within("", named("A-20261128061121", case("t")), named("B-20261128061121", case("t"))),
     ["A › t", "B › t"]),
    # Equal names are different tests, unless the file marks attempts.
    (suite('<testcase name="a"/>' * 3), ["a", "a #2", "a #3"]),
    (suite('<testcase name="a"/>' * 2, 'tests="2"'), ["a", "a #2"]),
    (suite('<testcase name="a"/><testcase name="a"/><testcase name="a #2"/>'), ["a", "a #3", "a #2"]),
    (suite('<testcase name="a"/>' * 2, 'tests="1"'), ["a", "a"]),
    (suite('<testcase name="a"><flakyFailure/></testcase>'), ["a", "a"]),
    (suite('<testcase name="a"><failure/><rerunError/><rerunFailure/></testcase>'), ["a", "a", "a"]),
])  # fmt: skip
def test_test_names_are_unique_within_file(text, names):
    assert [row.test for row in read(text).rows] == names
