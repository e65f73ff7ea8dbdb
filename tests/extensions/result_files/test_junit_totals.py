"""JUnit files that contradict themselves name what contradicts, and the dialects of real runners do not."""

import re
from pathlib import Path

from each_row import each_row

from ci_evals.extension_support.result_files.result_rows import ResultSet, Undecided
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.extensions.result_files.reading import read_file

FILES = Path(__file__).parent / "files/junit"
PASSED = '<testcase classname="c" name="a"/>'
OTHER = '<testcase classname="c" name="b"/>'
FAILED = '<testcase classname="c" name="f"><failure message="m"/></testcase>'
BROKEN = '<testcase classname="c" name="e"><error message="m"/></testcase>'
PYTEST = 'errors="{errors}" failures="0" skipped="0" tests="{tests}" time="1" timestamp="t" hostname="h"'
SKIPPED = '<testcase classname="c" name="s"><skipped/></testcase>'


def read(text: str) -> ResultSet:
    _, (one,) = read_file(SourceFile("junit.xml", text.encode()))
    return one


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
