"""A PostgreSQL server of one's own, by the programs that Debian's packages and CI runners have."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PASSWORD = "pg-7f2d91c4e6"


def _programs() -> Path | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    result = shutil.which("initdb")
    return next(
        (folder for folder in folders if (folder / "initdb").exists()), result and Path(result).parent
    )


def _user() -> dict[str, object]:
    """The server refuses to run as root."""
    if os.geteuid():
        return {}
    try:
        owner = pwd.getpwnam("postgres")
    except KeyError:
        owner = pwd.getpwnam("nobody")
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": ()}


@contextmanager
def server() -> Iterator[str]:
    """Start a server, and give its address without a driver; skip where it is not installed."""
    programs = _programs()
    if programs is None:
        why = "PostgreSQL is not installed (Debian: apt-get install postgresql)"
        pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)
    user = _user()
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        folder = Path(name)
        (folder / "password").write_text(PASSWORD)
        if user:
            os.chown(folder, user["user"], user["group"])
            os.chown(folder / "password", user["user"], user["group"])
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]

        def run(program: str, *arguments: str) -> None:
            result = subprocess.run(
                [programs / program, "-D", folder / "data", *arguments],
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                timeout=120,
                check=False,
                **user,
            )
            assert result.returncode == 0, result.stderr

        run("initdb", "-U", "shop", "--auth=scram-sha-256", f"--pwfile={folder}/password", "--no-sync")
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        run("pg_ctl", "-w", "-o", options, "-l", f"{folder}/log", "start")
        try:
            yield f"postgresql://shop:{PASSWORD}@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-m", "immediate", "stop")
