"""Names used before."""

import simulated_labels


def __getattr__(name):
    return getattr(simulated_labels, name)
