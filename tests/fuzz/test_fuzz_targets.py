"""Whatever comes in: it is read, or refused in words. `fuzz.py` looks for longer."""

from random import Random

import pytest
from each_row import each_row
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutation import mutated
from property_examples import examples
from targets import TARGETS


def anything(samples: list[bytes]) -> st.SearchStrategy[bytes]:
    """Sound samples with something wrong in them, most of all; else any text, any bytes."""
    spoilt = st.integers(0, 2**32).map(lambda seed: mutated(samples, Random(seed)))
    return spoilt | spoilt | spoilt | st.text(max_size=200).map(str.encode) | st.binary(max_size=200)


@each_row("name", TARGETS)
def test_unchanged_samples_are_read(name: str) -> None:
    for sample in TARGETS[name].samples:
        TARGETS[name].run(sample)


@pytest.mark.hypothesis  # for `make simulate`: the property is made for each target
@pytest.mark.parametrize("name", TARGETS)
def test_mutated_input_is_read_or_rejected_with_message(name: str) -> None:
    """Nor is it judged without evidence."""

    @settings(max_examples=examples(80), suppress_health_check=list(HealthCheck))
    @given(anything(TARGETS[name].samples))
    def read(data: bytes) -> None:
        TARGETS[name].run(data)

    read()
