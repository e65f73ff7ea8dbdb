"""What GitHub's runner gives a step of a container action, and how it reads what the step wrote."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Step:
    """A workspace and the step's command files, all below one folder."""

    folder: Path

    def __post_init__(self):
        for name in ("workspace", "home", "workflow", "file_commands"):
            (self.folder / name).mkdir()
        (self.folder / "workflow/event.json").write_text("{}")
        for name in ("set_output", "step_summary"):
            (self.folder / "file_commands" / name).touch()

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def summary(self) -> str:
        return (self.folder / "file_commands/step_summary").read_text()

    def variables(self, root: Path | str, inputs: dict[str, str]) -> dict[str, str]:
        """The step's environment, its folders being found below `root`."""
        return {
            "CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "push",
            "GITHUB_EVENT_PATH": f"{root}/workflow/event.json",
            "GITHUB_OUTPUT": f"{root}/file_commands/set_output",
            "GITHUB_STEP_SUMMARY": f"{root}/file_commands/step_summary",
            "GITHUB_WORKSPACE": f"{root}/workspace", "HOME": f"{root}/home",
        } | {f"INPUT_{name.upper()}": value for name, value in inputs.items()}  # fmt: skip

    @property
    def outputs(self) -> dict[str, str]:
        """What was written to `GITHUB_OUTPUT`, in either of its two forms."""
        values = {}
        lines = iter((self.folder / "file_commands/set_output").read_text().splitlines())
        for line in lines:
            name, equals, value = line.partition("=")
            if not equals or "<<" in name:
                name, _, delimiter = line.partition("<<")
                value = "\n".join(iter(lines.__next__, delimiter))
            values[name] = value
        return values
