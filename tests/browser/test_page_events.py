"""The watch on pages itself: it records whatever a page does that none of ours may do."""

import page_watch
import pytest

pytestmark = pytest.mark.browser
WICKED = """<!doctype html><meta charset="utf-8"><title>x</title><link rel="stylesheet" href="style.css">
<img src="http://127.0.0.1:9/pixel.png"><a id="away" href="about:blank">x</a><script>
console.error("complaint"); console.log("only said"); alert("boo"); window.open("about:blank");
try { new WebSocket("ws://127.0.0.1:9/"); } catch { }
navigator.sendBeacon("http://127.0.0.1:9/beacon");
setTimeout(() => { throw new Error("thrown"); }); setTimeout(() => { document.title = "done"; }, 50);
</script>"""


def test_watch_records_requests_errors_dialogs_tabs_and_navigation_and_no_other(profile, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(WICKED)
    watch = page_watch.Watch(profile, file)
    watch.page.wait_for_function("document.title === 'done'")
    watch.page.click("#away")
    watch.page.wait_for_url("about:blank")
    watch.close()
    for event in (
        f"request: GET {tmp_path.as_uri()}/style.css",
        "request: GET http://127.0.0.1:9/pixel.png",
        "request: POST http://127.0.0.1:9/beacon",
        "socket: ws://127.0.0.1:9/",
        "console: error: complaint",
        "error: thrown",
        "dialog: alert: boo",
        "tab: about:blank",
        "went to: about:blank",
    ):
        assert event in watch.events
    assert not any("only said" in event for event in watch.events)
    file.write_text('<!doctype html><title>x</title><a id="here" href="#here">x</a>')
    watch = page_watch.Watch(profile, file)
    watch.page.click("#here")
    watch.page.wait_for_url("**#here")
    watch.close()
    assert watch.events == []
