"""Names used before."""

import labeled_runs


def __getattr__(name):
    return getattr(labeled_runs, name)
