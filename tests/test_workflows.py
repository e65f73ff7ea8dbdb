"""The workflows to copy and our own: they ask of the action what it takes, and of GitHub what they need."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml
from doc_pages import ROOT, blocks, page
from each_row import each_row
from programs import run_captured

from ci_evals.cli.app import app
from ci_evals.reports.names import PAGE
from docsite import action

ACTION = yaml.load((ROOT / "action.yml").read_text(), yaml.CSafeLoader)
COMMANDS = typer.main.get_command(app)
DIGEST = "sha256:" + "0123456789abcdef" * 4
OURS = re.compile(r"org/aui-evals-action(/run|/\.github/workflows/evals\.yml)?@v1|\./")

EXAMPLES = sorted((ROOT / "examples").glob("*.yml"))
WITH_GATE = sorted((ROOT / "examples").glob("gate-*.yml"))
"""Alike but for the tool that they start, so that the documentation links to them."""
FILES = [*EXAMPLES, *sorted((ROOT / ".github/workflows").glob("*.yml"))]
REUSABLE = ROOT / ".github/workflows/evals.yml"


def read(file):
    """A workflow; YAML takes the key `on` for a boolean."""
    workflow = yaml.load(file.read_text(), yaml.CSafeLoader)
    return workflow | {"on": workflow.pop(True)}


def named(file):
    return file.relative_to(ROOT).as_posix()


def ours(job):
    """Inputs of the steps of a job that use our action."""
    return [step.get("with", {}) for step in job.get("steps", ()) if OURS.match(step.get("uses", ""))]


JOBS = [
    pytest.param(read(file), job, id=f"{named(file)}:{name}")
    for file in FILES
    for name, job in read(file)["jobs"].items()
]
USES = [param for param in JOBS if ours(param.values[1]) and not param.id.startswith(named(REUSABLE))]
each_use = each_row(("workflow", "job"), USES)
"""Each but the workflow to call, which is compared with the example below."""


def using(job, action):
    """The steps that use someone else's action."""
    return [step for step in job.get("steps", ()) if step.get("uses", "").startswith(f"{action}@")]


def parsed(args):
    """A command, and its options as the command line understands them."""
    name, *rest = shlex.split(args)
    return name, COMMANDS.commands[name].make_context(name, rest).params


def key(inputs):
    """The comment key of one use of our action."""
    if "args" in inputs:
        return parsed(inputs["args"])[1]["comment_key"]
    return inputs.get("comment-key", ACTION["inputs"]["comment-key"]["default"])


def compares(workflow, inputs):
    """This use of our action looks for a baseline on GitHub."""
    if "args" in inputs:
        command, options = parsed(inputs["args"])
        return command == "merge" and options["baseline"] in {None, "auto"}
    in_pull_request = "pull_request" in workflow["on"] and not {"baseline", "shard"} & set(inputs)
    return in_pull_request or inputs.get("baseline") == "auto"


def comments(workflow, inputs):
    """This use of our action posts a comment."""
    if "args" in inputs:
        return parsed(inputs["args"])[0] == "comment"
    by_itself = inputs.get("comment") != "never" and "shard" not in inputs
    return inputs.get("comment") == "always" or ("pull_request" in workflow["on"] and by_itself)


def of_a_pull_request(workflow):
    """The workflow is only started for a pull request: its results are never a baseline."""
    return "pull-request" in ((workflow["on"].get("workflow_dispatch") or {}).get("inputs") or {})


def test_documentation_shows_every_example():
    """Both are copied; one of them alone would be kept up to date."""
    examples = {file.stem: file.read_text() for file in EXAMPLES if file not in WITH_GATE}
    assert [block for block in blocks("yaml") if "\njobs:" in block] == [examples["reusable"]]
    shown = blocks("yaml", page("workflows.md")) + blocks("yaml", page("record-and-replay.md"))
    assert sorted(shown) == sorted(examples.values())


@each_use
def test_workflow_has_valid_inputs_and_exactly_needed_permissions(workflow, job):
    for inputs in ours(job):
        assert set(inputs) <= {*ACTION["inputs"], "args"}
        assert len({"suites", "gate", "args"} & set(inputs)) == 1
        if "args" in inputs:
            parsed(inputs["args"])
    needed = {}
    comparing = any(compares(workflow, inputs) for inputs in ours(job))
    if comparing or using(job, "actions/checkout"):
        needed["contents"] = "read"
    if comparing or any("run-id" in step["with"] for step in using(job, "actions/download-artifact")):
        needed["actions"] = "read"
    if any(comments(workflow, inputs) for inputs in ours(job)):
        needed["pull-requests"] = "write"
    elif any(inputs.get("weakened") == "fail" for inputs in ours(job)):
        needed["pull-requests"] = "read"  # comments that approve it
    assert (workflow["permissions"], job["permissions"]) == ({}, needed)


@each_use
def test_results_and_attempts_are_uploaded_as_later_runs_download_them(workflow, job):
    """Attempts also if the job is cancelled: else a rerun forgets what failed."""
    uploads = [(step.get("if"), step["with"]) for step in using(job, "actions/upload-artifact")]
    comparing = [inputs for inputs in ours(job) if compares(workflow, inputs)]
    keys = set() if of_a_pull_request(workflow) else {key(inputs) for inputs in comparing}
    kept = [
        (given["name"], given["path"], condition in ALSO_WHERE_THE_GATE_FAILED)
        for condition, given in uploads
        if given["name"].startswith("ci-evals-results-")
    ]
    assert kept == [(f"ci-evals-results-{key}", "results/_results.json", True) for key in keys]
    kept = [
        (given["name"], given["path"], condition, "overwrite" in given)
        for condition, given in uploads
        if given["name"].startswith("ci-evals-attempt-")
    ]
    pooling = {key(inputs) for inputs in ours(job) if pools(job, inputs)}
    names = [f"ci-evals-attempt-{key}-${{{{ github.run_attempt }}}}" for key in pooling]
    assert kept == [(name, "results/_results.json", "${{ always() }}", False) for name in names]


def pools(job, inputs):
    """This use of our action adds the trials of earlier attempts to its own."""
    permitted = job["permissions"].get("actions") == "read"
    whole = "suites" in inputs and not {"replay", "shard", "changed-since"} & set(inputs)
    return permitted and whole and inputs.get("reruns") != "replace"


ALSO_WHERE_THE_GATE_FAILED = (
    "${{ !cancelled() }}",
    "${{ !cancelled() && github.event_name != 'pull_request' }}",
    "${{ !cancelled() && steps.evals.outputs.results-path != '' }}",
)


def test_reusable_workflow_passes_on_every_input_of_action():
    """Except shards, which need a job that merges. Keys are secrets."""
    assert REUSABLE.read_text() == action.workflow()
    called = read(REUSABLE)["on"]["workflow_call"]
    (step,) = [step for step in read(REUSABLE)["jobs"]["evals"]["steps"] if step.get("id") == "evals"]
    assert step["with"].keys() == ACTION["inputs"].keys() - {"shard"}
    own = {"runs-on", "timeout-minutes", "retention-days", "variables"}
    assert called["inputs"].keys() | called["secrets"].keys() == step["with"].keys() | own
    for name, value in step["with"].items():
        sources = set(re.findall(r"(inputs|secrets)\.([\w-]+)", value))
        declared = {(kind, name) for kind in ("inputs", "secrets") if name in called[kind]}
        assert sources == declared, name
    defaults = {name: entry["default"] for name, entry in called["inputs"].items() if name not in own}
    assert defaults == {name: ACTION["inputs"][name]["default"] for name in defaults}
    assert called["outputs"].keys() == ACTION["outputs"].keys()


def test_reusable_workflow_has_steps_of_pull_request_example():
    called = read(REUSABLE)["jobs"]["evals"]
    example = read(ROOT / "examples/pull-request.yml")["jobs"]["evals"]
    assert called["permissions"] == example["permissions"]

    def without_inputs(job):
        text = json.dumps([step for step in job["steps"] if "run" not in step])
        text = text.replace("${{ inputs.comment-key }}", "default")
        steps = json.loads(text.replace("${{ inputs.output-dir }}", "results"))
        for step in steps:
            if step.get("id") == "evals":
                del step["with"]
        return steps

    pairs = zip(without_inputs(called), without_inputs(example), strict=True)
    assert [ours["name"] for ours, theirs in pairs if ours != theirs] == [
        "Say in the summary what this gate would notice",  # its argument is in quotes
        "Keep the results as the baseline of later runs",  # for as many days as the caller says
        "Keep all reports",  # of each comment key
        "Keep the page, an artifact that opens in the browser",  # of one comment key alone
    ]


def test_reusable_workflow_has_its_permissions_and_rejects_unsafe_events():
    """GitHub starts nothing if a permission is missing.

    On other events a verdict would stand at the pull request, whose own code was never played.
    """
    first, *_ = read(REUSABLE)["jobs"]["evals"]["steps"]
    assert "exit 2" in first["run"]
    refused = json.loads(re.search(r"fromJSON\('(.+?)'\)", first["if"])[1])
    assert {"pull_request_target", "workflow_run", "issue_comment"} == {*refused}
    caller = read(ROOT / "examples/reusable.yml")["jobs"]["evals"]
    assert caller["permissions"] == read(REUSABLE)["jobs"]["evals"]["permissions"]
    called = read(REUSABLE)["on"]["workflow_call"]
    assert caller["with"].keys() <= called["inputs"].keys()
    assert caller["secrets"].keys() <= called["secrets"].keys()


def set_variables(folder, text):
    steps = read(REUSABLE)["jobs"]["evals"]["steps"]
    (step,) = [step for step in steps if "VARIABLES" in step.get("env", {})]
    variables = folder / "variables"
    variables.write_text("")
    environ = {"PATH": os.environ["PATH"], "VARIABLES": text, "GITHUB_ENV": str(variables)}
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
    return run_captured([*shell, step["run"]], env=environ), variables.read_text()


@pytest.mark.slow
def test_caller_variables_are_masked_and_reach_suites(tmp_path):
    done, variables = set_variables(tmp_path, "SHOP_KEY=a=b $(id) 'c' 100%25\r\n\n_X1=\nDEBUG=true")
    assert (done.returncode, done.stderr) == (0, "")
    assert variables == "SHOP_KEY=a=b $(id) 'c' 100%25\n_X1=\nDEBUG=true\n"
    assert done.stdout == "::add-mask::a=b $(id) 'c' 100%2525\n"
    assert set_variables(tmp_path, "")[0].returncode == 0


@pytest.mark.slow
@each_row("text", ["no value", "1A=x", "A B=x", "X<<EOF", "GITHUB_TOKEN=x", "INPUT_SUITES=x", "LD_PRELOAD=x"])
def test_invalid_caller_variable_exits_2_without_its_value(tmp_path, text):
    done, variables = set_variables(tmp_path, f"A=secret\n{text}")
    assert (done.returncode, variables) == (2, "A=secret\n")
    (error,) = [line for line in done.stdout.splitlines() if "::error" in line]
    assert "The secret 'variables'" in error
    assert "secret'" not in error.replace("The secret 'variables'", "")


def test_third_party_actions_are_pinned_and_scripts_contain_no_expressions():
    """By commit, with the version next to it. Scripts get values through the environment."""
    pins = set()
    for file in FILES:
        for line in re.findall(r"^ *(?:- )?uses: (.+)", file.read_text(), flags=re.MULTILINE):
            pinned = re.fullmatch(r"([\w/-]+)@([0-9a-f]{40}) # v\d+\.\d+\.\d+", line)
            assert OURS.match(line) or pinned, (file, line)
            pins |= {pinned.groups()} if pinned else set()
        jobs = read(file)["jobs"].values()
        assert not any("${{" in step.get("run", "") for job in jobs for step in job.get("steps", ())), file
    assert len(pins) == len({action for action, _ in pins}), sorted(pins)


@each_row(("workflow", "job"), JOBS)
def test_job_has_time_limit_and_workflow_without_caller_a_concurrency_group(workflow, job):
    """The default is six hours. A job that calls a workflow has the limits of that one's jobs."""
    if "uses" in job:
        return
    limit = job["timeout-minutes"]
    if limit == "${{ inputs.timeout-minutes }}":
        limit = workflow["on"]["workflow_call"]["inputs"]["timeout-minutes"]["default"]
    assert limit <= 120
    assert "workflow_call" in workflow["on"] or workflow["concurrency"]["group"]


def test_matrix_example_plays_every_shard_and_fork_workflows_agree_on_artifacts():
    job = read(ROOT / "examples/matrix.yml")["jobs"]["shard"]
    shards = job["strategy"]["matrix"]["shard"]
    assert shards == [*range(1, len(shards) + 1)]
    assert [inputs["shard"] for inputs in ours(job)] == [f"${{{{ matrix.shard }}}}/{len(shards)}"]
    first, second = (read(ROOT / f"examples/fork-{part}.yml") for part in ("evals", "comment"))
    assert second["on"]["workflow_run"]["workflows"] == [first["name"]]
    kept, baseline, _attempt = using(first["jobs"]["evals"], "actions/upload-artifact")
    (taken,) = using(second["jobs"]["comment"], "actions/download-artifact")
    assert taken["with"]["name"] == kept["with"]["name"]
    assert "github.event_name == 'pull_request'" in kept["if"]
    assert "github.event_name != 'pull_request'" in baseline["if"]


def test_report_page_is_uploaded_unzipped_under_its_name():
    """A rerun could not replace it under another name."""
    plain = [
        step["with"]
        for file in EXAMPLES
        for job in read(file)["jobs"].values()
        for step in using(job, "actions/upload-artifact")
        if step["with"].get("archive") is False
    ]
    assert len(plain) >= 3
    for given in plain:
        assert given["path"].rpartition("/")[2] == given["name"] == PAGE
        assert given["overwrite"] is True


def test_badge_workflow_draws_results_of_main_only():
    """And what makes and pushes it never follows a pull request, whose branch may be called main as well."""
    first, second = (read(ROOT / f"examples/{name}.yml") for name in ("pull-request", "badge"))
    assert second["on"]["workflow_run"]["workflows"] == [first["name"]]
    assert "event != 'pull_request'" in second["jobs"]["draw"]["if"]
    assert second["jobs"]["push"]["needs"] == "draw"
    (taken,) = using(second["jobs"]["draw"], "actions/download-artifact")
    kept = [step["with"]["name"] for step in using(first["jobs"]["evals"], "actions/upload-artifact")]
    assert taken["with"]["name"] in kept
    assert not using(second["jobs"]["push"], "actions/checkout")


@pytest.mark.slow
def test_badge_workflow_replaces_its_branch(tmp_path):
    """By one commit that holds the two files, however often."""
    (step,) = [step for step in read(ROOT / "examples/badge.yml")["jobs"]["push"]["steps"] if "run" in step]
    remote = tmp_path / "owner/repo"
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    environ |= {"GITHUB_SERVER_URL": f"file://{tmp_path}", "GITHUB_REPOSITORY": "owner/repo"}
    environ |= {"COMMIT": "c0ffee"}

    remote.mkdir(parents=True)
    git(remote, "init", "--quiet", "--bare")
    for message in ("passed", "failing"):
        (tmp_path / "badge").mkdir(exist_ok=True)
        for name in ("badge.svg", "badge.json"):
            (tmp_path / "badge" / name).write_text(message)
        script_of = ["bash", "-e", "-c", step["run"]]
        subprocess.run(script_of, cwd=tmp_path / "badge", env=environ, check=True)
        shutil.rmtree(tmp_path / "badge")
    assert git(remote, "ls-tree", "--name-only", "ci-evals-badge").split() == ["badge.json", "badge.svg"]
    assert git(remote, "show", "ci-evals-badge:badge.svg") == "failing"
    assert git(remote, "rev-list", "--count", "ci-evals-badge") == "1"


def test_example_scripts_call_only_git():
    """Own runners have a shell and git, but often no `jq`, and a condition that asks it fails open."""
    jobs = [job for file in EXAMPLES if file not in WITH_GATE for job in read(file)["jobs"].values()]
    shells = [job.get("steps", ()) for job in jobs if not using(job, "actions/setup-python")]
    scripts = [step["run"] for steps in shells for step in steps if "run" in step]
    lines = [line for text in scripts for line in re.sub(r"#.*|\\\n", "", text).splitlines()]
    assert {line.split()[0] for line in lines if line.strip()} <= {"git"}


def test_examples_use_existing_action_outputs():
    for file in EXAMPLES:
        asked = re.findall(r"steps\.evals\.outputs\.([\w-]+)", file.read_text())
        assert set(asked) <= set(ACTION["outputs"])


def test_gate_examples_start_tool_and_continue_on_failure():
    """The gate decides on their results; the page links to each example."""
    tools = ["deepeval", "inspect", "promptfoo", "pytest"]
    assert sorted(file.stem for file in WITH_GATE) == [f"gate-{tool}" for tool in tools]
    for file in WITH_GATE:
        assert f"examples/{file.name}" in page("gate-files.md")
        (step,) = [step for step in read(file)["jobs"]["gate"]["steps"] if "run" in step]
        assert step["run"].strip().endswith("|| true")


def test_nightly_uploads_unfinished_journal_and_fork_comment_has_no_checkout():
    """A workflow with a writing token could run the code that it checked out."""
    steps = read(ROOT / "examples/nightly.yml")["jobs"]["evals"]["steps"]
    (keep,) = [step for step in steps if step.get("with", {}).get("path") == "results/journal.jsonl"]
    assert keep["if"] == "${{ always() && steps.evals.outputs.finished != 'true' }}"
    assert not using(read(ROOT / "examples/fork-comment.yml")["jobs"]["comment"], "actions/checkout")


def script(name):
    """A step of the release, as GitHub's runner starts it."""
    files = [ROOT / f".github/workflows/{file}.yml" for file in ("release", "image", "rebuild")]
    jobs = [job for file in files for job in read(file)["jobs"].values()]
    (step,) = [step for job in jobs for step in job.get("steps", ()) if step.get("name") == name]
    return [sys.executable, "-c", step["run"]] if "shell" in step else ["bash", "-e", "-c", step["run"]]


def play(name, folder, **variables):
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    environ |= {"GITHUB_REF": "refs/heads/main"}
    return run_captured(script(name), cwd=folder, env=environ | variables)


def git(folder, *arguments):
    command = ["git", "-c", "user.name=n", "-c", "user.email=e@example.com", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path):
    """A clone of a repository with what the release reads, about to release 1.2.3."""
    origin, folder = tmp_path / "origin", tmp_path / "checkout"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(origin))
    git(tmp_path, "clone", "--quiet", str(origin), str(folder))
    git(folder, "checkout", "--quiet", "-B", "main")
    for file in (ROOT / "action.yml", REUSABLE, ROOT / "run/start.py"):
        (folder / named(file)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder / named(file))
    (folder / "pyproject.toml").write_text('[project]\nname = "ci-evals"\nversion = "1.2.3"\n')
    (folder / "Dockerfile").write_text('LABEL org.opencontainers.image.version="1.2.3"\n')
    (folder / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-11-22\n\n### Added\n\n- A thing.\n"
        "\n## [1.2.2] - 2026-11-01\n\n- Old.\n"
    )
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Everything")
    git(folder, "push", "--quiet", "origin", "main")
    return folder


@pytest.mark.slow
def test_release_rejects_other_or_malformed_version_and_other_branch(checkout):
    """A version becomes a tag and a label. A button in the browser takes any branch."""

    def check(version="1.2.3", **variables):
        done = play("Check the version", checkout, VERSION=version, **variables)
        return done.returncode, done.stderr

    assert check()[0] == 0
    for file, old, new, text in (
        ("pyproject.toml", "1.2.3", "1.2.2", "pyproject.toml names '1.2.2'"),
        ("Dockerfile", "1.2.3", "1.2.2", "the Dockerfile's label names ['1.2.2']"),
        ("CHANGELOG.md", "[1.2.3]", "[1.2.4]", "CHANGELOG.md has nothing under '## [1.2.3]'"),
        ("CHANGELOG.md", "- A thing.", "", "CHANGELOG.md has nothing under '## [1.2.3]'"),
    ):
        content = (checkout / file).read_text()
        (checkout / file).write_text(content.replace(old, new))
        code, error = check()
        assert (code, text in error) == (1, True), error
        (checkout / file).write_text(content)
    for version in ("", "v1.2.3", "1.2", "1.2.3rc1", "1.2.3\n", "$(id)"):
        code, error = check(version)
        assert (code, "is no version" in error) == (1, True), version
    code, error = check(GITHUB_REF="refs/heads/other")
    assert (code, "start it on main" in error) == (1, True)
    # Our own files name their version where the check looks for it; the notes come with the release.
    done = play("Check the version", ROOT, VERSION="999.0.0")
    assert "pyproject.toml names '" in done.stderr
    assert re.search(r"the Dockerfile's label names \['\d+\.\d+\.\d+'\]", done.stderr)


@pytest.mark.slow
def test_image_name_is_lowercase_and_base_image_is_pinned_by_digest(tmp_path):
    """Organizations may have capitals, images not. Dependabot keeps the digest up to date."""
    output = tmp_path / "output"
    done = play("Name the image", tmp_path, GITHUB_REPOSITORY="Org/CI-Evals", GITHUB_OUTPUT=str(output))
    assert done.returncode == 0, done.stderr
    assert output.read_text() == "name=ghcr.io/org/ci-evals\n"
    output.unlink()
    (tmp_path / "newest").mkdir()
    (tmp_path / "newest/.github").symlink_to(ROOT / ".github")
    assert play("Name the base", tmp_path, GITHUB_OUTPUT=str(output)).returncode == 0
    assert re.fullmatch(r"image=python:3\.13-slim@sha256:[0-9a-f]{64}\n", output.read_text())


def release(checkout):
    """The steps of the last job, in order."""
    image = {"IMAGE": "ghcr.io/org/ci-evals", "DIGEST": DIGEST, "SHA256": DIGEST.removeprefix("sha256:")}
    for step in ("Name the image in action.yml", "Name the wheel", "Tag", "Take the notes from CHANGELOG.md"):
        done = play(step, checkout, VERSION="1.2.3", **image)
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_release_tags_name_image_by_digest_and_main_and_workflows_do_not_change(checkout):
    """Main goes on building from the Dockerfile, and so do the dockerfile tags, for closed registries.

    GitHub refuses a push that changes workflows, when the image and the wheel are published already.
    An interrupted release can be rerun: the last job makes the same commit anew, so nothing moves.
    """
    again = checkout.parent / "again"
    git(checkout.parent, "clone", "--quiet", str(checkout.parent / "origin"), str(again))
    main = git(checkout, "rev-parse", "main")
    git(checkout, "push", "--quiet", "origin", "main:refs/tags/v1", "main:refs/tags/v1.2")
    release(checkout)
    assert (checkout / "notes.md").read_text() == "### Added\n\n- A thing.\n"
    origin = checkout.parent / "origin"
    tag = git(origin, "rev-parse", "v1.2.3")
    commits = [git(origin, "rev-parse", name) for name in ("main", "v1.2.3^", "v1", "v1.2")]
    assert commits == [main, main, tag, tag]
    assert {git(origin, "rev-parse", f"v1{end}-dockerfile") for end in ("", ".2.3")} == {main}
    assert git(origin, "diff", "--numstat", "main", "v1.2.3") == "1\t1\taction.yml\n1\t0\trun/wheel.txt"
    wheel = git(origin, "show", "v1.2.3:run/wheel.txt")
    assert wheel == f"ci-evals==1.2.3 --hash={DIGEST}"
    released = checkout.parent / "action.yml"
    released.write_text(git(origin, "show", "v1.2.3:action.yml"))
    assert yaml.load(released.read_text(), yaml.CSafeLoader) == ACTION | {
        "runs": {"using": "docker", "image": f"docker://ghcr.io/org/ci-evals@{DIGEST}"}
    }
    checker = Path(sys.executable).parent / "check-jsonschema"
    subprocess.run([checker, "--builtin-schema", "vendor.github-actions", released], check=True)
    release(again)
    assert git(origin, "rev-parse", "v1.2.3") == tag


@pytest.fixture
def github(tmp_path):
    """A `gh` that notes how it is called, and knows no release; a `docker` that lists packages."""
    folder = tmp_path / "bin"
    folder.mkdir()
    log = f'echo "$*" >> {tmp_path}/gh.log'
    (folder / "gh").write_text(f'#!/bin/sh\n{log}\ntest "$2" != view || test -e {tmp_path}/draft\n')
    listing = r'echo "{\"spdxVersion\": \"SPDX-2.3\", \"of\": \"$*\"}"'
    (folder / "docker").write_text(f"#!/bin/sh\n{listing}\n")
    for program in folder.iterdir():
        program.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def publish(folder, environ):
    for name in ("Take the image's list of packages", "Make the release"):
        image = f"ghcr.io/org/ci-evals@{DIGEST}"
        done = play(name, folder, VERSION="1.2.3", IMAGE=image, GH_TOKEN="t", **environ)
        if done.returncode:
            return done
    return done


@pytest.mark.slow
def test_release_is_a_draft_until_package_list_and_all_files_are_uploaded(tmp_path, github):
    """GitHub lets nobody change a published one. A job that is rerun finds its draft.

    An image that was built without a list of packages gives an empty answer: then there is no release.
    """
    assets = tmp_path / "assets"
    assets.mkdir()
    assert publish(tmp_path, github).returncode != 0
    assert not (tmp_path / "gh.log").exists()
    for name in ("ci_evals-1.2.3-py3-none-any.whl", "ci_evals-1.2.3.tar.gz", "ci-evals-1.2.3.intoto.jsonl"):
        (assets / name).touch()
    docker = tmp_path / "bin/docker"
    listing = docker.read_text()
    docker.write_text("#!/bin/sh\necho null\n")
    assert publish(tmp_path, github).returncode != 0
    assert not (tmp_path / "gh.log").exists()
    docker.write_text(listing)
    for _ in range(2):
        done = publish(tmp_path, github)
        assert done.returncode == 0, done.stderr
        (tmp_path / "draft").touch()
    files = [*assets.iterdir()]
    assert {file.suffix for file in files} == {".whl", ".gz", ".jsonl", ".json"}
    *_, upload, _ = (tmp_path / "gh.log").read_text().splitlines()
    assert sorted(upload.split()[4:]) == sorted(f"assets/{file.name}" for file in files)
    create = "release create v1.2.3 --draft --verify-tag --title v1.2.3 --notes-file notes.md"
    view, edit = "release view v1.2.3", "release edit v1.2.3 --draft=false"
    assert (tmp_path / "gh.log").read_text().splitlines() == [view, create, upload, edit, view, upload, edit]
    text = (assets / "ci-evals-1.2.3-image-amd64.spdx.json").read_text()
    packages = json.loads(text.replace('"linux/amd64"', "linux/amd64"))
    assert packages["of"].startswith(f"buildx imagetools inspect ghcr.io/org/ci-evals@{DIGEST}")
    assert "linux/amd64" in packages["of"]


@pytest.fixture
def docker(tmp_path):
    program = tmp_path / "bin/docker"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/docker.log\n')
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}"}


@pytest.mark.slow
def test_image_rebuild_moves_version_line_tags_but_not_release_tag(checkout, docker):
    release(checkout)
    origin = checkout.parent / "origin"
    released = git(origin, "rev-parse", "v1.2.3")
    newest = checkout.parent / "newest"
    assert play("Find the newest release", checkout, GITHUB_OUTPUT=str(newest)).returncode == 0
    assert newest.read_text().startswith("version=1.2.3\nday=20")
    git(checkout, "checkout", "--quiet", "v1.2.3")
    newer = "sha256:" + "f" * 64
    image = {"NAME": "ghcr.io/org/ci-evals", "DIGEST": newer, "VERSION": "1.2.3"}
    done = play("Move the tags", checkout, **image, **docker)
    assert done.returncode == 0, done.stderr
    assert git(origin, "rev-parse", "v1.2.3") == released
    for line in ("v1", "v1.2"):
        assert f"docker://ghcr.io/org/ci-evals@{newer}" in git(origin, "show", f"{line}:action.yml")
    assert (checkout.parent / "docker.log").read_text().count(f"@{newer}") == 2


def test_image_is_tested_on_both_architectures_before_publishing():
    jobs = read(ROOT / ".github/workflows/image.yml")["jobs"]
    assert "push-by-digest=true" in jobs["build"]["steps"][-1]["with"]["outputs"]
    assert jobs["try"]["strategy"]["matrix"]["runner"] == ["ubuntu-latest", "ubuntu-24.04-arm"]
    assert set(jobs["publish"]["needs"]) == {"build", "try"}


@pytest.mark.slow
def test_released_version_is_not_released_again(checkout):
    origin = checkout.parent / "origin"
    git(checkout, "push", "--quiet", "origin", "main:refs/tags/v1.2.3", "main:refs/tags/v1")
    before = git(origin, "show-ref")
    play("Name the image in action.yml", checkout, IMAGE="ghcr.io/org/ci-evals", DIGEST=DIGEST)
    assert play("Tag", checkout, VERSION="1.2.3").returncode != 0
    assert git(origin, "show-ref") == before
    git(checkout, "tag", "--force", "v1.2.3")
    assert "v1.2.3 is released" in play("Check the version", checkout, VERSION="1.2.3").stderr


@pytest.mark.slow
@each_row("digest", ["", "sha256:0", f"{DIGEST}\n  evil: true"])
def test_malformed_image_digest_is_rejected_and_action_file_kept(tmp_path, digest):
    """A tag instead could be moved later."""
    before = (ROOT / "action.yml").read_text()
    (tmp_path / "action.yml").write_text(before)
    done = play("Name the image in action.yml", tmp_path, IMAGE="ghcr.io/org/ci-evals", DIGEST=digest)
    assert (done.returncode, (tmp_path / "action.yml").read_text()) == (1, before)
