"""Long hunts: `python tests/fuzz/fuzz.py TARGET --seconds 600`; without a target, each for as long.

What a target does not foresee, and what takes it longer than a moment, is written to a file that `--input`
plays again.
"""

import argparse
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from mutation import mutated
from targets import TARGETS

MOST_SECONDS = 5.0
"""Of work that one input may take. A sample takes some milliseconds."""
MOST_BYTES = 3 << 30
"""Of memory, for the whole process."""


class SlowError(Exception):
    """An input took too long."""


def _too_slow(number: int, frame: object) -> None:
    raise SlowError(f"longer than {MOST_SECONDS:g} s")


def hunt(name: str, seconds: float, seed: int, folder: Path) -> int:
    """Spoils samples for so long; the number of failures that differ in where they came from."""
    target = TARGETS[name]
    found: Counter[str] = Counter()
    runs, slowest, began = 0, 0.0, time.monotonic()
    while time.monotonic() - began < seconds:
        data = mutated(target.samples, Random(seed + runs))
        runs += 1
        started = time.process_time()
        failure = play(name, data)
        slowest = max(slowest, time.process_time() - started)
        if failure is None:
            continue
        place = _place(failure)
        found[place] += 1
        if found[place] == 1:
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / f"{name}-{seed + runs - 1}.bin"
            file.write_bytes(data)
            traceback.print_exception(failure, limit=-8)
            print(f"{name}: seed {seed + runs - 1}, written to {file}", flush=True)
    print(f"{name}: {runs} inputs, {len(found)} failures, slowest {slowest:.2f} s", flush=True)
    return len(found)


def play(name: str, data: bytes) -> BaseException | None:
    """What was not foreseen of one input."""
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        TARGETS[name].run(data)
    except KeyboardInterrupt:
        raise
    except BaseException as failure:  # noqa: BLE001  # whatever it is
        return failure
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def _place(failure: BaseException) -> str:
    last = traceback.extract_tb(failure.__traceback__)[-1]
    return f"{type(failure).__name__} {last.filename}:{last.lineno}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", nargs="*", choices=[[], *TARGETS])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=Path("fuzz-failures"))
    parser.add_argument("--input", type=Path, help="plays this one input")
    given = parser.parse_args()
    warnings.simplefilter("error")
    signal.signal(signal.SIGPROF, _too_slow)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    if given.input:
        TARGETS[given.target[0]].run(given.input.read_bytes())
        return 0
    return (
        1
        if sum([hunt(name, given.seconds, given.seed, given.folder) for name in given.target or TARGETS])
        else 0
    )


if __name__ == "__main__":
    sys.exit(main())
