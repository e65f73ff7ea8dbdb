"""`python -m ci_evals`."""

import os
import sys

if sys.path[0] == os.getcwd():  # noqa: PTH109  # as Python wrote it
    del sys.path[
        0
    ]  # files in the folder that is tested are no modules of ours; agents find theirs there all the same

from ci_evals.cli.app import main  # not before

main()
