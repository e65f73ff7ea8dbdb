"""`mcp_server.one_command` in a fork, whose parent is the fork server."""

import os
import pickle
import sys

from ci_evals.extensions.mcp_server.one_command import play

if __name__ == "__main__":
    play(os.getppid(), *pickle.load(sys.stdin.buffer))
