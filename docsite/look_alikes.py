"""Write the table of look-alikes from Unicode's confusables.txt: `make lookalikes FROM=FILE`.

A sign goes with an ASCII letter or digit if Unicode calls the two confusable, if it is a digit of another
script, or if it is such a letter as a small capital, a negative circled or squared one or a regional
indicator. What NFKC makes a letter anyway is left out.
"""

import sys
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from string import ascii_letters, digits

TABLE = Path(__file__).parents[1] / "ci_evals" / "support" / "typography" / "look_alikes.txt"
_SMALL_CAPITAL = "LATIN LETTER SMALL CAPITAL "
_DRAWN = {
    "NEGATIVE CIRCLED LATIN CAPITAL LETTER ": str.upper,
    "NEGATIVE SQUARED LATIN CAPITAL LETTER ": str.upper,
    "CROSSED NEGATIVE SQUARED LATIN CAPITAL LETTER ": str.upper,
    "REGIONAL INDICATOR SYMBOL LETTER ": str.upper,
    _SMALL_CAPITAL: str.lower,
}
_OURS = {"\u0138": "k", "\u04cf": "l"}
"""KRA is a small capital K by another name; Unicode has the small PALOCHKA as an i, it looks like an l."""


def read_prototypes(lines: Iterable[str]) -> dict[str, str]:
    """Return what each sign of confusables.txt is confusable with."""
    prototypes = {}
    for line in lines:
        fields = line.partition("#")[0].split(";")
        if len(fields) > 1:
            sign, prototype = ("".join(chr(int(code, 16)) for code in field.split()) for field in fields[:2])
            prototypes[sign] = prototype
    return prototypes


def letter_of(sign: str, prototypes: Mapping[str, str]) -> str | None:
    """Return the ASCII letter or digit that a sign looks like."""
    if sign.isdecimal():
        return str(unicodedata.decimal(sign))
    if drawn := _drawn(sign):
        return drawn
    prototype = prototypes.get(sign, sign)
    if drawn := _drawn(prototype):
        return drawn
    alike = [letter for letter in ascii_letters + digits if prototypes.get(letter, letter) == prototype]
    if not alike:
        return None
    fits = str.isupper if unicodedata.category(sign) in {"Lu", "Lt"} else str.islower
    return next(filter(fits, alike), alike[0])


def _drawn(text: str) -> str | None:
    if text in _OURS:
        return _OURS[text]
    name = unicodedata.name(text, "") if len(text) == 1 else ""
    for start, case in _DRAWN.items():
        letter = name.removeprefix(start)
        if letter != name and len(letter) == 1:
            return case(letter)
    return None


def table(prototypes: Mapping[str, str]) -> str:
    """Return the lines of the table: an ASCII letter or digit, a tab, and all signs that look like it."""
    signs = defaultdict(list)
    for sign in map(chr, range(0x80, sys.maxunicode + 1)):
        if unicodedata.normalize("NFKC", sign) == sign and (letter := letter_of(sign, prototypes)):
            signs[letter].append(sign)
    return "".join(f"{letter}\t{''.join(signs[letter])}\n" for letter in sorted(signs))


def main() -> None:
    """Replace the lines of the table, and keep its head: source and license."""
    lines = Path(sys.argv[1]).read_text(encoding="utf-8-sig").splitlines()
    head = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    TABLE.write_text("\n".join(head) + "\n" + table(read_prototypes(lines)), encoding="utf-8")


if __name__ == "__main__":
    main()
