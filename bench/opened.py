"""How long a page takes to open in Chromium, three times: a line each; none where there is no Chromium."""

import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_DRAWN = """
  addEventListener("DOMContentLoaded", () => requestAnimationFrame(() =>
    setTimeout(() => { window.usable = performance.now() / 1000; })));
"""


def look(file: Path, program: str) -> None:
    """Print the seconds from the navigation until the table has been drawn and a script can answer."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--headless", "--no-sandbox"])
        for _ in range(3):
            page = browser.new_page()
            page.add_init_script(_DRAWN)
            page.goto(file.as_uri())
            page.wait_for_function("window.usable")
            print(page.evaluate("usable"))
            page.close()
        browser.close()


if __name__ == "__main__":
    if found := os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None):
        look(Path(sys.argv[1]).resolve(), found)
