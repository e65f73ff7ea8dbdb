"""Which files a pattern of `when.paths` takes."""

from each_row import each_row

from ci_evals.planning.paths import touches


@each_row(("pattern", "taken", "left"), [
    ("src/agent/**", ["src/agent/a.py", "src/agent/tools/b.py", "src/agent"],
     ["src/agents/a.py", "src/a.py"]),
    ("src/agent", ["src/agent", "src/agent/tools/b.py"], ["src/agent.py", "lib/src/agent/a.py"]),
    ("./src/agent/", ["src/agent/a.py"], ["src/agent2/a.py"]),
    ("prompts/*.md", ["prompts/judge.md"], ["prompts/old/judge.md", "prompts/judge.txt", "prompts/judgeXmd"]),
    ("**/*.py", ["a.py", "src/deep/a.py"], ["a.pyc", "src/a.js"]),
    ("src/**/b.py", ["src/b.py", "src/x/y/b.py"], ["src/xb.py", "b.py"]),
    ("v?.txt", ["v1.txt"], ["v10.txt", "v/.txt"]),
    ("a+(b).py", ["a+(b).py"], ["aab.py"]),
    ("**", ["any/thing", "odd\nname"], []),
])  # fmt: skip
def test_path_pattern_matches_only_expected_files(pattern, taken, left):
    assert [file for file in [*taken, *left] if touches([pattern], [file])] == taken


def test_paths_match_if_any_file_matches_any_pattern():
    assert touches(["docs/**", "src/**"], ["README.md", "src/a.py"])
    assert not touches(["docs/**"], [])
