"""Prints the table of `bench/README.md`, as measured here and now."""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from tabulate import tabulate

from bench.measures import MEASURES, SMOKE, Row, Size
from bench.processes import Field, server


def main() -> None:
    """Measures what was asked for, and prints it."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=f"of {', '.join(MEASURES)}; else all")
    parser.add_argument("--provider", choices=("openai", "anthropic"), default="openai")
    parser.add_argument("--repeats", type=int, default=Size.repeats, help="rounds; the median counts")
    parser.add_argument("--smoke", action="store_true", help="play next to nothing: does it all still work?")
    options = parser.parse_args()
    if unknown := set(options.measures) - set(MEASURES):
        parser.error(f"no such measure: {', '.join(sorted(unknown))}; there are {', '.join(MEASURES)}")
    size = replace(Size(), repeats=options.repeats, long_repeats=max(1, options.repeats // 2))
    size = SMOKE if options.smoke else size
    rows: list[Row] = []
    failed: list[str] = []
    with server() as served, tempfile.TemporaryDirectory() as folder:
        field = Field(served, Path(folder), options.provider)
        for name in options.measures or MEASURES:
            print(f"{datetime.now():%H:%M:%S} measuring {name} …", file=sys.stderr, flush=True)  # noqa: DTZ005
            try:
                rows += MEASURES[name](field, size)
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                print(error, file=sys.stderr, flush=True)
                failed.append(name)
    print(_table(rows))
    rounds = f"medians of {size.repeats} rounds, of {size.long_repeats} where faults or memory are measured"
    machine = f"Python {platform.python_version()}, {os.cpu_count()} processors, {platform.system()}"
    print(f"\n{options.provider}; {rounds}; {machine}")
    if failed:
        sys.exit(f"not measured, since it failed: {', '.join(failed)}")


def _table(rows: list[Row]) -> str:
    cells = [
        (
            row.measure,
            row.floor,
            row.ours,
            "not measured" if row.figure is None else f"{_number(row.figure)} {row.unit}".strip(),
            "" if row.goal is None else f"{row.goal:g} {row.unit}".strip(),
            {True: "yes", False: "**no**", None: ""}[row.met],
        )
        for row in rows
    ]
    heads = ("measure", "floor", "ci-evals", "figure", "goal", "met")
    return tabulate(cells, heads, tablefmt="github", disable_numparse=True)


def _number(figure: float) -> str:
    return f"{figure:.0f}" if figure >= 100 else f"{figure:.2f}"


if __name__ == "__main__":
    main()
