"""JUnit XML, as pytest, vitest, surefire and most runners of tests write it.

There is no standard; this reads what pytest 9, vitest 4, jest-junit 17, mocha 12, Playwright 1.65, behave
1.3, Gradle 4 and maven-surefire write. `failure` is a failure, `error` undecided, `skipped` not run, whatever
the attribute `status` says; where there is no such element, `status` counts.

Two test cases of one name are two tests, unless the file marks them as attempts of one. surefire notes
attempts in `flakyFailure` and `rerunFailure` below the last one. pytest-rerunfailures writes each attempt as
a `testcase`, those that were run again without any child, as if they had passed; the `tests` of the suite
counts them once.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from xml.parsers import expat

from ci_evals.domain.results.suite import OfficialScore
from ci_evals.extension_support.result_files.reader import Reader
from ci_evals.extension_support.result_files.result_rows import ResultSet, Row, Undecided
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.extensions.result_files.junit_names import OF, identity, numbered, suite_name
from ci_evals.extensions.result_files.junit_totals import Totals, totals_of

_OUTCOMES = {"failure", "error", "skipped"}
_PASSED = {
    *("pass", "passed", "success", "successful", "succeeded", "ok", "true", "expected", "flaky", "fixed"),
    *("run", "complete", "completed", "finished", "done", "executed", "xfail", "xfailed"),
}
_FAILED = {"failed", "failure", "fail", "false", "unexpected", "xpassed"}
_NOT_RUN = {
    *("notrun", "not run", "skipped", "skip", "disabled", "suppressed", "ignored", "pending", "untested"),
    "filtered",
}
"""Words of the attributes `status` and `result`, by which some tools say more than by elements. Any other
word, such as `crashed` or `timed out`, is an error."""
_ATTEMPTS = {"flakyFailure", "flakyError", "rerunFailure", "rerunError"}
_MOST_DEPTH = 200
_MOST_REASON = 4_000
_MOST_CONTRADICTIONS = 5
_OFFICIAL_RULE = "Errors count as failures, and of a test that was run again only the last attempt counts."

_UNSTARTED = "took no time, in a run with failures: vitest lists tests so that --bail kept from starting"


@dataclass
class _Suite:
    path: tuple[str, ...]
    """Its name, after those of the suites around it."""
    totals: Totals
    cases: list["_Case"] = field(default_factory=list)

    @property
    def reruns(self) -> bool:
        """True if it lists attempts of one test as test cases: it counts fewer tests than it lists."""
        tests = self.totals.stated.get("tests")
        if tests is None:
            return False
        if self.totals.of_pytest:  # which counts a test once more if its teardown breaks
            return tests < len(self.cases) + self.totals.errors
        to_do = sum(case.row.passed is True and case.row.seconds == 0 for case in self.cases)
        return tests < len(self.cases) - to_do  # which jest-junit lists, and does not count


@dataclass
class _Case:
    """A test case: its names, and its outcome in a row whose test has no name yet."""

    name: str
    where: str
    row: Row
    attempts: tuple[Row, ...] = ()
    """Earlier attempts that surefire notes."""


class _OtherXMLError(Exception):
    """The file is not JUnit XML."""


def read(file: SourceFile) -> Sequence[ResultSet] | None:
    """Read all test suites of a file as one suite."""
    if not file.data[:1000].removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        return None
    parser = _Parser(file)
    try:
        parser.parse(file.data)
    except _OtherXMLError:
        return None
    except expat.ExpatError as error:
        if parser.root:
            raise file.broken(f"is broken JUnit XML, which may be cut off: {error}.") from error
        return None
    _mark_unstarted(parser.suites)
    name, alone = parser.name()
    tests = [test for suite in parser.suites for test in _tests(suite, alone)]
    names = numbered([test for test, _ in tests])
    prefix = f"{name}{OF}"
    if all(test.startswith(prefix) for test in names if test):  # Gradle and surefire: a file for each class
        names = [test.removeprefix(prefix) for test in names]
    rows = [
        row._replace(test=test) for test, (_, attempts) in zip(names, tests, strict=True) for row in attempts
    ]
    counted = [last for _, (*_, last) in tests if last.undecided is not Undecided.SKIPPED]
    official = OfficialScore(
        name="tests passed",
        value=sum(bool(row.passed) for row in counted) / len(counted) if counted else None,
        of=len(counted),
        rule=_OFFICIAL_RULE,
    )
    return [ResultSet(suite=name, rows=rows, official=official, contradictions=parser.contradictions())]


READER = Reader(
    "junit",
    "JUnit XML",
    read,
    files="JUnit XML",
    tried_with="pytest 9.2, vitest 3.2, 4.1, jest 30.5 with jest-junit 17.0, mocha 12.0 "
    "(`xunit`), Playwright 1.65, behave 1.3, unittest-xml-reporting 4.0, Gradle "
    "4.4; surefire-style files",
    compared="`tests`, `failures`, `errors`, `skipped` and `disabled` of every `testsuites` and `testsuite`",
)


def _mark_unstarted(suites: Sequence[_Suite]) -> None:
    """Take the passes that took no time, in a run of vitest with failures, for tests that never started.

    With `--bail`, vitest lists these as it lists passes. A test that ran takes some time.
    """
    cases = [case for suite in suites if suite.totals.of_vitest for case in suite.cases]
    if all(case.row.passed is not False for case in cases):
        return
    for case in cases:
        if case.row.passed and case.row.seconds == 0:
            case.row = case.row._replace(passed=None, undecided=Undecided.EMPTY, reason=_UNSTARTED)


def _tests(suite: _Suite, alone: str) -> Iterator[tuple[str, list[Row]]]:
    """Yield the tests of a suite, each with its attempts, in the order of the last ones."""
    path = tuple(name for name in suite.path if name != alone)
    names = [identity(path, case.where, case.name) for case in suite.cases]
    if not suite.reruns:
        for name, case in zip(names, suite.cases, strict=True):
            yield name, [*case.attempts, case.row]
        return
    names = [
        name or f"\0{index}" for index, name in enumerate(names)
    ]  # without a name, none is the rerun of another
    last = {name: index for index, name in enumerate(names)}
    earlier: dict[str, list[Row]] = {}
    for index, (name, case) in enumerate(zip(names, suite.cases, strict=True)):
        attempts = earlier.setdefault(name, [])
        attempts += case.attempts
        if last[name] == index:
            yield name if case.name else "", [*attempts, case.row]
        elif case.row.passed:
            attempts.append(case.row._replace(passed=False, reason="failed and was run again"))
        else:
            attempts.append(case.row)


class _Parser:
    """Collects the test cases of a file while it is parsed, so that nothing else of it is kept."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self._xml = expat.ParserCreate()
        self.root = ""
        self.suites: list[_Suite] = []
        self._title = ""
        self._open: list[_Suite] = []
        self._whole: Totals | None = None
        """The totals of `testsuites`."""
        self._contradictions: list[str] = []
        self._depth = 0
        self._case: _Case | None = None
        self._children: dict[str, str] = {}
        """The outcomes of the test case as elements, each with its first reason."""
        self._counts: dict[str, int] = {}
        """The number of these elements."""
        self._cases = 0
        self._attempts: list[Row] = []
        self._child = ""
        self._message = ""
        self._text: list[str] = []
        self._length = 0

    def parse(self, data: bytes) -> None:
        parser = self._xml
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._entity
        parser.Parse(data, True)  # noqa: FBT003  # C takes it by place alone

    def name(self) -> tuple[str, str]:
        """Return the name of the file's tests, and that of its suite if this gives it."""
        names = {suite.path[-1] for suite in self.suites if suite.cases} - {""}
        alone = names.pop() if len(names) == 1 and not self._title else ""
        return self._title or alone or "tests", alone

    def contradictions(self) -> tuple[str, ...]:
        """Return the totals that the test cases contradict."""
        found = self._contradictions
        if self._whole and (wrong := self._whole.contradiction()):
            found = [wrong, *found]
        if len(found) > _MOST_CONTRADICTIONS:
            rest = len(found) - _MOST_CONTRADICTIONS
            found = [*found[:_MOST_CONTRADICTIONS], f"{rest:,} more of its totals contradict its test cases."]
        return tuple(found)

    def _entity(self, *_: object) -> None:
        raise self._file.broken("declares XML entities, which no JUnit file does. It is not read.")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]  # some have a namespace
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise self._file.broken(f"is nested more than {_MOST_DEPTH} levels deep.")
        if not self.root:
            self._start_root(tag, attributes)
        if tag == "testsuite":
            self._start_suite(attributes)
        elif tag == "testcase":
            if self._case:
                raise self._file.broken("has a testcase within a testcase.")
            self._suite()
            self._case, self._children, self._counts, self._attempts = _case(attributes), {}, {}, []
            self._cases += 1
            self._file.check_rows(self._cases)
        elif self._case is None and tag in {"failure", "error"} and self._open:
            raise self._file.broken(f"has {tag!r} outside of every testcase: the suite itself broke.")
        elif self._case and (tag in _OUTCOMES or tag in _ATTEMPTS):
            self._child, self._text, self._length = tag, [], 0
            self._message = attributes.get("message") or attributes.get("type") or ""

    def _start_root(self, tag: str, attributes: dict[str, str]) -> None:
        if tag not in {"testsuites", "testsuite"}:
            raise _OtherXMLError
        self.root = tag
        if tag == "testsuites":
            self._title = attributes.get("name", "").strip()
            self._whole = totals_of(tag, attributes, self._xml.CurrentLineNumber)

    def _start_suite(self, attributes: dict[str, str]) -> None:
        around = self._open[-1].path if self._open else ()
        name = suite_name(attributes.get("name", ""))
        totals = totals_of("testsuite", attributes, self._xml.CurrentLineNumber)
        suite = _Suite((*around, name), totals)
        self._open.append(suite)
        self.suites.append(suite)

    def _end(self, tag: str) -> None:
        tag = tag.rpartition(":")[2]
        self._depth -= 1
        if tag == "testsuite":
            self._end_suite(self._open.pop())
        elif tag == "testcase" and self._case:
            self._end_case(self._case)
            self._case = None
        elif self._case and tag == self._child:
            self._end_child(self._case.row, tag, _reason(self._message, "".join(self._text)))
            self._child = ""

    def _end_suite(self, suite: _Suite) -> None:
        last = {(case.where, case.name): case.row for case in suite.cases}
        suite.totals.passed += sum(bool(row.passed) and row.seconds != 0 for row in last.values())
        if wrong := suite.totals.contradiction():
            self._contradictions.append(wrong)
        around = self._open[-1].totals if self._open else self._whole
        if around:
            around.add(suite.totals)

    def _end_case(self, case: _Case) -> None:
        suite, children = self._suite(), self._children
        not_run = "skipped" in children or case.row.undecided is Undecided.SKIPPED
        case.row, case.attempts = _outcome(case.row, children), tuple(self._attempts)
        if not case.row.groups and suite.path[-1]:
            case.row = case.row._replace(groups=(suite.path[-1],))
        suite.cases.append(case)
        failed, errored = case.row.passed is False, case.row.undecided is Undecided.ERROR
        totals = suite.totals
        totals.cases += 1
        # Some tools write no element, but the word for it.
        totals.failures += self._counts.get("failure", int(failed))
        totals.errors += self._counts.get("error", int(errored))
        totals.broken += failed or errored
        totals.not_run += not_run

    def _end_child(self, row: Row, tag: str, reason: str) -> None:
        if tag in {"flakyFailure", "rerunFailure"}:
            self._attempts.append(row._replace(passed=False, undecided=None, reason=reason))
        elif tag in {"flakyError", "rerunError"}:
            self._attempts.append(row._replace(passed=None, undecided=Undecided.ERROR, reason=reason))
        else:
            self._children.setdefault(tag, reason)
            self._counts[tag] = self._counts.get(tag, 0) + 1

    def _characters(self, text: str) -> None:
        if self._child and self._length < _MOST_REASON:
            self._text.append(text[: _MOST_REASON - self._length])
            self._length += len(self._text[-1])

    def _suite(self) -> _Suite:
        if not self._open:
            raise self._file.broken("has a testcase outside of every testsuite.")
        return self._open[-1]


def _reason(message: str, details: str) -> str:
    """The message, or the first line of what has none, as a paragraph, then the details: a traceback."""
    message, details = message.strip(), details.strip()
    if not message:
        message, _, details = details.partition("\n")
    return f"{message}\n\n{details}".strip()[:_MOST_REASON]


def _case(attributes: Mapping[str, str]) -> _Case:
    name, where = attributes.get("name", "").strip(), attributes.get("classname", "").strip()
    if where == name:  # jest-junit, unless it is configured otherwise
        where = ""
    group = where or attributes.get("file", "").strip()
    passed, undecided, reason = _by_words(attributes)
    row = Row(
        test="",
        passed=passed,
        undecided=undecided,
        reason=reason,
        groups=(group,) if group else (),
        seconds=_seconds(attributes.get("time", "")),
    )
    return _Case(name, where, row)


def _by_words(attributes: Mapping[str, str]) -> tuple[bool | None, Undecided | None, str]:
    """Return the outcome that the attributes of a test case say, and the reason of one that is unclear."""
    told = [word for key in ("status", "result") if (word := attributes.get(key, "").strip())]
    if not told:
        return True, None, ""
    words = {re.sub(r"[\s_-]+", " ", word.lower()): word for word in told}
    if words.keys() & _FAILED:
        return False, None, ""
    if unclear := [word for key, word in words.items() if key not in _PASSED | _NOT_RUN]:
        return None, Undecided.ERROR, f"its status is {unclear[0][:100]!r}"
    if words.keys() & _NOT_RUN:
        return None, Undecided.SKIPPED, ""
    return True, None, ""


def _outcome(row: Row, children: Mapping[str, str]) -> Row:
    """Return the outcome of a test case with these elements, which say more than its attributes."""
    if not children:
        return row
    if "failure" in children:  # also of a test whose teardown then breaks
        return row._replace(passed=False, undecided=None, reason=children["failure"])
    if "error" in children:
        return row._replace(passed=None, undecided=Undecided.ERROR, reason=children["error"] or row.reason)
    if "skipped" in children and (row.passed or row.undecided is Undecided.SKIPPED):
        return row._replace(passed=None, undecided=Undecided.SKIPPED, reason=children["skipped"])
    return row


def _seconds(text: str) -> float | None:
    text = text.replace(",", "")  # surefire writes 1,234.5
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d*)?", text) else None
