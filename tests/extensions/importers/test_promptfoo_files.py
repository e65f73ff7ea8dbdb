"""promptfoo's tests in other files: read where they are data in the same repository, else named."""

import json
import os

import pytest
import yaml
from each_row import each_row

from ci_evals.domain.errors import UsageError
from ci_evals.extensions.importers.formats import IMPORTERS
from ci_evals.extensions.importers.imported import suite_text
from ci_evals.extensions.importers.other_files import OtherFiles

HOURS = {"vars": {"question": "When?"}, "assert": [{"type": "icontains", "value": "9 am"}]}
SUNDAY = {"vars": {"question": "Sunday?"}, "assert": [{"type": "icontains", "value": "closed"}]}
TWO = ["When?", "Sunday?"]


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def imported(folder, name, files):
    """Return the tests of the file called `name`, and what was said of it."""
    write(folder, files)
    path = folder / name
    result = IMPORTERS["promptfoo"].read(path.read_text(encoding="utf-8"), name, OtherFiles(path))
    text = suite_text(result, "promptfoo", name, "suite.yaml")
    return yaml.load(text, yaml.CSafeLoader)["tests"], "\n".join(result.notes)


def refusal(folder, name, files):
    with pytest.raises(UsageError) as error:
        imported(folder, name, files)
    return str(error.value)


def lines(tests):
    return [test["turns"][0]["user"] for test in tests]


def config(tests, **fields):
    return {"prompts": ["{{question}}"], "tests": tests} | fields


CSV = "question,__expected\nWhen?,icontains: 9 am\nSunday?,icontains: closed\n"
JSON_LINES = "\n" + json.dumps(HOURS) + "\n" + json.dumps(SUNDAY) + "\n"
JSON_ROWS = [
    {"question": "When?", "__expected": "icontains: 9 am"},
    {"question": "Sunday?", "__expected1": "icontains: closed"},
]


@each_row(("case", "tests", "files"), [
    ("a name", "t.yaml", {"t.yaml": [HOURS, SUNDAY]}),
    ("a marked name", "file://t.yaml", {"t.yaml": [HOURS, SUNDAY]}),
    ("a name from here", "file://./t.yml", {"t.yml": [HOURS, SUNDAY]}),
    ("a list of names", ["file://a.yaml", "b.json"], {"a.yaml": [HOURS], "b.json": [SUNDAY]}),
    ("names and tests", ["file://a.yaml", SUNDAY], {"a.yaml": [HOURS]}),
    ("a file with one test", ["a.yaml", "b.yaml"], {"a.yaml": HOURS, "b.yaml": SUNDAY}),
    ("JSON Lines", "file://t.jsonl", {"t.jsonl": JSON_LINES}),
    ("a table", "file://t.csv", {"t.csv": CSV}),
    ("a table with a byte order mark", "t.csv", {"t.csv": "\ufeff" + CSV}),
    ("rows in JSON", "t.json", {"t.json": JSON_ROWS}),
    ("a path", {"path": "file://t.csv"}, {"t.csv": CSV}),
    ("a list of paths", [{"path": "t.csv"}], {"t.csv": CSV}),
    ("a pattern", "file://tests/*.yaml", {"tests/a.yaml": [HOURS], "tests/b.yaml": [SUNDAY]}),
    ("a pattern of folders", "tests/**/*.yaml", {"tests/a.yaml": [HOURS], "tests/x/y/b.yaml": [SUNDAY]}),
    ("a pattern of endings", "t/*.{yaml,json}", {"t/a.json": [HOURS], "t/b.yaml": [SUNDAY], "t/c.py": "x"}),
    ("a pattern of names", "t[12].json", {"t1.json": HOURS, "t2.json": SUNDAY, "t3.json": HOURS}),
    ("a file that names another", "a.yaml", {"a.yaml": [HOURS, "file://b.yaml"], "b.yaml": [SUNDAY]}),
    ("a file next to it", "t/a.yaml",
     {"t/a.yaml": ["file://b.yaml", SUNDAY], "t/b.yaml": HOURS, "b.yaml": SUNDAY}),
])  # fmt: skip
def test_tests_in_other_files_are_read(tmp_path, case, tests, files):
    result, notes = imported(tmp_path / case, "c.json", files | {"c.json": config(tests)})
    assert lines(result) == TWO
    assert [test["evaluations"][0]["pattern"] for test in result] == ["(?i)9 am", "(?i)closed"]
    assert "left out" not in notes


ALONE = [
    ("a list in YAML", "t.yaml", yaml.safe_dump([HOURS, SUNDAY])),
    ("a list in JSON", "t.json", [HOURS, SUNDAY]),
    ("JSON Lines", "t.jsonl", JSON_LINES),
    ("a table", "t.csv", CSV),
    ("a list of rows", "t.json", JSON_ROWS),
]


@each_row(("name", "content"), [case[1:] for case in ALONE], ids=[case[0] for case in ALONE])
def test_file_of_tests_is_read_without_a_configuration(tmp_path, name, content):
    result, _ = imported(tmp_path, name, {name: content})
    assert lines(result) == TWO
    assert [test["evaluations"][0]["pattern"] for test in result] == ["(?i)9 am", "(?i)closed"]
    result, _ = imported(tmp_path, "one.yaml", {"one.yaml": HOURS})
    assert lines(result) == ["When?"]


def test_default_test_scenarios_variables_and_assertions_are_read_from_files(tmp_path):
    files = {
        "c.yaml": {
            "prompts": ["file://prompt.txt"], "defaultTest": "file://default.yaml",
            "tests": [{"vars": ["file://vars.yaml", "v/*.json"], "assert": "file://asserts.yaml"}],
            "scenarios": ["file://scenarios.yaml"],
        },
        "prompt.txt": "You are the desk.\n---\n{{customer}}",
        "default.yaml": {"assert": [{"type": "not-icontains", "value": "as an ai"}]},
        "vars.yaml": {"customer": "Hi", "plan": "pro"}, "v/city.json": {"city": "Bonn"},
        "asserts.yaml": [{"type": "contains", "value": "Hello"}],
        "scenarios.yaml": [{"config": "file://config.json", "tests": "file://t.csv"}],
        "config.json": [{"vars": {"plan": "basic"}}], "t.csv": "customer,__expected\nBye,contains: Bye\n",
    }  # fmt: skip
    result, notes = imported(tmp_path, "c.yaml", files)
    assert lines(result) == ["Hi", "Bye"]
    assert [test["userInfo"] for test in result] == [{"plan": "pro", "city": "Bonn"}, {"plan": "basic"}]
    checks = [[check.get("pattern") or check["text"] for check in test["evaluations"]] for test in result]
    assert checks == [["(?i)as an ai", "Hello"], ["(?i)as an ai", "Bye"]]
    assert "left out: the agent has its own instructions" in notes


OUTSIDE = "is outside of the repository of the imported file"
NOT_READ = [
    ("an absolute path", "file:///etc/passwd.yaml", "is an absolute path"),
    ("a path of Windows", "C:\\t.yaml", "is an absolute path"),
    ("a home folder", "~/t.yaml", "is an absolute path"),
    ("a parent of the repository", "file://../../t.yaml", OUTSIDE),
    ("many parents", "file://" + "../" * 30 + "etc/t.json", OUTSIDE),
    ("a pattern in a parent", "file://../../*.yaml", OUTSIDE),
    ("a link out of the repository", "file://link.yaml", OUTSIDE),
    ("a link in a pattern", "file://lin*.yaml", OUTSIDE),
    ("a folder that is a link, in a pattern", "file://linked/*.yaml", OUTSIDE),
    ("a pipe", "file://pipe.yaml", "cannot be read: it is a named pipe"),
    ("a file that is not there", "file://none.yaml", "cannot be read: No such file"),
    ("a pattern of nothing", "file://none/*.yaml", "cannot be read: No such file"),
    ("a pattern that nothing matches", "file://*.csv", "matches no file"),
    ("a folder", "file://folder", "is not a file that ends in .yaml"),
    ("a folder with the name of a file", "file://folder.yaml", "cannot be read: Is a directory"),
    ("another format", "file://t.toml", "is not a file that ends in .yaml"),
    ("a spreadsheet", "file://t.xlsx#Sheet1", "is a spreadsheet: save it as CSV"),
    ("Python", "file://t.py", "is code, which is not run"),
    ("a function", "file://t.py:make_tests", "is code, which is not run"),
    ("JavaScript", "t.mjs", "is code, which is not run"),
    ("TypeScript", {"path": "file://t.ts:make", "config": {"a": 1}}, "is code, which is not run"),
    ("an address", "https://docs.google.com/spreadsheets/d/x", "is an address, and nothing is fetched"),
    ("a data set", "huggingface://datasets/a/b", "is an address, and nothing is fetched"),
    ("no name", "file://", "is not the name of a file"),
    ("a null character", "file://a\0.yaml", "cannot be read"),
    ("a very long name", "a" * 5_000 + ".yaml", "is not the name of a file"),
    ("another encoding", "file://latin.yaml", "it is not UTF-8"),
    ("a file that names itself", "file://self.yaml", "names itself"),
    ("braces by the dozen", "{a,b}" * 40 + ".yaml", "has more than 100 alternatives"),
    ("a broken file", "file://broken.json", "broken.json:1:"),
]


@pytest.fixture
def hostile_folder(tmp_path):
    """A folder with links out of its repository, a pipe, code, and broken files."""
    write(tmp_path, {"t.yaml": [SUNDAY], "secret/t.yaml": [SUNDAY]})
    repository = tmp_path / "repository"
    folder = repository / "evals"
    (repository / ".git").mkdir(parents=True)
    (folder / "folder.yaml").mkdir(parents=True)
    (folder / "folder").mkdir()
    (folder / "link.yaml").symlink_to(tmp_path / "t.yaml")
    (folder / "linked").symlink_to(tmp_path / "secret")
    os.mkfifo(folder / "pipe.yaml")
    (folder / "latin.yaml").write_bytes(b"- \xe9\n")
    write(folder, {"self.yaml": ["file://self.yaml"], "broken.json": "[{]", "t.py": "raise SystemExit(7)"})
    return folder


@each_row(("tests", "reason"), [case[1:] for case in NOT_READ], ids=[case[0] for case in NOT_READ])
def test_code_and_files_outside_the_repository_are_never_read(hostile_folder, tests, reason):
    files = {"c.json": json.dumps(config([tests, HOURS]), indent=1)}
    result, notes = imported(hostile_folder, "c.json", files)
    assert lines(result) == ["When?"]
    (note,) = [note for note in notes.splitlines() if reason in note]
    assert note.endswith("(left out)")
    assert any(place in note for place in (": tests[0]: ", "self.yaml:1:", "broken.json:1:"))


def test_files_are_read_only_within_the_repository_or_else_the_folder(tmp_path):
    (tmp_path / ".git").mkdir()
    write(tmp_path, {"shared/t.yaml": [SUNDAY]})
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "link.yaml").symlink_to(tmp_path / "shared" / "t.yaml")
    files = {"c.yaml": config(["file://../shared/*.yaml", "file://link.yaml", HOURS])}
    result, _ = imported(tmp_path / "evals", "c.yaml", files)
    assert lines(result) == ["Sunday?", "Sunday?", "When?"]
    (tmp_path / ".git").rmdir()
    write(tmp_path, {"t.yaml": [SUNDAY]})
    files = {"c.yaml": config(["file://../t.yaml", HOURS])}
    result, notes = imported(tmp_path / "evals", "c.yaml", files)
    assert lines(result) == ["When?"]
    assert "is outside of the folder of the imported file" in notes


def test_configuration_without_usable_tests_or_with_too_many_files_is_refused(tmp_path):
    tests = ["file://t.py", {"vars": {"a": "x", "b": "y"}}, {"vars": {"question": ""}}]
    files = {"c.yaml": yaml.safe_dump({"prompts": ["file://p.py"], "tests": tests})}
    message = refusal(tmp_path, "c.yaml", files)
    assert message.startswith("c.yaml: contains nothing that can become a test:\n")
    assert "c.yaml:4:3: tests[0]: 'file://t.py' is code, which is not run" in message
    assert "c.yaml:5:3: tests[1]: left out: it is unknown which of its variables ('a', 'b')" in message
    assert "c.yaml:8:3: tests[2]: left out: the user's message is empty" in message
    files = {f"t/{number}.yaml": [HOURS] for number in range(201)}
    message = refusal(tmp_path, "c.yaml", files | {"c.yaml": config("t/*.yaml")})
    assert "is one more than the 200 other files that are read" in message


@each_row(("cell", "metric", "check"), [
    ("contains: a", "", {"strict": "contains", "text": "a"}),
    ("not-contains:a b ", "", {"strict": "not_contains", "text": "a b"}),
    ("contains-any: a, b", "", {"strict": "regex", "pattern": "a|b"}),
    ("not-icontains-any:a,b", "", {"strict": "not_regex", "pattern": "(?i)a|b"}),
    ("regex:a:b", "", {"strict": "regex", "pattern": "a:b"}),
    ("similar(0.9):hello", "", {"expected": "hello", "threshold": 0.9}),
    ("similar:hello", "", {"expected": "hello", "threshold": 0.8}),
    ("latency(2000)", "", {"strict": "max_latency", "seconds": 2}),
    ("grade: Is kind", "", {"criterion": "Is kind"}),
    ("llm-rubric:Is kind", "tone", {"criterion": "Is kind", "category": "tone"}),
    ("nine", "", {"strict": "answer_matches", "expected": "nine", "match": "exact"}),
    ("unheard-of: nine", "", {"strict": "answer_matches", "expected": "unheard-of: nine"}),
])  # fmt: skip
def test_expected_cell_becomes_the_evaluation_of_its_assertion(tmp_path, cell, metric, check):
    row = {"question": "Hi", "__expected": cell, "__metric": metric}
    result, _ = imported(tmp_path, "t.json", {"t.json": [row]})
    (evaluation,) = result[0]["evaluations"]
    assert evaluation | check == evaluation


def test_special_columns_of_a_table_set_checks_name_threshold_and_tags(tmp_path):
    header = "question,__expected1,__expected2,__description,__threshold,__metadata:tags[],plan"
    header += ",__config:__expected2:threshold"
    rows = ['Hi,contains: a,similar: b,First,0.5,"x, y",,0.7', "Bye,contains: c"]
    result, notes = imported(tmp_path, "t.csv", {"t.csv": "\n".join([header, *rows])})
    first, second = result
    assert (first["name"], first["minScore"], first["tags"]) == ("First", 50, ["x", "y"])
    assert first["userInfo"] == {"plan": ""}
    assert [check.get("threshold") for check in first["evaluations"]] == [None, 0.7]
    assert second["turns"] == [{"user": "Bye"}]
    assert "t.csv:3:1: the row has 2 cells, the header 8: nothing is read for '__expected2'" in notes


@each_row(("column", "cell", "reason"), [
    ("__expected", 'contains-any:"a', "its contains-any has a list with a quote that is not closed"),
    ("__expected", "javascript: output", "'javascript' has no counterpart"),
    ("__expected", "python: output", "'python' has no counterpart"),
    ("__expected", "file://check.js", "names a file, which is not read"),
    ("__threshold", "high", "__threshold: 'high' is not a number"),
    ("__config:__expected3:threshold", "0.5", "it has a threshold for __expected3"),
    ("_expected", "contains: a", "promptfoo does not read the column '_expected'"),
    ("__config:threshold", "0.5", "promptfoo does not read the column '__config:threshold'"),
    ("__prefix", "Be kind.", "no counterpart for its options.prefix"),
    ("__providerOutput", "x", "no counterpart for its providerOutput"),
])  # fmt: skip
def test_unsupported_cell_of_a_row_is_named_and_the_others_are_imported(tmp_path, column, cell, reason):
    rows = [{"question": "Hi", column: cell}, {"question": "Bye", "__expected": "a"}]
    result, notes = imported(tmp_path, "t.jsonl", {"t.jsonl": "\n".join(map(json.dumps, rows))})
    assert lines(result)[-1] == "Bye"
    assert reason in notes
