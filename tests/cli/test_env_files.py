"""`.env` and `--env-file`: variables for any command, of which those that are set win."""

import pytest
from commands import action, ci_evals
from each_row import each_row

from ci_evals.cli import env_files
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError

SUITE = (
    '{"name": "S", "agentId": "${env:AGENT}", "apiKey": "${KEY}", "tests": [{"name": "t", "guidelines": "g", '
    '"turns": [{"user": "hi"}], "evaluations": [{"criterion": "c", "strict": "not_escalated"}]}]}'
)


@each_row(
    ("arguments", "others", "named"),
    [
        (["run", "a.yaml"], ["run", "a.yaml"], []),
        (["run", "--env-file", "x", "a.yaml"], ["run", "a.yaml"], ["x"]),
        (["--env-file=x", "run", "--env-file=y"], ["run"], ["x", "y"]),
        (["run", "--", "--env-file=x"], ["run", "--", "--env-file=x"], []),
        (["run", "--env-file"], ["run"], [""]),
    ],
)
def test_env_file_option_is_accepted_anywhere_before_double_dash(arguments, others, named):
    """Also before the command, which must not lose its supervisor by that."""
    assert env_files.split(arguments) == (others, named)


@pytest.fixture
def variables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read(text: str | bytes, named=("given.env",), **environ: str) -> dict[str, str]:
        file = tmp_path / (named[0] if named else ".env")
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        context = RunContext(dict(environ))
        env_files.read(named, context)
        return {name: value for name, value in context.environ.items() if name not in environ}

    return read


def test_env_file_syntax_is_read_and_existing_variables_take_precedence(variables):
    text = "# a comment\nA=1\nexport B='two words'\nC=\"x\\ny\"\nD=${A}2\nE=\n\nF\n"
    assert variables(text) == {"A": "1", "B": "two words", "C": "x\ny", "D": "12", "E": ""}
    assert (variables("A=1\nB=2\n", A="mine"), variables("A=1\n", A="")) == ({"B": "2"}, {})


def test_invalid_or_missing_env_file_is_rejected_if_named(variables, capsys):
    for text, problem in (
        ("A=1\nnot a variable\n", r"given\.env:2: this line sets no variable"),
        ("A='1\n", r"given\.env:1: this line sets no variable"),
        ("A=\0\n", r"given\.env:1: this line sets no variable"),
        (b"A=\xff\n", "cannot be read: it is not UTF-8"),
    ):
        with pytest.raises(UsageError, match=problem):
            variables(text)
    for name, problem in (("none", "'none' cannot be read"), ("", "names no file"), (".", "cannot be read")):
        with pytest.raises(UsageError, match=problem):
            env_files.read([name], RunContext({}))
    assert variables("A=1\nnot a variable\n", named=()) == {}
    assert "warning: .env:2: this line sets no variable" in capsys.readouterr().err


@each_row("ci", [{"CI": "true"}, {"CI": "false"}, {"GITHUB_ACTIONS": "true"}, {}])
def test_env_file_is_read_in_ci_only_if_named(variables, ci):
    """There a checkout may be anybody's."""
    assert variables("A=1\n", named=(), **ci) == ({} if ci else {"A": "1"})
    assert variables("A=1\n", **ci) == {"A": "1"}


@pytest.mark.end_to_end
def test_suite_gets_variables_of_env_file_and_only_names_are_shown(tmp_path):
    (tmp_path / "suite.json").write_text(SUITE)
    (tmp_path / ".env").write_text("AGENT=a1\nKEY=key-of-the-agent-4711\n")
    done = ci_evals("validate", "suite.json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ".env sets AGENT, KEY\n")
    done = ci_evals("validate", "suite.json", cwd=tmp_path, env={"CI": "true"})
    assert (done.returncode, "AGENT is not set" in done.stderr) == (2, True)


@pytest.mark.slow
def test_env_file_of_foreign_checkout_is_rejected(tmp_path):
    """It would decide where keys go."""
    (tmp_path / "suite.json").write_text(SUITE)
    (tmp_path / "given.env").write_text("OPENAI_BASE_URL=http://127.0.0.1:9\n")
    env = {"GITHUB_EVENT_NAME": "pull_request_target", "GITHUB_ACTIONS": "true"}
    done = action("validate", "demo:hr", "--env-file=given.env", cwd=tmp_path, env=env)
    assert done.returncode == 2
    assert "--env-file" in done.stderr + done.stdout
