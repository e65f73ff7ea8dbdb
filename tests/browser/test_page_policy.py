"""The content-security policy of the page is in force, and not only written."""

import pytest

pytestmark = pytest.mark.browser
TRY = """async () => {
  const add = (tag, props) => document.body.append(Object.assign(document.createElement(tag), props));
  const attempts = {
    script: () => {
      const script = document.createElement("script");
      script.append(document.createTextNode("window.pwned = 1"));
      document.body.append(script);
    },
    address: () => add("script", { src: "http://127.0.0.1:9/" }),
    eval: () => eval("window.pwned = 1"),
    listener: () => document.body.setAttribute("onclick", "window.pwned = 1"),
    markup: () => { document.body.innerHTML += "<b>x</b>"; },
    trust: () => trustedTypes.createPolicy("mine", {}),
    link: () => { add("a", { href: "javascript:window.pwned=1" }); document.body.lastChild.click(); },
    style: () => add("style", { textContent: "body { display: none }" }),
    sheet: () => add("link", { rel: "stylesheet", href: "http://127.0.0.1:9/" }),
    dress: () => document.body.setAttribute("style", "display: none"),
    image: () => add("img", { src: "data:image/gif;base64,R0lGODlhAQABAAAAACw=" }),
    sound: () => add("audio", { src: "data:audio/wav,x" }),
    frame: () => add("iframe", { src: "data:text/html,x" }),
    object: () => add("object", { data: "data:text/html,x" }),
    worker: () => new Worker("data:text/javascript,1"),
    request: () => fetch("http://127.0.0.1:9/").catch(() => {}),
    beacon: () => navigator.sendBeacon("http://127.0.0.1:9/"),
    base: () => add("base", { href: "http://127.0.0.1:9/" }),
    form: () => { add("form", { action: "http://127.0.0.1:9/" }); document.body.lastChild.submit(); },
  };
  let refused = 0;
  addEventListener("securitypolicyviolation", () => { refused++; });
  const left = [];
  for (const [name, attempt] of Object.entries(attempts)) {
    const before = refused;
    setTimeout(() => { try { attempt(); } catch { } });  // in the page's own name, and not in the debugger's
    for (let wait = 0; wait < 100 && refused === before; wait++) {
      await new Promise((done) => setTimeout(done, 10));
    }
    if (refused === before) left.push(name);
  }
  const hidden = getComputedStyle(document.body).display === "none";
  return { left, pwned: window.pwned !== undefined, hidden };
}"""
"""Does all that the policy forbids, and tells what was not refused."""


@pytest.fixture
def page(profile):
    page = profile.new_page()
    yield page
    page.close()


def test_content_security_policy_blocks_scripts_styles_requests_and_markup(page, compared):
    page.goto(compared.page.as_uri())
    assert page.evaluate(TRY) == {"left": [], "pwned": False, "hidden": False}


def test_changed_script_or_style_is_blocked_by_its_hash(page, compared, tmp_path):
    whole, file = compared.page.read_text(), tmp_path / "changed.html"
    for mark, other, works in (
        ('"use strict";', '"use strict";', True),
        ('"use strict";', '"use strict"; window.pwned = 1;', False),
        ("<style>", "<style>body { top: 0 } ", False),
    ):
        assert whole.count(mark) == 1
        file.write_text(whole.replace(mark, other))
        page.goto(file.as_uri())
        styles = "document.styleSheets[0]?.cssRules.length > 0"
        ran, worn = page.evaluate(f"[typeof TESTS !== 'undefined', {styles}]")
        assert ((ran and worn), page.evaluate("window.pwned")) == (works, None)
