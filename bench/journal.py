"""What the journal takes: the finished trials of a run are kept again, one by one."""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from ci_evals.adapters.journal.journal import Journal


async def keep_again(folder: Path) -> float:
    """Processor seconds of keeping all trials of the journal in `folder`, each safe before the next.

    Raises:
        ValueError: there is none.
    """
    past = Journal(folder, resume=True, say=print).past
    if past is None or not past.done:
        raise ValueError(f"{folder} holds no journal with trials")
    with tempfile.TemporaryDirectory() as elsewhere:
        journal = Journal(Path(elsewhere), resume=False, say=print)
        journal.open(past.header)
        started = time.process_time()
        for trial, result in past.done.items():
            await journal.keep(trial, result, past.elapsed)
        seconds = time.process_time() - started
        journal.close()
    return seconds


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the output folder of a run")
    print(asyncio.run(keep_again(parser.parse_args().folder)))
