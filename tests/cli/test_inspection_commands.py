"""The commands that start no trial: validate, plan, list-suites, schema, report; and the demo agent alone."""

import json
import re
import signal
from itertools import product

import httpx2
import jsonschema
import pytest
import world
from commands import ci_evals, read_files, read_results, start, write_suite
from doc_pages import ROOT
from exits import exits

pytestmark = pytest.mark.slow
SUITES = sorted((ROOT / "suites").rglob("*.json"))


@pytest.mark.end_to_end
def test_validate_lists_each_suite_once_and_all_errors_and_unreadable_files(tmp_path):
    for name in ("a.json", "b.json"):
        write_suite(tmp_path, name=name)
    for names in (["a.json", "b.json"], ["."], ["*.json"], ["a.json", "a.json", "b.json"]):
        ran = exits(0, "validate", *names, cwd=tmp_path, env={"AGENT_KEY": "key-123456"})
        listed = [line for line in ran.stdout.splitlines() if line.startswith("ok  ")]
        assert [line.split()[1] for line in listed] == ["a.json:", "b.json:"]
    write_suite(tmp_path, name="a.json", minScroe=5)
    write_suite(tmp_path, name="b.json", maxTurns=0)
    write_suite(tmp_path, name="c.json")
    (tmp_path / "d.json").write_bytes(b'{"name": "\xff"}')
    names = ("d.json", "a.json", "b.json", "c.json", "nowhere.json")
    ran = ci_evals("validate", *names, cwd=tmp_path, env={"AGENT_KEY": "key-123456"})
    assert (ran.returncode, ran.stdout) == (2, "")
    errors = ("a.json:1:", "did you mean 'minScore'?", "b.json:1:")
    for text in (*errors, "d.json:1:11: not UTF-8", "No file 'nowhere.json'"):
        assert text in ran.stderr


def test_listed_bundled_suites_are_valid(tmp_path):
    listed = ci_evals("list-suites", cwd=tmp_path).stdout
    names = [line.split()[0] for line in listed.splitlines() if line.startswith(("demo:", "quack:"))]
    assert {"demo:hr", "demo:retail"} <= set(names)
    for name in ("safety:data", "safety:injection", "safety:authority", "safety:policy"):
        assert f"\n{name} " in listed
    assert "extends: safety:authority" in listed
    assert ci_evals("validate", *names, cwd=tmp_path).returncode == 0


def test_validate_needs_no_key(tmp_path):
    """A check of a pull request has no secrets."""
    write_suite(tmp_path, name="s.json", apiKey=None)
    assert ci_evals("validate", "s.json", cwd=tmp_path).returncode == 0
    write_suite(tmp_path, name="s.json", apiKey="${AGENT_KEY}")
    assert ci_evals("validate", "s.json", "--agent-key=key-123456", cwd=tmp_path).returncode == 0


def test_validate_warns_of_suite_without_strict_check_only_with_strict(tmp_path):
    write_suite(tmp_path, {"evaluations": [{"criterion": "polite"}]}, name="s.json", apiKey="key-123456")
    assert "warning" not in ci_evals("validate", "s.json", cwd=tmp_path).stderr
    strict = exits(0, "validate", "--strict", "s.json", cwd=tmp_path)
    assert "warning: s.json:1:" in strict.stderr
    assert "tests: no test has a strict check" in strict.stderr
    assert strict.stdout.startswith("ok  s.json")


@pytest.mark.end_to_end
def test_plan_counts_tests_turns_and_calls_without_making_any(tmp_path):
    two = {"name": "two", "tags": ["x"], "maxTurns": 3, "evaluations": [{"criterion": "c"}]}
    with world.agent() as agent:
        write_suite(tmp_path, {"name": "one"}, two)
        env = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key}
        ran = ci_evals("plan", "suite.json", "--loops=2", cwd=tmp_path, env=env)
        assert agent.requests == []
    assert ran.returncode == 0, ran.stderr
    assert "2 tests, 4 trials, 4 to 8 turns; 2 strict and 2 judged evaluations" in ran.stdout
    assert "calls at most: agent 12, simulated user 4, judge 2" in ran.stdout
    only = ci_evals("plan", "suite.json", "--tag=x", cwd=tmp_path, env=env).stdout
    assert "one" not in only


def estimate(ran) -> dict[str, str]:
    assert ran.returncode == 0, ran.stderr
    named = (line.split(maxsplit=1) for line in ran.stdout.splitlines()[-4:])
    return {name.strip(":"): result for name, result in named}


def test_plan_estimates_tokens_cost_and_duration_as_ranges(tmp_path):
    forecast = estimate(ci_evals("plan", "demo:retail", "--loops=3", "--parallel=4", cwd=tmp_path))
    assert re.fullmatch(r"\d+ k to \d+ k", forecast["tokens"])
    dollars = r"\$\d\.\d{2,4} to \$\d\.\d{2}"
    models = r"\(gpt-6-luna, gpt-6\.1-terra; prices of [-0-9]{10}\)"
    assert re.fullmatch(f"{dollars} {models}", forecast["cost"])
    assert re.fullmatch(r"\d+ s to \d+ m at --parallel=4", forecast["duration"])
    assert "conversations may end early" in forecast["estimated"]
    other = estimate(ci_evals("plan", "demo:retail", "--provider=anthropic", cwd=tmp_path))
    assert "(claude-haiku-5-5, claude-sonnet-5-5; prices of" in other["cost"]


def test_plan_prices_only_needed_models_and_cost_is_unknown_if_one_has_no_price(tmp_path):
    """A price file replaces the bundled table."""
    ran = ci_evals("plan", "demo:hr", "--provider=offline", cwd=tmp_path)
    forecast = estimate(ran)
    assert (forecast["tokens"], forecast["cost"]) == ("none", "none")
    assert forecast["duration"].startswith("0.0 s to ")
    assert "simulated user 0, judge 0" in ran.stdout
    env = {"AGENT_KEY": "key-123456"}
    write_suite(tmp_path)
    assert estimate(ci_evals("plan", "suite.json", cwd=tmp_path, env=env))["cost"] == "none"
    write_suite(tmp_path, {"evaluations": [{"criterion": "c"}]})
    forecast = estimate(ci_evals("plan", "suite.json", "--user-model=nobodys", cwd=tmp_path, env=env))
    assert "(gpt-6.1-terra; prices of" in forecast["cost"]
    forecast = estimate(ci_evals("plan", "demo:hr", "--judge-model=my-own", cwd=tmp_path))
    assert forecast["cost"].startswith("unknown: no price for my-own.")
    (tmp_path / "prices.json").write_text('{"models": {"my-own": {"input": 1, "output": 1}}}')
    named = ("--judge-model=my-own", "--prices=prices.json")
    forecast = estimate(ci_evals("plan", "demo:hr", *named, cwd=tmp_path))
    assert forecast["cost"].startswith("unknown: no price for gpt-6-luna.")
    forecast = estimate(ci_evals("plan", "demo:hr", *named, "--user-model=my-own", cwd=tmp_path))
    assert forecast["cost"].endswith("(my-own)")


def test_invalid_price_file_is_rejected_with_line_and_expected_form(tmp_path):
    (tmp_path / "prices.yaml").write_text("models:\n  m: {input: 1}\n")
    ran = ci_evals("plan", "demo:hr", "--prices=prices.yaml", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "prices.yaml:2:6: models.m.output: is missing" in ran.stderr
    assert "a price file has the form" in ran.stderr


def test_suite_schema_accepts_bundled_suites_and_rejects_invalid_ones(tmp_path):
    schema = json.loads(ci_evals("schema", cwd=tmp_path).stdout)
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    check = validator(schema)
    forms = set()
    for path in SUITES:
        suite = json.loads(path.read_text())
        for test in suite["tests"]:  # an evaluation of each form is enough, and there are a thousand
            form_of = {(one.get("strict"), *one): one for one in test["evaluations"]}
            new = [one for form, one in form_of.items() if form not in forms]
            test["evaluations"] = new or test["evaluations"][:1]
            forms |= form_of.keys()
        assert list(check.iter_errors(suite | {"$schema": "x", "x-note": 1})) == []
    assert not check.is_valid(suite | {"minScroe": 5})
    suite["tests"][0]["evaluations"][0]["strict"] = "tool_use"
    assert not check.is_valid(suite)


@pytest.mark.end_to_end
def test_results_fit_results_schema(tmp_path):
    schema = json.loads(ci_evals("schema", "--results", cwd=tmp_path).stdout)
    ci_evals("run", "demo:hr", "--provider=offline", cwd=tmp_path)
    for path in (tmp_path / "results").rglob("_results.json"):
        jsonschema.validate(json.loads(path.read_text()), schema)


@pytest.mark.end_to_end
def test_report_rewrites_every_file_identically(tmp_path):
    """From `_results.json` of the run or of a suite: without clock, environment or the order of a set."""
    ci_evals("run", "demo:hr", "--provider=offline", "--debug", cwd=tmp_path)
    folder = tmp_path / "results"
    (folder / "journal.jsonl").unlink()  # what a run writes for itself
    before = read_files(folder)
    for path in folder.rglob("*"):
        if path.is_file() and path != folder / "_results.json":
            path.unlink()
    env = {"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7"}
    exits(0, "report", "results/_results.json", cwd=tmp_path, env=env)
    assert read_files(folder) == before
    own = folder / read_results(tmp_path)["suites"][0]["folder"]
    for path in own.glob("*.md"):
        path.unlink()
    assert ci_evals("report", str(own / "_results.json"), cwd=tmp_path).returncode == 0
    assert read_files(folder) == before


def test_report_of_invalid_results_file_exits_2_and_writes_nothing(tmp_path):
    for text, message in (
        (None, "r.json: no such file or folder"),
        ("{", "not JSON"),
        ("{}", "schemaVersion"),
        ('{"schemaVersion": 9}', "newer version"),
    ):
        if text is not None:
            (tmp_path / "r.json").write_text(text)
        before = read_files(tmp_path)
        ran = ci_evals("report", "r.json", cwd=tmp_path)
        assert (ran.returncode, read_files(tmp_path)) == (2, before)
        assert message in ran.stderr
        assert "Traceback" not in ran.stderr


@pytest.mark.end_to_end
def test_demo_agent_serves_runs_until_sigterm(tmp_path):
    served = start("demo-agent", "--port=0", cwd=tmp_path)
    try:
        url = served.stdout.readline().split()[-1]
        assert httpx2.post(f"{url}/api/v1/external/tasks", json={}).status_code == 401
        exits(0, "run", "demo:hr", "--provider=offline", f"--base-url={url}", cwd=tmp_path)
        assert read_results(tmp_path)["suites"][0]["adapter"] == "aui"
    finally:
        served.send_signal(signal.SIGTERM)
        served.communicate(timeout=300)
    assert served.returncode == 0


VALID_TEST = """
tests:
  - name: x
    guidelines: Hello
    turns: [{user: hi}]
    evaluations: [{criterion: c, strict: not_escalated}]
"""


def named(field):
    return VALID_TEST.replace("name: x", f"name: x\n    {field}")


INVALID_SUITES = {
    "a wrong value": (named("maxTurns: 0"), "tests[0].maxTurns: 0 is not"),
    "a wrong kind": (VALID_TEST.replace("not_escalated", "not_esc"), "'not_esc' is not a strict type"),
    "an unknown key": (VALID_TEST + "colour: red\n", "colour"),
    "no tests": ("tests: []\n", "tests: "),
    "a name twice": (VALID_TEST + VALID_TEST.partition("tests:\n")[2], "already used"),
    "an unset variable": (VALID_TEST.replace("Hello", "${NOT_THERE}"), "NOT_THERE"),
    "an ended quarantine": (named("quarantine: {reason: r, until: '2020-01-01'}"), "ended on 2020-01-01"),
}
MISSING_FIELDS = {
    "both": ("", ["agentId: is missing", "apiKey: is missing"]),
    "the id": ("apiKey: a-key-of-some-length\n", ["agentId: is missing"]),
    "the key": ("agentId: a\n", ["apiKey: is missing"]),
    "an address": ("adapter: http\n", ["baseUrl: is missing"]),
    "a form of address": ("agentId: a\napiKey: a-key-xy\nbaseUrl: a.b\n", ["baseUrl: must begin with http"]),
    "nothing": ("adapter: demo\n", []),
}


@pytest.mark.parametrize("command", ["plan", "run", "validate"])
def test_missing_agent_fields_are_reported_with_other_errors(tmp_path, command):
    """Each kind of error with each thing that is missing, a suite each.

    For `validate` the key comes from the environment of the run.
    """
    suites = [*product(INVALID_SUITES.items(), MISSING_FIELDS.items())]
    for (fault, (body, _)), (lacks, (head, _)) in suites:
        (tmp_path / f"{fault}, {lacks}.yaml").write_text(f"name: {fault}, {lacks}\n{head}{body}")
    ran = exits(2, command, ".", *([] if command == "validate" else ["--provider=offline"]), cwd=tmp_path)
    for (fault, (_, problem)), (lacks, (_, missing)) in suites:
        lines = (ran.stdout + ran.stderr).splitlines()
        message = "\n".join(line for line in lines if f"{fault}, {lacks}.yaml:" in line)
        assert problem in message, (fault, lacks)
        for each in missing if command != "validate" or lacks == "the id" else ():
            assert message.count(f": {each}") == 1, message
        if not missing:
            assert "is missing" not in message


def test_invalid_value_is_not_also_reported_as_missing(tmp_path):
    (tmp_path / "suite.yaml").write_text(f"name: A\nagentId: 5\napiKey: ${{UNSET_KEY}}\n{VALID_TEST}")
    ran = ci_evals("plan", "suite.yaml", cwd=tmp_path)
    assert [ran.stderr.count(f": {key}: ") for key in ("agentId", "apiKey")] == [1, 1]
    (tmp_path / "suite.yaml").write_text(f"name: A\nadapter: 5\n{VALID_TEST}")
    assert "is missing" not in ci_evals("plan", "suite.yaml", cwd=tmp_path).stderr
