"""A real browser, the pages of real runs, and a watch on all that a page does beyond showing itself."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import compared_runs
import page_watch
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from ci_evals.domain.results.run import Results
from ci_evals.reports import report_files

Look = Callable[..., Page]
"""`look(page.html, at="#suite/test", width=390, **options of a profile)`: a tab of its own, watched."""


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the browser. Tests that need one are skipped without it, but not in CI."""
    if result := page_watch.chromium():
        return result
    reason = "no Chromium: install it (Debian: apt-get install chromium), or name it in CHROMIUM"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


class Lent:
    """A browser for as long as the tests of this folder follow each other.

    While it is open its event loop is in the way of tests that have their own.
    """

    def __init__(self) -> None:
        self._opened = ExitStack()
        self._browser: Browser | None = None
        self._profile: BrowserContext | None = None

    def browser(self, program: str) -> Browser:
        if self._browser is None:
            driver = self._opened.enter_context(sync_playwright())
            self._browser = driver.chromium.launch(executable_path=program, args=page_watch.FLAGS)
            self._opened.callback(self._browser.close)
        return self._browser

    def profile(self, program: str) -> BrowserContext:
        """The one for whoever has no wishes: each of its own costs a second of a processor."""
        if self._profile is None:
            self._profile = self.browser(program).new_context()
        return self._profile

    def take_back(self) -> None:
        self._browser = self._profile = None
        self._opened.close()


_LENT = Lent()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        _LENT.take_back()


def pytest_sessionfinish() -> None:
    _LENT.take_back()


@pytest.fixture
def browser(chromium: str) -> Browser:
    return _LENT.browser(chromium)


@pytest.fixture
def profile(chromium: str) -> BrowserContext:
    """A profile of the browser that many tests share, so nothing is saved in it."""
    return _LENT.profile(chromium)


@pytest.fixture
def look(browser: Browser, profile: BrowserContext) -> Iterator[Look]:
    """Opens a page. Whatever it does beyond showing itself fails the test: see `page_watch.Watch`.

    Where the browser is to be told something, as `color_scheme`, it is one of a profile of its own.
    """
    opened: list[page_watch.Watch] = []
    own = ExitStack()

    def look(file: Path, at: str = "", *, width: int = 1280, **options) -> Page:
        context = own.enter_context(browser.new_context(**options)) if options else profile
        watch = page_watch.Watch(context, file, at, width=width)
        opened.append(watch)
        return watch.page

    with own:
        yield look
        for watch in opened:
            watch.close()
    assert [event for watch in opened for event in watch.events] == []


@dataclass(frozen=True)
class Compared:
    """Two real runs: the second one's agent has a broken workflow, and was compared with the first."""

    folder: Path

    @property
    def page(self) -> Path:
        return self.folder / "head/report.html"

    @property
    def alone(self) -> Path:
        """The page of the first run, which was compared with nothing."""
        return self.folder / "base/report.html"

    @property
    def head(self) -> Results:
        return _read(self.folder / "head/_results.json")

    @property
    def base(self) -> Results:
        return _read(self.folder / "base/_results.json")


@pytest.fixture(scope="session")
def compared(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Compared:
    """The two runs, played by the first worker that asks, where there is a browser to look at them."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "compared"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "head/report.html").exists():
            compared_runs.compare(folder)
    return Compared(folder)


def _read(file: Path) -> Results:
    return report_files.load(file.read_bytes(), file.name)
