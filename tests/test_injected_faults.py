"""Whatever fails in a run: no false pass, nothing lost, nothing twice, no partial file, no key."""

import shutil
from collections.abc import Iterator

import pytest
from injected_faults import KINDS, Injected, library, prepared_runs, problems, resume_problems

pytestmark = pytest.mark.slow

LASTING = ("open", "write", "connect")
"""Faults that stay: no descriptors, a full disk, no network."""
SIZES = [1, pytest.param(None, marks=pytest.mark.endurance)]
"""How many faults of each kind, and by `make endurance` one at each call of a run."""
MOST_OPENS = 140
"""Most files are opened for imports, one like the other."""


@pytest.fixture(scope="module")
def play(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    if not library(folder):
        pytest.skip("needs Linux and a C compiler")
    with prepared_runs(folder) as play:
        yield play


def _spread(calls: int, most: int | None) -> list[int]:
    """Numbers from 1 to `calls`, at most so many of them, evenly spread."""
    if most is None or calls <= most:
        return list(range(1, calls + 1))
    return sorted({1 + round((place + 0.5) * calls / most - 0.5) for place in range(most)})


def _faults(counts: dict[str, int], most: int | None) -> Iterator[Injected]:
    """All faults; where few are wanted, the network is missing for good alone."""
    for kind in KINDS:
        if most is None or kind != "connect":
            for at in _spread(counts[kind], most or (MOST_OPENS if kind == "open" else None)):
                yield Injected(kind, at)
        if kind in LASTING:
            for at in _spread(counts[kind], most or 12):
                yield Injected(kind, at, lasts=True)


@pytest.mark.parametrize("most", SIZES)
def test_failing_system_calls_cause_no_false_pass_and_lose_no_trial(play, most):
    """Calls of each kind fail once, or for good. Resumed without faults, the run ends as it should."""
    whole = play()
    assert (whole.code, problems(whole), len(whole.journal())) == (1, [], 6)
    assert all(whole.counts[kind] for kind in KINDS), whole.counts
    wrong, met = [], 0
    for fault in _faults(whole.counts, most):
        faulty = play(fault)
        met += faulty.failed > 0
        result = [*problems(faulty), *resume_problems(play, faulty)]
        wrong += [f"{fault} at {faulty.about!r}, exit code {faulty.code}: {one}" for one in result]
        shutil.rmtree(faulty.folder, ignore_errors=True)
    assert wrong == []
    assert met >= (300 if most is None else 9)
