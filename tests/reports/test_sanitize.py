"""Nothing that an agent, a user, a judge or a suite says becomes markup, a command or a reference."""

import re
import time
from ipaddress import IPv6Address
from xml.etree import ElementTree as ET

import hostile_text
import pytest
from hypothesis import example, given

from ci_evals.reports import sanitize

ZERO_WIDTH = "\u200b"
everywhere = pytest.mark.parametrize("text", hostile_text.CORPUS)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
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
    ],
)
def test_clean_takes_out_what_no_place_can_show(text, cleaned):
    """Escapes, controls, invisible characters and halves of pairs go; what a reader can see stays."""
    assert sanitize.clean(text) == cleaned


@given(hostile_text.any_text)
def test_clean_text_is_clean_already(text):
    """Cleaning twice changes nothing, and the result can be written as UTF-8."""
    once = sanitize.clean(text)
    assert sanitize.clean(once) == once
    assert once.encode().decode() == once
    assert len(once.splitlines()) <= once.count("\n") + 1


@given(hostile_text.any_text)
@example("".join(hostile_text.CORPUS))
def test_inline_markdown_shows_the_text_and_nothing_else(text):
    """What GitHub's renderer makes of it is one paragraph with the very text, and no reference is live."""
    page = hostile_text.RenderedMarkdown(f"start {sanitize.inline(text)} end")
    assert page.tags == ["p"]
    assert page.text.replace(ZERO_WIDTH, "").split() == f"start {sanitize.one_line(text)} end".split()
    assert not page.live


@given(hostile_text.any_text)
@example("".join(hostile_text.CORPUS))
@example("a deadbeef cafe1234 b `x` deadbeef")
def test_a_sentence_is_inert_too(text):
    """It shows the very text, commits' ids among it as code, and no reference is live."""
    for line in (f"start {sanitize.sentence(text)} end", sanitize.sentence(text)):
        page = hostile_text.RenderedMarkdown(line)
        assert set(page.tags) <= {"p", "code"}
        assert not page.live
    page = hostile_text.RenderedMarkdown(f"start {sanitize.sentence(text)} end")
    assert page.text.replace(ZERO_WIDTH, "").split() == f"start {sanitize.one_line(text)} end".split()


def test_a_commit_can_be_copied():
    """Nothing that cannot be seen stands in it."""
    assert sanitize.sentence("commit 3aceb90 of main") == "commit `3aceb90` of main"


def test_a_shortcode_is_no_picture_and_a_time_stays_as_it_is():
    """GitHub draws `:shipit:` everywhere but in code."""
    assert sanitize.inline("a :shipit: 10:30:45") == f"a :{ZERO_WIDTH}shipit: 10:30:45"
    assert sanitize.inline("category:tone") == "category:tone"
    assert sanitize.code(":shipit:") == "`:shipit:`"


@given(hostile_text.any_text)
def test_inline_markdown_is_inert_at_the_start_of_a_line(text):
    """First on its line it starts no heading, list, quote, rule or table either."""
    page = hostile_text.RenderedMarkdown(f"above\n{sanitize.inline(text)}\n")
    assert page.tags == ["p"]
    page = hostile_text.RenderedMarkdown(sanitize.inline(text))
    assert page.tags in (["p"], [])


@given(hostile_text.any_text)
@example("a\\|b|c\n| d")
def test_a_cell_stays_one_cell(text):
    """A row of two cells has two cells, whatever they hold."""
    cell = sanitize.cell(text)
    page = hostile_text.RenderedMarkdown(f"| a | b |\n| --- | --- |\n| {cell} | {sanitize.code(text)} |\n")
    assert [tag for tag in page.tags if tag != "code"] == [
        "table",
        "thead",
        *["tr", "th", "th"],
        "tbody",
        *["tr", "td", "td"],
    ]
    assert page.text.split()[:2] == ["a", "b"]
    assert not page.live


@given(hostile_text.any_text)
@example("\n".join(hostile_text.CORPUS))
def test_a_quote_holds_every_line_and_ends_where_it_should(text):
    """The quoted lines are the text's, in one block quote, and what follows is outside of it."""
    page = hostile_text.RenderedMarkdown(f"before\n\n{sanitize.quote(text)}\n\nafter")
    assert set(page.tags) <= {"p", "blockquote", "br"}
    assert page.tags.count("blockquote") == 1
    shown = page.text.replace(ZERO_WIDTH, "").replace("\xa0", " ").split()
    assert shown == ["before", *sanitize.clean(text).replace("\xa0", " ").split(), "after"]
    assert not page.live


@given(hostile_text.any_text)
@example("```\n````\n")
def test_no_text_gets_out_of_a_code_block(text):
    """The fence is longer than any in the text; what stands in it is the text, letter for letter."""
    page = hostile_text.RenderedMarkdown(f"{sanitize.code_block(text)}\n\nafter")
    assert page.tags == ["pre", "code", "p"]
    assert page.prose.strip() == "after"
    assert page.text.startswith(sanitize.clean(text))


@pytest.mark.parametrize("run", [254, 255, 256, 1_000, 70_000])
def test_no_run_of_backticks_closes_a_code_block(run):
    """GitHub's parser counts a fence to 255 only: any run of as many would end a longer one."""
    page = hostile_text.RenderedMarkdown(f"{sanitize.code_block('`' * run + chr(10) + '# heading')}\n\nafter")
    assert page.tags == ["pre", "code", "p"]
    assert page.text.replace(ZERO_WIDTH, "").startswith("`" * run)


def test_truncation_is_noted_in_short_texts_too():
    """What is left out is told, be it that none of what was looked at could be seen."""
    hidden = ZERO_WIDTH * 5_000
    assert sanitize.one_line(hidden + "end", 80) == "…"
    assert sanitize.cut(f"begin{hidden}end", 80) == f"begin\n{sanitize.CUT_NOTE}"
    assert sanitize.one_line(f"begin{hidden}"[:4_000], 80) == "begin"


@pytest.mark.parametrize("place", [sanitize.quote, sanitize.code_block, sanitize.code])
def test_of_a_very_long_text_the_beginning_is_shown(place):
    """A page with megabytes is read by nobody, and making it safe would take many seconds."""
    started = time.process_time()
    shown = place("@a " * 3_000_000)
    assert len(shown) < 400_000
    assert shown.count("a") > 600
    assert time.process_time() - started < 3  # seconds; without an end: ten and more


@everywhere
def test_html_in_markdown_gives_back_the_text(text):
    """One line of text, in which nothing is a tag or live."""
    page = hostile_text.RenderedMarkdown(
        f"<details>\n<summary>{sanitize.html_in_markdown(text)}</summary>\n\n</details>\n"
    )
    assert page.tags == ["details", "summary"]
    assert page.text.replace(ZERO_WIDTH, "").strip() == sanitize.one_line(text)
    assert not page.live


@given(hostile_text.any_text)
def test_xml_text_is_legal_everywhere(text):
    """Any text makes a document that a parser accepts."""
    element = ET.Element("a")
    element.text = sanitize.xml(text)
    assert (ET.fromstring(ET.tostring(element)).text or "") == element.text


def without_address(match):
    """Nothing in place of an address of IPv6, unless a line begins with its colons."""
    before = match.string[: match.start()].rpartition("\n")[2].strip()
    try:
        IPv6Address(match[0])
    except ValueError:
        return match[0]
    return match[0] if match[0].startswith(":") and not before else ""


@given(hostile_text.any_text)
@example("#\ufe0f#[error]x")
@example(":\u0301:error::x")
def test_no_workflow_command_survives_in_a_log(text):
    """Neither syntax is there any more, not even with characters between that a search may pass over."""
    for shown in (sanitize.log(text), sanitize.log(text, "│ "), sanitize.log_line(text)):
        assert not hostile_text.log_commands(shown)
        seen = re.sub(r"[^\x20-\x7e\n]", "", shown)
        assert "##" not in seen
        assert "::" not in re.sub(r"[0-9A-Fa-f:.]*::[0-9A-Fa-f:.]*", without_address, seen)


@pytest.mark.parametrize(
    "text",
    [
        "the agent at [::1]:8080 refused",
        "http://[::1]:8080/v1",
        "the agent at [2001:db8::8a2e:370:7334] is gone",
        "the agent at fe80::1 is gone",
        "2001:db8::1",
        "(::ffff:127.0.0.1)",
    ],
)
def test_an_address_of_ipv6_stays_as_it_is(text):
    """A reader copies it."""
    assert sanitize.log(text) == sanitize.log_line(text) == text


@pytest.mark.parametrize(
    "text", ["::1", " ::1", "x\n::1", "[::error::x]", "[::1::]", "a:::1", "fe80::"], ids=ascii
)
def test_what_a_command_could_begin_with_is_broken(text):
    """Where a line begins, and what is no address."""
    assert "\\" in sanitize.log(text)


def test_every_line_of_a_log_gets_its_prefix():
    """All that any reader takes for a line end is one."""
    assert sanitize.log("a\rb\x0bc\u2028::d::", "│ ") == "│ a\n│ b\n│ c\n│ :\\:d:\\:"


@pytest.mark.parametrize(
    ("text", "name"),
    [
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
    ],
)
def test_file_names_can_be_read(text, name):
    """A name keeps its words."""
    assert sanitize.file_name(text) == name


@given(hostile_text.any_text)
def test_file_names_are_safe_on_every_system(text):
    """No separator, no hidden file, no device, no control character, and short enough."""
    name = sanitize.file_name(text)
    assert name
    assert not re.search(r'[":<>|*?\\/.\x00-\x1f\x7f-\x9f\s]', name)
    assert len(name.encode()) <= 91
    assert not re.fullmatch(r"(?i)con|prn|aux|nul|com\d|lpt\d", name)


def test_long_text_is_cut_between_characters_and_says_so():
    """A cut never leaves half a character, and tells where the rest is."""
    assert sanitize.cut("short", 5) == "short"
    assert sanitize.cut("漢字漢字", 7) == f"漢字\n{sanitize.CUT_NOTE}"
    assert sanitize.one_line("one two three", 8) == "one two…"
    assert sanitize.html_in_markdown("<b>@octocat</b>") == f"&lt;b&gt;@{ZERO_WIDTH}octocat&lt;/b&gt;"


@pytest.mark.parametrize(
    "text",
    [
        "!7",
        "~bug",
        '~"a b"',
        "%1.0",
        "$7",
        "&amp;7",
        "^alert",
        r"\[issue:7\]",
        "\\*iteration:x",
        "> /close",
        "/close",
    ],
)
def test_gitlabs_own_references_are_broken(text):
    """What GitHub shows as it is would be a link there, or a command."""
    shown = sanitize.gitlab(f"Said\n{text}")
    assert "\u200b" in shown
    assert shown.replace("\u200b", "") == f"Said\n{text}"


@pytest.mark.parametrize(
    "text",
    [
        "`~bug !7`",
        "[the suite](https://gitlab.example/-/blob/a%20b/x.json#L7)",
        '<a href="https://gitlab.example/a%20b">run</a>',
        "95 % of 3 tests, 4 / 5 passed!",
        "a &lt; b, <sub>~</sub>",
    ],
)
def test_gitlab_keeps_what_is_no_reference(text):
    """Code, addresses, and signs with space around them."""
    assert sanitize.gitlab(text) == text
