"""Names used before."""

import study_judges


def __getattr__(name):
    return getattr(study_judges, name)
