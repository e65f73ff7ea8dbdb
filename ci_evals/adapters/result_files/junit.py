"""JUnit XML, as pytest, vitest, surefire and most runners of tests write it.

There is no standard; this reads what pytest 9, vitest 3, jest-junit 17, Gradle 4 and maven-surefire write.
`failure` is a failure, `error` undecided, `skipped` not run.

Reruns: surefire notes them in `flakyFailure` and `rerunFailure` below the last attempt. pytest-rerunfailures
writes each attempt as a `testcase`, those that were run again without any child, as if they had passed; the
`tests` of the suite counts them once.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from ci_evals.adapters.result_files.reader import Reader
from ci_evals.adapters.result_files.source import SourceFile
from ci_evals.domain.result_rows import OfficialScore, ResultSet, Row, Undecided

_OUTCOMES = {"failure", "error", "skipped"}
_BROKEN = {"failure", "error"}
_FAILED = {"failed", "failure", "fail", "error", "errored", "broken"}
_NOT_RUN = {"notrun", "skipped", "skip", "disabled", "suppressed", "ignored", "pending"}
"""Words of the attributes `status` and `result`, by which some tools say more than by elements."""
_ATTEMPTS = {"flakyFailure", "flakyError", "rerunFailure", "rerunError"}
_OF = " › "
"""Between the class of a test and its name."""
_MOST_DEPTH = 200
_MOST_REASON = 4_000
_OFFICIAL_RULE = "Errors count as failures, and of a test that was run again only the last attempt counts."


@dataclass
class _Suite:
    name: str
    tests: int | None
    rows: list[Row] = field(default_factory=list)
    """The last attempts of its test cases."""
    attempts: dict[int, list[Row]] = field(default_factory=dict)
    """Earlier attempts that surefire notes, by the index of the row."""
    broken: int = 0
    """Failures and errors, by its own count."""
    found: int = 0
    """Those of its test cases, and of all suites within it."""


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
    rows = [row for suite in parser.suites for row in _attempts(suite)]
    last = [row for suite in parser.suites for row in _last(suite)]
    counted = [row for row in last if row.undecided is not Undecided.SKIPPED]
    official = OfficialScore(
        name="tests passed",
        value=sum(bool(row.passed) for row in counted) / len(counted) if counted else None,
        of=len(counted),
        rule=_OFFICIAL_RULE,
    )
    name = parser.name()
    prefix = f"{name}{_OF}"
    if all(row.test.startswith(prefix) for row in rows):  # Gradle and surefire: a file for each class
        rows = [row._replace(test=row.test.removeprefix(prefix)) for row in rows]
    return [ResultSet(suite=name, rows=rows, official=official)]


READER = Reader("junit", "JUnit XML", read)


def _attempts(suite: _Suite) -> list[Row]:
    """Return all attempts in the order of the tests' last ones."""
    last = {row.test: index for index, row in enumerate(suite.rows)}
    reruns = suite.tests is not None and suite.tests < len(suite.rows)
    rows: list[Row] = []
    for index, row in enumerate(suite.rows):
        rows += suite.attempts.get(index, ())
        again = reruns and last[row.test] > index and row.passed
        rows.append(row._replace(passed=False, reason="failed and was run again") if again else row)
    return rows


def _last(suite: _Suite) -> Sequence[Row]:
    if suite.tests is None or suite.tests >= len(suite.rows):
        return suite.rows
    return list({row.test: row for row in suite.rows}.values())


class _Parser:
    """Collects the test cases of a file while it is parsed, so that nothing else of it is kept."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self.root = ""
        self.suites: list[_Suite] = []
        self._title = ""
        self._open: list[_Suite] = []
        self._depth = 0
        self._case: Row | None = None
        self._cases = 0
        self._earlier: list[Row] = []
        self._child = ""
        self._message = ""
        self._text: list[str] = []
        self._length = 0

    def parse(self, data: bytes) -> None:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._entity
        parser.Parse(data, True)  # noqa: FBT003  # C takes it by place alone

    def name(self) -> str:
        """Return the name of the file's tests, which does not depend on that of the file."""
        names = {suite.name for suite in self.suites if suite.rows} - {""}
        return self._title or (names.pop() if len(names) == 1 else "tests")

    def _entity(self, *_: object) -> None:
        raise self._file.broken("declares XML entities, which no JUnit file does. It is not read.")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]  # some have a namespace
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise self._file.broken(f"is nested more than {_MOST_DEPTH} levels deep.")
        if not self.root:
            if tag not in {"testsuites", "testsuite"}:
                raise _OtherXMLError
            self.root = tag
            self._title = attributes.get("name", "").strip() if tag == "testsuites" else ""
        if tag == "testsuite":
            suite = _Suite(attributes.get("name", "").strip(), _count(attributes.get("tests")))
            suite.broken = sum(_count(attributes.get(key)) or 0 for key in ("failures", "errors"))
            self._open.append(suite)
            self.suites.append(self._open[-1])
        elif tag == "testcase":
            if self._case:
                raise self._file.broken("has a testcase within a testcase.")
            self._case, self._earlier = _case(attributes, self._suite().name), []
            self._cases += 1
            self._file.check_rows(self._cases)
        elif self._case is None and tag in _BROKEN and self._open:
            raise self._file.broken(f"has {tag!r} outside of every testcase: the suite itself broke.")
        elif self._case and (tag in _OUTCOMES or tag in _ATTEMPTS):
            self._child, self._text, self._length = tag, [], 0
            for suite in self._open if tag in _BROKEN else ():
                suite.found += 1
            self._message = attributes.get("message") or attributes.get("type") or ""

    def _end(self, tag: str) -> None:
        tag = tag.rpartition(":")[2]
        self._depth -= 1
        if tag == "testsuite":
            self._check_count(self._open.pop())
        elif tag == "testcase" and self._case:
            suite = self._suite()
            if self._earlier:
                suite.attempts[len(suite.rows)] = self._earlier
            suite.rows.append(self._case)
            self._case = None
        elif self._case and tag == self._child:
            self._end_of_child(self._case, tag, _reason(self._message, "".join(self._text)))
            self._child = ""

    def _check_count(self, suite: _Suite) -> None:
        """Refuse a suite that broke as a whole: its own count is all that says so."""
        if suite.broken > suite.found:
            raise self._file.broken(
                f"counts {suite.broken:,} failures and errors in the testsuite {suite.name[:100]!r}, but its "
                f"test cases have {suite.found:,}. The suite itself may have broken, or the file is cut off."
            )

    def _end_of_child(self, case: Row, tag: str, reason: str) -> None:
        if tag in {"flakyFailure", "rerunFailure"}:
            self._earlier.append(case._replace(passed=False, undecided=None, reason=reason))
        elif tag in {"flakyError", "rerunError"}:
            self._earlier.append(case._replace(passed=None, undecided=Undecided.ERROR, reason=reason))
        elif tag == "failure":
            self._case = case._replace(passed=False, undecided=None, reason=reason)
        elif case.passed is not False and case.undecided is not Undecided.ERROR:
            # A test that fails, and whose teardown then breaks, has failed; one that broke was not skipped.
            cause = Undecided.ERROR if tag == "error" else Undecided.SKIPPED
            self._case = case._replace(passed=None, undecided=cause, reason=reason)

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


def _case(attributes: dict[str, Any], suite: str) -> Row:
    name, where = attributes.get("name", "").strip(), attributes.get("classname", "").strip()
    if where == name:  # jest-junit, unless it is configured otherwise
        where = ""
    labels = {attributes.get(key, "").strip().lower() for key in ("status", "result")}
    skipped = bool(labels & _NOT_RUN)
    group = where or attributes.get("file", "").strip() or suite
    return Row(
        test=f"{where}{_OF}{name}" if where else name,
        passed=None if skipped else not labels & _FAILED,
        undecided=Undecided.SKIPPED if skipped else None,
        groups=(group,) if group else (),
        seconds=_seconds(attributes.get("time", "")),
    )


def _count(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


def _seconds(text: str) -> float | None:
    text = text.replace(",", "")  # surefire writes 1,234.5
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d*)?", text) else None
