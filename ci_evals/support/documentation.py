"""Where the project is published. A copy that is published elsewhere changes these names."""

REPOSITORY = "org/aui-evals-action"
"""The action's repository in every example; its users put the real one in the place."""

SITE = "https://org.github.io/aui-evals-action/"
"""The documentation, as `.github/workflows/docs.yml` publishes it."""

PACKAGE = "ci-evals"
"""The distribution. No index has it yet: it is installed from a clone (`docs/get-started.md`)."""


def address(page: str) -> str:
    """Return the address of a page on the site: `traces` for `docs/traces.md`, or `adapters#a-heading`."""
    name, mark, heading = page.partition("#")
    return f"{SITE}{name}/{mark}{heading}"


def see(page: str) -> str:
    """Name a page in a message, by its file and by its address: a reader may have either."""
    return f"docs/{page}.md, {address(page)}"


def extra(name: str) -> str:
    """Return the command that adds the packages of an extra to an installation."""
    return f"pip install '{PACKAGE}[{name}]'"
