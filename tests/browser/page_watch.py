"""A tab of a real browser whose every event is recorded."""

import os
import shutil
from pathlib import Path

from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Frame, Page, Request

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_SECONDS = 10
"""The time that a page has to show what should be there."""


def chromium() -> str | None:
    """The browser's program: the one that CHROMIUM names, else the first in PATH. None is ever downloaded."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


class Watch:
    """A tab, and what its page did beyond showing itself.

    Args:
        context: Where to open it.
        file: The page.
        at: The address within it, with its `#`.
        width: Of the window, in pixels.
    """

    def __init__(self, context: BrowserContext, file: Path, at: str = "", *, width: int = 1280) -> None:
        self.events: list[str] = []
        """Complaints in the console, errors, requests, dialogs, tabs, and addresses of other pages."""
        self._address = file.as_uri()
        self.page = context.new_page()
        self.page.set_default_timeout(_SECONDS * 1000)
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.on("popup", self._on_page)
        self.page.on("request", self._on_request)
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.events.append(f"error: {error}"))
        self.page.on("dialog", self._on_dialog)
        self.page.on("download", lambda download: self.events.append(f"download: {download.url}"))
        self.page.on("websocket", lambda socket: self.events.append(f"socket: {socket.url}"))
        self.page.on("framenavigated", self._on_navigation)
        self.page.goto(self._address + at)

    def close(self) -> None:
        self.page.close()

    def _on_page(self, page: Page) -> None:
        self.events.append(f"tab: {page.url}")

    def _on_request(self, request: Request) -> None:
        if request.url.partition("#")[0] != self._address:
            self.events.append(f"request: {request.method} {request.url}")

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning", "assert"}:
            self.events.append(f"console: {message.type}: {message.text}")

    def _on_dialog(self, dialog: Dialog) -> None:
        self.events.append(f"dialog: {dialog.type}: {dialog.message}")
        dialog.dismiss()

    def _on_navigation(self, frame: Frame) -> None:
        if frame.url.partition("#")[0] != self._address:
            self.events.append(f"went to: {frame.url}")
