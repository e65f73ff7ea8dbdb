"""Names used before."""

import seeded_judges


def __getattr__(name):
    return getattr(seeded_judges, name)
