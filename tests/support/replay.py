"""Names used before."""

import workflow_replay


def __getattr__(name):
    return getattr(workflow_replay, name)
