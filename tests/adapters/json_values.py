"""Strategies of hypothesis for values of JSON."""

from hypothesis import strategies as st

ANY = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
KEYS = st.text(max_size=5)


def json_values(scalars=ANY, keys=KEYS, most: int = 8) -> st.SearchStrategy:
    """Scalars, lists of them and objects with these keys, with at most as many scalars as `most`."""
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=most,
    )
