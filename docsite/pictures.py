"""The pictures of comment and page in README, drawn from a real run of the demo agent in light and dark.

`record` runs a bundled suite twice, as a push to main and as a pull request in which the agent has a broken
workflow, and keeps the results. `draw` draws what the renderers of today make of them.
"""

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from cmarkgfm import github_flavored_markdown_to_html
from cmarkgfm.cmark import Options
from playwright.sync_api import sync_playwright

from ci_evals import __version__
from ci_evals.domain.errors import Exit
from ci_evals.domain.results.run import Results
from ci_evals.reports import report_files
from ci_evals.reports.markdown import comment
from ci_evals.reports.markdown.sections import SummaryContext
from ci_evals.reports.page import page
from ci_evals.reports.story.comparison_runs import ComparisonRuns
from ci_evals.reports.story.story import story_of

HERE = Path(__file__).parent
RECORDED = HERE / "example"
PICTURES = HERE.parent / "docs/images"
DIGEST = PICTURES / "inputs.sha256"
FRAME = HERE / "comment.html"

SUITE = "demo:retail"
BROKEN = "REFUND_REQUEST,DAMAGED_ITEM"
PORT = 8765
REPOSITORY = "acme/shop-agent"
HEAD, BASE = "7d5c3b1a9f8e6d4c2b0a8f6e4d2c0b9a7f5e3d1c", "1f0c2d8a4b6e9d7c3a5b1e8f0d2c4a6b8e9f7d5c"
RUN = f"https://github.com/{REPOSITORY}/actions/runs/4711"

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
COMMENT_WIDTH, PAGE_SIZE = 860, (1280, 900)


def record() -> None:
    """Run the suite as on main and as in a pull request, and keep both results."""
    repository = {"full_name": REPOSITORY, "default_branch": "main", "id": 1}
    ours = {"repo": repository}
    ends = {"head": {"sha": HEAD, "ref": "refunds", **ours}, "base": {"sha": BASE, "ref": "main", **ours}}
    request = {"number": 12, **ends}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _run(folder, "base", {"repository": repository}, "push", BASE, "--baseline=none")
        with _demo_agent():
            event = {"repository": repository, "pull_request": request, "number": 12}
            agent = (f"--base-url=http://127.0.0.1:{PORT}", "--agent-key=not-a-secret", "--baseline=base")
            _run(folder, "head", event, "pull_request", HEAD, *agent)
        for side in ("base", "head"):
            data = (folder / side / "_results.json").read_bytes()
            (RECORDED / f"{side}.json.gz").write_bytes(gzip.compress(data, mtime=0))


def _run(folder: Path, side: str, event: object, name: str, sha: str, *options: str) -> None:
    ref = "refs/heads/main" if name == "push" else "refs/pull/12/merge"
    (folder / "event.json").write_text(json.dumps(event))
    environ = {key: os.environ[key] for key in ("PATH", "HOME")} | {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": name,
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_REF": ref,
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_RUN_ID": "4711",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_SHA": sha,
    }
    common = ("--provider=offline", f"--output-dir={side}", "--comment=never", "--quiet")
    command = [sys.executable, "-m", "ci_evals", "run", SUITE, *common, *options]
    ended = subprocess.run(command, cwd=folder, env=environ, check=False, stdout=subprocess.DEVNULL)
    if ended.returncode not in {Exit.PASSED, Exit.FAILED}:
        raise RuntimeError(f"the run of {side} ended with exit code {ended.returncode}")


@contextmanager
def _demo_agent() -> Iterator[None]:
    command = [sys.executable, "-m", "ci_evals", "demo-agent", f"--port={PORT}", f"--break={BROKEN}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        if server.stdout:
            server.stdout.readline()  # it listens
        try:
            yield
        finally:
            server.terminate()


def recorded(side: str) -> Results:
    """Return the results of one of the two runs."""
    file = RECORDED / f"{side}.json.gz"
    return report_files.load(gzip.decompress(file.read_bytes()), file.name, earlier_version=True)


def texts() -> Mapping[str, str]:
    """Return the comment and the page, as they are now."""
    head, base = recorded("head"), recorded("base")
    written = comment.render(story_of(head), SummaryContext(run_url=RUN, commit=HEAD))
    body = github_flavored_markdown_to_html(written, Options.CMARK_OPT_UNSAFE)
    return {
        "comment": FRAME.read_text().replace("<!-- comment -->", body),
        "page": "".join(page.render(story_of(head, ComparisonRuns(baseline=base)))),
    }


def digest() -> str:
    """Return a digest of what the pictures show: without the version, and the packed conversations."""
    shown = "".join(texts().values()).replace(__version__, "VERSION")
    shown = re.sub(r'<script type="application/octet-stream".*?</script>', "", shown, flags=re.DOTALL)
    return hashlib.sha256(shown.encode()).hexdigest()


def draw() -> None:
    """Draw the pictures, and write down what they show. Needs Chromium, and fonts with color emoji."""
    fonts = shutil.which("fc-list")
    emoji = [fonts, ":color=true:charset=274c"] if fonts else []
    if not emoji or not subprocess.run(emoji, check=True, capture_output=True).stdout:
        raise RuntimeError("no font here has color emoji (Debian: apt-get install fonts-noto-color-emoji)")
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for what, text in texts().items():
            file = Path(name) / f"{what}.html"
            file.write_text(text)
            for scheme in SCHEMES:
                width, height = PAGE_SIZE if what == "page" else (COMMENT_WIDTH, 400)
                tab = browser.new_page(
                    viewport={"width": width, "height": height}, color_scheme=scheme, device_scale_factor=1.5
                )
                tab.goto(file.as_uri())
                tab.screenshot(path=PICTURES / f"{what}-{scheme}.png", full_page=what == "comment")
                tab.close()
        browser.close()
    DIGEST.write_text(digest() + "\n")
