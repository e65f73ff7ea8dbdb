"""The documentation matches the code."""

import inspect
import json
import os
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest
import typer
import yaml
from commands import CLEAN_ENV, ci_evals
from doc_pages import README, ROOT, blocks, code, page, table
from each_row import each_row
from programs import run_captured
from pydantic import TypeAdapter

import ci_evals as package
from ci_evals.adapters.github import baseline
from ci_evals.cli.app import app
from ci_evals.domain.checks.evaluation import STRICT_CHECKS, Evaluation, is_offline
from ci_evals.domain.checks.matcher import Conditions, MatcherField
from ci_evals.domain.criterion import Criterion
from ci_evals.domain.results.run import results_schema
from ci_evals.domain.suite import Suite
from ci_evals.extension_registry import study_kinds
from ci_evals.support import documentation
from docsite import llms, pictures, reference, result_formats, strict_checks

TOOLS = Path(sys.executable).parent
PAPERS = [
    "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "AGENTS.md", "SECURITY.md",
    "skills/ci-evals/SKILL.md",
    *(file.relative_to(ROOT).as_posix() for file in sorted((ROOT / "docs").rglob("*.md"))),
]  # fmt: skip
WORKFLOWS = [
    (paper, block)
    for paper in PAPERS
    for block in blocks("yaml", (ROOT / paper).read_text())
    if "\njobs:" in block and "\non:" in block
]


def succeeds(*command: str | Path) -> None:
    done = run_captured(command)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_documented_workflows_are_valid(tmp_path):
    """Most people copy one and read on only when it fails."""
    shown_on = {"README.md", "docs/python-agent.md", "docs/openai-agent.md", "docs/http-agent.md"}
    assert shown_on <= {paper for paper, _ in WORKFLOWS}
    files = []
    for place, (paper, workflow) in enumerate(WORKFLOWS):
        files.append(tmp_path / f"{paper.replace('/', '-')}-{place}.yml")
        files[-1].write_text(workflow)
    succeeds(TOOLS / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files)
    succeeds(TOOLS / "actionlint", *files)
    succeeds(TOOLS / "zizmor", "--offline", "--quiet", "--config", ROOT / ".github/zizmor.yml", *files)


def test_code_and_suites_of_readme_and_skill_are_valid():
    """People and coding agents start from them; that of the skill has a strict check and a judged one."""
    (example,) = blocks("python")
    compile(example, "README.md", "exec")
    names = re.findall(r"^from ci_evals import (.+)$", example, flags=re.MULTILINE)[0].split(", ")
    assert set(names) <= set(package.__all__)
    examples = blocks("json")
    assert examples
    for example in examples:
        Suite.model_validate(json.loads(example))
    (text,) = blocks("yaml", (ROOT / "skills/ci-evals/SKILL.md").read_text())
    (test,) = Suite.model_validate(yaml.safe_load(text)).tests
    assert [is_offline(evaluation) for evaluation in test.evaluations] == [True, False]


def test_readme_and_judge_page_are_short():
    assert len(README.splitlines()) <= 350
    assert len(re.findall(r"[A-Za-z0-9][\w'’.-]*", page("judge.md"))) <= 2000


def test_generated_pages_are_current():
    """`make reference` writes them."""
    pages = reference.pages()
    assert len(pages) >= 5
    for name, text in pages.items():
        assert page(f"reference/{name}") == text, name
    assert page("strict-checks.md") == strict_checks.text()
    assert page("gate-files.md") == result_formats.text()


def typed(text):
    """The commands of ci-evals in the shell blocks of a page."""
    lines = "".join(blocks("sh", text)).replace("\\\n", " ").splitlines()
    for line in lines:
        match = re.search(r"(?:^|\s)ci-evals (?=[a-z])", line)
        if match and "docker build" not in line:
            yield shlex.split(line[match.end() :].partition(" > ")[0], comments=True)


COMMANDS = sorted({tuple(words) for paper in PAPERS for words in typed((ROOT / paper).read_text())})


@each_row("words", COMMANDS, ids=" ".join)
def test_documented_commands_have_valid_arguments(words):
    name, *rest = words
    vars(typer.main.get_command(app))["commands"][name].make_context(name, rest)


def test_docs_pictures_are_up_to_date():
    """`make pictures` draws them again."""
    assert pictures.DIGEST.read_text().strip() == pictures.digest()
    for picture in re.findall(r"docs/images/[\w.-]+", README):
        assert (ROOT / picture).stat().st_size > 10_000


def test_site_navigation_lists_every_page_once():
    site = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    listed = re.findall(r"[\w/-]+\.md", str(site["nav"]))
    pages = [file.relative_to(ROOT / "docs").as_posix() for file in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed) == sorted(pages)


def test_action_page_explains_every_reason_for_no_baseline():
    source = re.sub(r'"\s+f?"', "", inspect.getsource(baseline))
    source = re.sub(r"\{\w+ ?!?\w*\}|\{self\.\w+!?\w*\}", "…", source)
    lines = [code(line) for line, _ in table("line", page("github-action.md"))]
    assert len(lines) == source.count("_none(") - source.count("def _none(")
    for line in lines:
        reason = re.sub(r"^no baseline(?: yet)?: ", "", line)
        for words in re.split(r" ?'?\b(?:NAME|BRANCH|COMMIT|EVENT|WHY|500)\b'? ?", reason):
            assert words.strip("; ") in source, words


@pytest.mark.end_to_end
@pytest.mark.slow
def test_demo_prints_what_readme_shows_and_report_page_lists_its_files(tmp_path):
    """Each file of a run is one of the table's, and each row of the table stands for one."""
    makefile = (ROOT / "Makefile").read_text()
    (command,) = re.findall(r"^\t\$\(DEMO\)/bin/python (-m ci_evals run .+)$", makefile, flags=re.MULTILINE)
    done = ci_evals(*command.split()[2:], cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (excerpt,) = blocks("text")
    assert excerpt in done.stdout
    rows = [code(name) for name, _ in table("file", page("report.md"))]
    patterns = [re.sub(r"SUITE|TIME|TEST", "[^/]+", re.escape(row)) for row in rows]
    written = [file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*") if file.is_file()]
    matched = {file: next((p for p in patterns if re.fullmatch(p, file)), None) for file in written}
    assert set(matched.values()) == set(patterns), matched


@pytest.mark.slow
def test_make_demo_passes_in_new_environment(tmp_path):
    environment = CLEAN_ENV | {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    command = ["make", f"--directory={ROOT}", "demo", f"DEMO={tmp_path / 'demo'}"]
    done = run_captured(command, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Evals passed: 100 / 100" in done.stdout


def test_strict_checks_page_lists_every_type_with_its_fields():
    """A question mark is behind those that are optional."""
    rows = re.findall(r"^\| `(\w+)` \| (.*?) ?\| .* \| .*\|$", page("strict-checks.md"), flags=re.MULTILINE)
    assert {kind: fields for kind, fields in rows if kind != "strict"} == {
        kind.kind(): ", ".join(
            f"`{field.alias}`{'' if field.is_required() else '?'}"
            for name, field in sorted(kind.model_fields.items(), key=lambda item: not item[1].is_required())
            if name not in Criterion.model_fields and name != "strict"
        )
        for kind in STRICT_CHECKS
    }


def test_strict_check_examples_are_valid_cover_every_condition_and_decide():
    read = TypeAdapter(Evaluation).validate_python
    written = blocks("yaml", page("strict-checks.md"))
    kinds = [read(item).strict for text in written for item in yaml.safe_load(text)["evaluations"]]
    assert kinds == [
        "regex", "tool_called", "tool_sequence", "max_tool_calls", "not_disclosed", "not_in_tool_calls",
        "json_schema", "python",
    ]  # fmt: skip
    conditions = re.findall(r"^\| `(\{.+?\})` \|", page("strict-checks.md"), flags=re.MULTILINE)
    matchers = [TypeAdapter(MatcherField).validate_python(yaml.safe_load(text)) for text in conditions]
    assert {name for matcher in matchers for name in matcher.conditions} == set(Conditions.model_fields)
    (code,) = blocks("python", page("strict-checks.md"))
    names = {}
    exec(compile(code, "strict-checks.md", "exec"), names)  # our own documentation
    call = {"name": "refund", "arguments": {"amount": 42}}
    transcript = {"turns": [{"toolCalls": None}, {"toolCalls": [call]}]}
    assert names["refunded_in_full"](transcript, {}) == (True, "1 refunds")
    assert names["refunded_in_full"]({"turns": []}, {})[0] is False


@each_row("paper", PAPERS)
def test_links_lead_to_existing_files_and_headings(paper):
    file = ROOT / paper
    for link in re.findall(r"\]\(([^)]+)\)", file.read_text()):
        if not link.startswith("https://"):
            path, _, anchor = link.partition("#")
            target = file.parent / path if path else file
            assert target.exists(), link
            assert not anchor or anchor in anchors(target.read_text()), link


@each_row("paper", PAPERS)
def test_documents_do_not_install_package_from_index(paper):
    """No index has it: only an extra of an installed one can be asked for by name."""
    named = rf"(?:pip|uv\w*|tool) install {documentation.PACKAGE}\b(?!\[)"
    assert not re.search(named, (ROOT / paper).read_text())


def anchors(text):
    """How GitHub names the headings of a Markdown file."""
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_architecture_describes_import_layers_in_order():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    contract = (ROOT / "pyproject.toml").read_text().split("layers = [")[1].split("]")[0]
    layers = re.findall(r'"([^"]+)"', contract)
    drawn = text.split("## Layers")[1].split("\n## ")[0]
    paragraphs = re.split(r"^\d+\. ", drawn, flags=re.MULTILINE)[1:]
    assert len(paragraphs) == len(layers)
    for layer, paragraph in zip(layers, paragraphs, strict=True):
        for module in layer.split(" | "):
            assert f"`{module}`" in paragraph, module


def test_documented_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    text = README + (ROOT / "CONTRIBUTING.md").read_text() + (ROOT / "AGENTS.md").read_text()
    named = re.findall(r"^make ([\w-]+)", text, flags=re.MULTILINE)
    assert {"demo", "test", "lint"} <= set(named)
    for target in named:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_results_page_names_current_keys_and_removed_ones():
    schema = json.dumps(results_schema(study_kinds()))
    keys = set(re.findall(r'"(\w+)": \{', schema))
    rows = re.findall(r"^\| (.*?) \| (.*?) \| .* \|$", page("results.md"), re.MULTILINE)
    renamed = [
        (old, new) for old, new in rows if "`" in old and "`" in new and old.count("`") == new.count("`")
    ]
    assert len(renamed) >= 9
    for old, new in renamed:
        assert set(re.findall(r"`(\w+)`", new)) <= keys | {"shards"}, new
        assert not set(re.findall(r"`(\w+)`", old)) & keys, old


# Messages name pages of the documentation that exist, by addresses that are declared once.

PACKAGE = Path(package.__file__).parent
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


@each_row("name", NAMED)
def test_messages_name_existing_pages(name):
    page, _, heading = name.partition("#")
    file = ROOT / f"docs/{page}.md"
    assert file.is_file()
    assert not heading or heading in anchors(file.read_text())
    assert len(NAMED) > 8


def test_no_message_names_documentation_file_without_address():
    """Whoever installed the command has the address, not the file."""
    alone = []
    for name, text in SOURCES.items():
        code = re.sub(r'""".*?"""|#.*', "", text, flags=re.DOTALL if name.endswith(".py") else 0)
        alone += [(name, result) for result in re.findall(r"docs/[\w/-]+\.md", code)]
    assert alone == []


def test_documentation_address_is_declared_once_and_named_with_file():
    assert documentation.see("traces") == f"docs/traces.md, {documentation.SITE}traces/"
    assert documentation.address("adapters#an-aui-agent") == f"{documentation.SITE}adapters/#an-aui-agent"
    site = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    links = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    assert site["site_url"] == links["Documentation"] == documentation.SITE
    assert links["Repository"] == f"https://github.com/{documentation.REPOSITORY}"
    named = [name for name, text in SOURCES.items() if "aui-evals-action" in text]
    assert named == ["support/documentation.py"]


def test_llms_index_lists_every_page_and_full_text_has_absolute_links_only(tmp_path):
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
