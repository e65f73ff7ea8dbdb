"""Names used before."""

import hostile_text


def __getattr__(name):
    return getattr(hostile_text, name)
