"""Nothing that an agent, a user, a judge or a suite says becomes markup, a command or a reference."""

import re
import time
from ipaddress import IPv6Address
from xml.etree import ElementTree as ET

import hostile_text
import pytest
from each_row import each_row
from hypothesis import example, given

from ci_evals.reports import sanitize

ZERO_WIDTH = "\u200b"


@each_row(("text", "cleaned"), [
    ("plain – ünïcödé 漢字 🎉\tand tab\nand line", "plain – ünïcödé 漢字 🎉\tand tab\nand line"),
    ("\x1b[1;31mred\x1b[0m", "red"),
    ("\x1b]8;;https://evil.example\x07text\x1b]8;;\x07", "text"),
    ("\x1b]never ended", "never ended"),
    ("\x9b31mred", "red"),
    ("a\r\nb\rc\x85d\u2028e", "a\nb\nc\nd\ne"),
    ("\ud83d alone", "\ufffd alone"),
    ("\ud83d\ude00", "😀"),
    ("abc\u202edef\u200bghi\U000e0041", "abcdefghi"),
    ("❤\ufe0f stays, ❤\ufe0f\ufe0f\ufe0e goes", "❤\ufe0f stays, ❤ goes"),
    ("\x00\x07\x7f\x80", ""),
])  # fmt: skip
def test_clean_removes_escapes_controls_and_invisible_characters(text, cleaned):
    assert sanitize.clean(text) == cleaned


@given(hostile_text.any_text)
@example("".join(hostile_text.CORPUS))
def test_inline_markdown_renders_as_the_plain_text(text):
    page = hostile_text.RenderedMarkdown(f"start {sanitize.inline(text)} end")
    assert page.tags == ["p"]
    assert page.text.replace(ZERO_WIDTH, "").split() == f"start {sanitize.one_line(text)} end".split()
    assert not page.live
    assert hostile_text.RenderedMarkdown(f"above\n{sanitize.inline(text)}\n").tags == ["p"]
    assert hostile_text.RenderedMarkdown(sanitize.inline(text)).tags in (["p"], [])


@given(hostile_text.any_text)
@example("".join(hostile_text.CORPUS))
@example("a deadbeef cafe1234 b `x` deadbeef")
def test_sanitized_sentence_renders_as_inert_text_and_code(text):
    for line in (f"start {sanitize.sentence(text)} end", sanitize.sentence(text)):
        page = hostile_text.RenderedMarkdown(line)
        assert set(page.tags) <= {"p", "code"}
        assert not page.live
    page = hostile_text.RenderedMarkdown(f"start {sanitize.sentence(text)} end")
    assert page.text.replace(ZERO_WIDTH, "").split() == f"start {sanitize.one_line(text)} end".split()


def test_commit_ids_become_code_and_emoji_shortcodes_stay_text():
    assert sanitize.sentence("commit 3aceb90 of main") == "commit `3aceb90` of main"
    assert sanitize.inline("a :shipit: 10:30:45") == f"a :{ZERO_WIDTH}shipit: 10:30:45"
    assert sanitize.inline("category:tone") == "category:tone"
    assert sanitize.code(":shipit:") == "`:shipit:`"


@given(hostile_text.any_text)
@example("a\\|b|c\n| d")
def test_sanitized_table_cell_stays_one_cell(text):
    cell = sanitize.cell(text)
    page = hostile_text.RenderedMarkdown(f"| a | b |\n| --- | --- |\n| {cell} | {sanitize.code(text)} |\n")
    tags = "table thead tr th th tbody tr td td"
    assert [tag for tag in page.tags if tag != "code"] == tags.split()
    assert page.text.split()[:2] == ["a", "b"]
    assert not page.live


@given(hostile_text.any_text)
@example("\n".join(hostile_text.CORPUS))
def test_markdown_quote_contains_exactly_the_lines_of_text(text):
    page = hostile_text.RenderedMarkdown(f"before\n\n{sanitize.quote(text)}\n\nafter")
    assert set(page.tags) <= {"p", "blockquote", "br"}
    assert page.tags.count("blockquote") == 1
    shown = page.text.replace(ZERO_WIDTH, "").replace("\xa0", " ").split()
    assert shown == ["before", *sanitize.clean(text).replace("\xa0", " ").split(), "after"]
    assert not page.live


@given(hostile_text.any_text)
@example("```\n````\n")
def test_text_does_not_escape_its_code_block(text):
    page = hostile_text.RenderedMarkdown(f"{sanitize.code_block(text)}\n\nafter")
    assert page.tags == ["pre", "code", "p"]
    assert page.prose.strip() == "after"
    assert page.text.startswith(sanitize.clean(text))


@each_row("run", [254, 255, 256, 1_000, 70_000])
def test_run_of_backticks_does_not_close_a_code_block(run):
    page = hostile_text.RenderedMarkdown(f"{sanitize.code_block('`' * run + chr(10) + '# heading')}\n\nafter")
    assert page.tags == ["pre", "code", "p"]
    assert page.text.replace(ZERO_WIDTH, "").startswith("`" * run)


def test_truncated_text_ends_at_a_character_with_a_note():
    assert sanitize.cut("short", 5) == "short"
    assert sanitize.cut("漢字漢字", 7) == f"漢字\n{sanitize.CUT_NOTE}"
    assert sanitize.one_line("one two three", 8) == "one two…"
    assert sanitize.html_in_markdown("<b>@octocat</b>") == f"&lt;b&gt;@{ZERO_WIDTH}octocat&lt;/b&gt;"
    hidden = ZERO_WIDTH * 5_000
    assert sanitize.one_line(hidden + "end", 80) == "…"
    assert sanitize.cut(f"begin{hidden}end", 80) == f"begin\n{sanitize.CUT_NOTE}"
    assert sanitize.one_line(f"begin{hidden}"[:4_000], 80) == "begin"


@pytest.mark.parametrize("sanitized", [sanitize.quote, sanitize.code_block, sanitize.code])
def test_only_the_beginning_of_a_very_long_text_is_processed(sanitized):
    def seconds(text: str) -> float:
        started = time.process_time()
        shown = sanitized(text)
        assert len(shown) < 400_000
        assert shown.count("a") > 600
        return time.process_time() - started

    few = min(seconds("@a " * 300_000) for _ in range(3))
    assert min(seconds("@a " * 3_000_000) for _ in range(2)) < 5 * few + 0.05


@each_row("text", hostile_text.CORPUS)
def test_html_in_markdown_renders_as_the_plain_text(text):
    summary = f"<summary>{sanitize.html_in_markdown(text)}</summary>"
    page = hostile_text.RenderedMarkdown(f"<details>\n{summary}\n\n</details>\n")
    assert page.tags == ["details", "summary"]
    assert page.text.replace(ZERO_WIDTH, "").strip() == sanitize.one_line(text)
    assert not page.live


def without_address(match):
    """Replace an IPv6 address by nothing, unless a line begins with its colons."""
    before = match.string[: match.start()].rpartition("\n")[2].strip()
    try:
        IPv6Address(match[0])
    except ValueError:
        return match[0]
    return match[0] if match[0].startswith(":") and not before else ""


@given(hostile_text.any_text)
@example("#\ufe0f#[error]x")
@example(":\u0301:error::x")
def test_workflow_commands_are_neutralized_in_logs(text):
    for shown in (sanitize.log(text), sanitize.log(text, "│ "), sanitize.log_line(text)):
        assert not hostile_text.log_commands(shown)
        seen = re.sub(r"[^\x20-\x7e\n]", "", shown)
        assert "##" not in seen
        assert "::" not in re.sub(r"[0-9A-Fa-f:.]*::[0-9A-Fa-f:.]*", without_address, seen)


def test_log_keeps_ipv6_addresses_escapes_commands_and_prefixes_each_line():
    kept = ("the agent at [::1]:8080 refused", "http://[::1]:8080/v1", "the agent at fe80::1 is gone")
    kept += ("the agent at [2001:db8::8a2e:370:7334] is gone", "2001:db8::1", "(::ffff:127.0.0.1)")
    for text in kept:
        assert sanitize.log(text) == sanitize.log_line(text) == text
    for text in ("::1", " ::1", "x\n::1", "[::error::x]", "[::1::]", "a:::1", "fe80::"):
        assert "\\" in sanitize.log(text)
    assert sanitize.log("a\rb\x0bc\u2028::d::", "│ ") == "│ a\n│ b\n│ c\n│ :\\:d:\\:"


@each_row(("text", "name"), [
    ("Refund: late/early?", "Refund-late-early"),
    ("../../etc/passwd", "etc-passwd"),
    (".hidden", "hidden"),
    ("trailing. ", "trailing"),
    ("CON", "_CON"),
    ("lpt1", "_lpt1"),
    ("v1.2", "v1-2"),
    ("Überweisung 漢字", "Überweisung-漢字"),
    ("🎉", "unnamed"),
    ("", "unnamed"),
    ("a" * 300, "a" * 90),
    ("漢" * 300, "漢" * 30),
])  # fmt: skip
def test_file_names_keep_words_and_are_truncated(text, name):
    assert sanitize.file_name(text) == name


@given(hostile_text.any_text)
def test_cleaning_is_idempotent_and_any_text_gives_valid_xml_and_file_names(text):
    once = sanitize.clean(text)
    assert sanitize.clean(once) == once
    assert once.encode().decode() == once
    assert len(once.splitlines()) <= once.count("\n") + 1
    element = ET.Element("a")
    element.text = sanitize.xml(text)
    assert (ET.fromstring(ET.tostring(element)).text or "") == element.text
    name = sanitize.file_name(text)
    assert name
    assert not re.search(r'[":<>|*?\\/.\x00-\x1f\x7f-\x9f\s]', name)
    assert len(name.encode()) <= 91
    assert not re.fullmatch(r"(?i)con|prn|aux|nul|com\d|lpt\d", name)


def test_gitlab_references_and_commands_are_neutralized_and_other_text_is_kept():
    references = ("!7", "~bug", '~"a b"', "%1.0", "$7", "&amp;7", "^alert", r"\[issue:7\]", "\\*iteration:x")
    for text in (*references, "> /close", "/close"):
        shown = sanitize.gitlab(f"Said\n{text}")
        assert ZERO_WIDTH in shown, text
        assert shown.replace(ZERO_WIDTH, "") == f"Said\n{text}"
    links = ("[the suite](https://gitlab.example/-/blob/a%20b/x.json#L7)",)
    links += ('<a href="https://gitlab.example/a%20b">run</a>',)
    for text in (*links, "`~bug !7`", "95 % of 3 tests, 4 / 5 passed!", "a &lt; b, <sub>~</sub>"):
        assert sanitize.gitlab(text) == text
