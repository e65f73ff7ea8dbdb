"""Messages name pages of the documentation that exist, by addresses that are declared once."""

import re
import tomllib
from pathlib import Path

from doc_pages import ROOT
from each_row import each_row

import ci_evals
from ci_evals.support import documentation
from docsite import llms

PACKAGE = Path(ci_evals.__file__).parent
SOURCES = {
    path.relative_to(PACKAGE).as_posix(): path.read_text()
    for ending in ("py", "j2")
    for path in sorted(PACKAGE.rglob(f"*.{ending}"))
}
NAMED = sorted(
    {
        name
        for text in SOURCES.values()
        for name in re.findall(r"\b(?:see|address|page)\([\"']([\w/-]+(?:#[\w-]+)?)[\"']\)", text)
    }
)


def headings(page):
    """The anchors of a page."""
    lines = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line.lower()).strip().replace(" ", "-") for line in lines}


@each_row("name", NAMED)
def test_messages_name_existing_pages(name):
    page, _, heading = name.partition("#")
    file = ROOT / f"docs/{page}.md"
    assert file.is_file()
    assert not heading or heading in headings(file)
    assert len(NAMED) > 8


def test_documentation_reference_has_file_and_address():
    assert documentation.see("traces") == f"docs/traces.md, {documentation.SITE}traces/"
    assert documentation.address("adapters#an-aui-agent") == f"{documentation.SITE}adapters/#an-aui-agent"


def test_no_message_names_documentation_file_without_address():
    """Whoever installed the command has the address, not the file."""
    alone = []
    for name, text in SOURCES.items():
        code = re.sub(r'""".*?"""|#.*', "", text, flags=re.DOTALL if name.endswith(".py") else 0)
        alone += [(name, result) for result in re.findall(r"docs/[\w/-]+\.md", code)]
    assert alone == []


def test_documentation_address_is_declared_once():
    site = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    links = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    assert site["site_url"] == links["Documentation"] == documentation.SITE
    assert links["Repository"] == f"https://github.com/{documentation.REPOSITORY}"
    named = [name for name, text in SOURCES.items() if "aui-evals-action" in text]
    assert named == ["support/documentation.py"]


@each_row("path", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=str)
def test_docs_do_not_install_package_from_index(path):
    """No index has the package: only an extra of an installed one can be asked for by name."""
    assert not re.search(rf"(?:pip|uv\w*|tool) install {documentation.PACKAGE}\b(?!\[)", path.read_text())


def test_llms_index_lists_every_page_and_full_text_has_absolute_links_only(tmp_path):
    """Each page by title, summary and the address of its Markdown."""
    llms.write(tmp_path)
    index = (tmp_path / llms.INDEX).read_text()
    assert index.startswith("# ci-evals\n\n> ci-evals is a CI gate for conversational agents.")
    linked = re.findall(r"^- \[(.+?)\]\((\S+)\): (.+)$", index, re.MULTILINE)
    all_pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(address.removeprefix(documentation.SITE) for _, address, _ in linked) == sorted(all_pages)
    whole = (tmp_path / llms.WHOLE).read_text()
    for title, address, summary in linked:
        text = (tmp_path / address.removeprefix(documentation.SITE)).read_text()
        assert f"# {title}\n" in text
        assert text.strip() in whole
        assert summary.endswith((".", ":"))
    targets = set(re.findall(r"\]\(([^)\s]+)\)", whole))
    assert {target for target in targets if not re.match(r"https?://|mailto:|#", target)} == set()
    ours = {target.partition("#")[0] for target in targets if target.startswith(documentation.SITE)}
    written = llms.files()
    assert len(ours) > 40
    for address in ours:
        path = address.removeprefix(documentation.SITE)
        assert path in written or (ROOT / "docs" / path).is_file(), address
