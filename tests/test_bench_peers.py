"""The bench's scripts for other tools, without these tools: they are installed by who measures them."""

import os
import sys

import pytest
from doc_pages import ROOT
from programs import run_captured

from bench.peers.beside import Peer, play_peer
from bench.processes import Field, server


@pytest.mark.parametrize("peer", ["inspect_ai", "promptfoo"])
def test_peer_script_help_says_what_is_measured(peer):
    command = [sys.executable, "-m", f"bench.peers.{peer}", "--help"]
    completed = run_captured(command, cwd=ROOT)
    assert completed.returncode == 0, completed.stderr
    assert "Measured are" in completed.stdout
    assert "Not measured are" in completed.stdout


def test_benchmark_rejects_peer_that_skips_calls(tmp_path):
    """It would seem fast."""
    asks_once = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1] + '/external/tasks')"
    peer = Peer(
        "hasty",
        install=lambda folder: "1",
        command=lambda play: ([sys.executable, "-c", asks_once, play.url], os.environ | {"no_proxy": "*"}),
    )
    with server() as served, pytest.raises(RuntimeError, match="hasty made 1 calls for 2 conversations"):
        play_peer(peer, Field(served, tmp_path), tmp_path, conversations=2, parallel=1)
