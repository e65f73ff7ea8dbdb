"""What the papers say is held against what is there."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from papers import README, ROOT, blocks, code, table

import ci_evals
from ci_evals.adapters.github import baseline
from ci_evals.cli.app import app
from ci_evals.domain.errors import Exit
from ci_evals.domain.evaluation import Criterion, Strict
from ci_evals.domain.schema import results_schema
from ci_evals.domain.suite import Suite
from ci_evals.study_registry import study_kinds

TOOLS = Path(sys.executable).parent
PAPERS = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    *(file.relative_to(ROOT).as_posix() for file in sorted((ROOT / "docs").glob("*.md"))),
]
WORKFLOWS = [
    (paper, block)
    for paper in PAPERS
    for block in blocks("yaml", (ROOT / paper).read_text())
    if "\njobs:" in block
]


def succeeds(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_papers_show_workflows():
    """Most people copy one and read on only when it fails."""
    assert {"README.md", "docs/python-agent.md", "docs/openai-agent.md", "docs/http-agent.md"} <= {
        paper for paper, _ in WORKFLOWS
    }


def test_workflows_in_the_papers_are_valid(tmp_path):
    """Copied as they are, they run."""
    files = [
        tmp_path / f"{paper.replace('/', '-')}-{place}.yml" for place, (paper, _) in enumerate(WORKFLOWS)
    ]
    for file, (_, workflow) in zip(files, WORKFLOWS, strict=True):
        file.write_text(workflow)
    succeeds(TOOLS / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files)
    succeeds(TOOLS / "actionlint", *files)
    succeeds(TOOLS / "zizmor", "--offline", "--quiet", "--config", ROOT / ".github/zizmor.yml", *files)


@pytest.mark.parametrize("example", blocks("json"))
def test_suites_in_the_readme_are_valid(example):
    """They are what people start from."""
    Suite.model_validate(json.loads(example))


def test_the_readme_lists_every_command():
    """And no other."""
    commands = {
        command.name or command.callback.__name__.replace("_", "-") for command in app.registered_commands
    }
    assert {code(name).split()[0] for name, _ in table("command")} == commands


def test_the_exit_codes_are_all_described():
    """A workflow decides by them."""
    assert [int(number) for number, _ in table("code")] == sorted(Exit)


def test_every_reason_for_no_baseline_is_explained():
    """Word for word, so that a search finds it."""
    parts = {
        "name": "NAME",
        "branch": "BRANCH",
        "commit": "COMMIT",
        "event": "EVENT",
        "why": "WHY",
        "most": 500,
    }
    texts = [text for name, text in vars(baseline).items() if name.isupper() and str(text).startswith("no ")]
    told = table("line", (ROOT / "docs/github-action.md").read_text())
    assert {code(line) for line, _ in told} == {text.format(**parts) for text in texts}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What `make demo` runs: its output, and the files it leaves."""
    folder = tmp_path_factory.mktemp("demo")
    (command,) = re.findall(
        r"^\t\$\(BIN\)/(ci-evals run .+)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE
    )
    program, *arguments = command.split()
    done = subprocess.run(
        [TOOLS / program, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


def test_the_demo_prints_what_the_readme_shows(demo):
    """Durations and the width of columns apart, and where the excerpt leaves out lines."""
    printed = [plain(line) for line in demo[0].splitlines()]
    (excerpt,) = blocks("text")
    for line in excerpt.splitlines():
        assert plain(line) == "..." or plain(line) in printed, line


def plain(line):
    return " ".join(re.sub(r"\d+\.\d s", "0.0 s", line).split())


def test_the_files_written_are_all_described(demo):
    """Each file of a run is one of the table's, and each row of the table stands for one."""
    rows = [code(name) for name, _ in table("file")]
    patterns = [re.sub(r"SUITE|TIME|TEST", "[^/]+", re.escape(row)) for row in rows]
    matched = {file: next((p for p in patterns if re.fullmatch(p, file)), None) for file in demo[1]}
    assert set(matched.values()) == set(patterns), matched


def test_the_readmes_python_uses_what_is_exported():
    """And is Python."""
    (example,) = blocks("python")
    compile(example, "README.md", "exec")
    names = re.findall(r"^from ci_evals import (.+)$", example, flags=re.MULTILINE)[0].split(", ")
    assert set(names) <= set(ci_evals.__all__)


def test_the_strict_types_are_all_described():
    """Each with its own fields, a question mark behind those that may be left out."""
    assert {code(kind): fields for kind, fields, _ in table("`strict`")} == {
        get_args(kind.model_fields["strict"].annotation)[0]: ", ".join(
            f"`{field.alias}`{'' if field.is_required() else '?'}"
            for name, field in sorted(kind.model_fields.items(), key=lambda item: not item[1].is_required())
            if name not in Criterion.model_fields and name != "strict"
        )
        for kind in get_args(Strict)
    }


@pytest.mark.parametrize("paper", PAPERS)
def test_links_lead_somewhere(paper):
    """To a file of the repository, and to a heading where they name one."""
    file = ROOT / paper
    for link in re.findall(r"\]\(([^)]+)\)", file.read_text()):
        if not link.startswith("https://"):
            path, _, anchor = link.partition("#")
            target = file.parent / path if path else file
            assert target.exists(), link
            assert not anchor or anchor in anchors(target.read_text()), link


def anchors(text):
    """How GitHub names the headings of a Markdown file."""
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_the_architecture_names_every_layer():
    """In the order in which the import contract has them."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    contract = (ROOT / "pyproject.toml").read_text().split("layers = [")[1].split("]")[0]
    layers = re.findall(r'"([^"]+)"', contract)
    drawn = text.split("## Layers")[1].split("\n## ")[0]
    paragraphs = re.split(r"^\d+\. ", drawn, flags=re.MULTILINE)[1:]
    assert len(paragraphs) == len(layers)
    for layer, paragraph in zip(layers, paragraphs, strict=True):
        for module in layer.split(" | "):
            assert f"`{module}`" in paragraph, module


def test_make_targets_exist():
    """Those that README and CONTRIBUTING name."""
    makefile = (ROOT / "Makefile").read_text()
    named = re.findall(r"^make (\w+)", README + (ROOT / "CONTRIBUTING.md").read_text(), flags=re.MULTILINE)
    assert {"demo", "test", "lint"} <= set(named)
    for target in named:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_the_results_page_names_keys_of_the_schema():
    """Keys of version 2 are there, those of version 1 are gone."""
    schema = json.dumps(results_schema(study_kinds()))
    keys = set(re.findall(r'"(\w+)": \{', schema))
    rows = re.findall(r"^\| (.*?) \| (.*?) \| .* \|$", (ROOT / "docs/results.md").read_text(), re.MULTILINE)
    renamed = [
        (old, new) for old, new in rows if "`" in old and "`" in new and old.count("`") == new.count("`")
    ]
    assert len(renamed) >= 9
    for old, new in renamed:
        assert set(re.findall(r"`(\w+)`", new)) <= keys | {"shards"}, new
        assert not set(re.findall(r"`(\w+)`", old)) & keys, old
