"""Text in the columns of a terminal: tables whose names give way, and lines that wrap.

Without a width nothing is cut. Colors take no columns.
"""

import re
from collections.abc import Collection, Iterator, Sequence

_PAINT = re.compile("\x1b\\[[0-9;]*m")
_GAP = 2
_INDENT = 2
_LEAST = 12
"""Columns that a name is left at least; before it gets less, the last columns of numbers go."""


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int | None = None,
    *,
    names: Collection[int] = (0,),
    right: Collection[int] = (),
) -> str:
    """Return an indented table.

    Args:
        headers: The heads of the columns.
        rows: The cells.
        width: Of the terminal, if there is one.
        names: The columns that are cut where there is no room.
        right: The columns of numbers that are aligned to the right.
    """
    widths = [max(map(_len, column)) for column in zip(headers, *rows, strict=True)]
    if width:
        while len(widths) > 1 and _room(widths, width, names) < 0 and len(widths) - 1 not in names:
            widths.pop()
        for _ in range(-_room(widths, width, names, least=0)):
            longest = max((index for index in names if index < len(widths)), key=widths.__getitem__)
            widths[longest] = max(widths[longest] - 1, 1)
    rule = ["-" * wide for wide in widths]
    lines = (
        [
            _fitted(cell, wide, index in right)
            for index, (cell, wide) in enumerate(zip(row, widths, strict=False))
        ]
        for row in (headers, rule, *rows)
    )
    return "\n".join((" " * _INDENT + (" " * _GAP).join(line)).rstrip() for line in lines)


def _room(widths: Sequence[int], width: int, names: Collection[int], least: int | None = None) -> int:
    """The columns that are left, negative if they are missing, when names have no more than `least`."""
    taken = [
        min(wide, _LEAST) if index in names and least is None else wide for index, wide in enumerate(widths)
    ]
    return width - _INDENT - sum(taken) - _GAP * (len(widths) - 1)


def _fitted(cell: str, width: int, right: bool) -> str:
    cell = shortened(cell, width)
    missing = " " * (width - _len(cell))
    return missing + cell if right else cell + missing


def shortened(text: str, width: int) -> str:
    """Return the text, with an ellipsis at its end if it has more columns."""
    if _len(text) <= width:
        return text
    from rich.cells import set_cell_size  # noqa: PLC0415  # as in `_len`

    return set_cell_size(text, width - 1).rstrip() + "…"


def wrapped(text: str, width: int | None) -> str:
    """Return the text with lines of at most so many columns, the further ones of each indented."""
    if not width:
        return text
    return "\n".join(part for line in text.split("\n") for part in _parts(line, width))


def _parts(line: str, width: int) -> Iterator[str]:
    if _len(line) <= width:
        yield line
        return
    from rich.cells import chop_cells  # noqa: PLC0415  # as in `_len`

    indent = " " * min(len(line) - len(line.lstrip(" ")) + _INDENT, width // 2)
    current = line[: len(line) - len(line.lstrip(" "))]
    empty = True
    for word in line.split():
        for piece in [word] if _len(word) <= width - len(indent) else chop_cells(word, width - len(indent)):
            if not empty and _len(current) + 1 + _len(piece) > width:
                yield current
                current, empty = indent, True
            current += piece if empty else f" {piece}"
            empty = False
    yield current


def _len(text: str) -> int:
    from rich.cells import cell_len  # noqa: PLC0415  # a run begins before it prints anything

    return cell_len(_PAINT.sub("", text))
