"""Stand-ins for personal data: the same for the same data throughout a file, and of its form.

E-mail addresses, phone numbers, payment cards (by their check digit) and IBANs (likewise) are found by their
form; names, and numbers of any form, where `userInfo` has them. Nothing else is found: no addresses, no dates
of birth, no names that only the words hold.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from pydantic import JsonValue

from ci_evals.domain.transcript import ToolCall, Turn
from ci_evals.extension_support.drafting.conversation import RecordedConversation, recorded_turn


class DataKind(StrEnum):
    """What personal data is."""

    EMAIL = "e-mail"
    IBAN = "IBAN"
    CARD = "card"
    PHONE = "phone"
    NAME = "name"


class StandIn(NamedTuple):
    """A stand-in, for review."""

    kind: DataKind
    original: str
    """Its first and last character."""
    text: str
    times: int


_EMAIL = r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"
_IBAN = r"(?<!\w)[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]{4}){2,7}(?: ?[A-Za-z0-9]{1,3})?(?!\w)"
_CARD = r"(?<![\d-])\d(?:[ -]?\d){12,18}(?![\d-])"
_PHONE = (
    r"(?<![\w+])(?:\+|00)\d{1,3}(?:[ ()./-]{0,2}\d){6,12}(?!\d)"
    r"|(?<!\w)\(\d{3}\) ?\d{3}[ .-]\d{4}(?!\d)"
    r"|(?<![\w-])\d{3}[ .-]\d{3}[ .-]\d{4}(?![\w-])"
    r"|(?<![\w-])0\d{2,4}[ /-]\d{4,9}(?![\w-])|(?<![\w-])0\d{9,10}(?![\w-])"
)
_BY_FORM = "|".join((
    rf"(?P<EMAIL>{_EMAIL})", rf"(?P<IBAN>{_IBAN})", rf"(?P<CARD>{_CARD})", rf"(?P<PHONE>{_PHONE})",
))  # fmt: skip
_ANY_PHONE = re.compile(_PHONE)
_WHOSE = "first|last|full|given|family|sur|middle|customer|user|contact|account|card"
_OF_NAMES = re.compile(rf"(?:(?:{_WHOSE})?[ _-]?(?:holder)?[ _-]?)?name", re.IGNORECASE)
_OF_PHONES = re.compile(r".*(?:phone|mobile|cell|telefon|tel)(?:[ _-]?(?:number|no|nr))?", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{2,}")
_GIVEN_NAMES = ("Alex", "Robin", "Kim", "Sam", "Jamie", "Chris", "Casey", "Jordan", "Noel", "Toni")
_SHORTEST_IBAN = 15
_MOST_NAMES = 5_000
"""Limit of the different words of names in a file."""


class StandIns:
    """Puts stand-ins in the place of personal data."""

    def __init__(self, conversations: Iterable[RecordedConversation]) -> None:
        """Learn names, and numbers of phones, from the `userInfo` of all conversations of a file."""
        self._known: dict[str, DataKind] = {}
        for conversation in conversations:
            self._learn(conversation.user_info)
        self._pattern = self._compiled()
        self._texts: dict[tuple[DataKind, str], str] = {}
        """Stand-ins by kind and by what is the same in each way of writing the data."""
        self._times: Counter[tuple[DataKind, str]] = Counter()
        self._shown: dict[tuple[DataKind, str], str] = {}

    def _learn(self, data: Mapping[str, JsonValue]) -> None:
        for key, value in data.items():
            if isinstance(value, dict):
                self._learn(value)
            elif not isinstance(value, str):
                continue
            elif _OF_NAMES.fullmatch(key) and len(self._known) < _MOST_NAMES:
                self._known |= dict.fromkeys(map(str.casefold, _WORD.findall(value)), DataKind.NAME)
            elif _OF_PHONES.fullmatch(key) and value.strip():
                self._known[value.strip().casefold()] = DataKind.PHONE

    def _compiled(self) -> re.Pattern[str]:
        known = sorted(self._known, key=len, reverse=True)
        listed = "|".join(map(re.escape, known))
        by_name = rf"|(?<!\w)(?P<known>{listed})(?!\w)" if known else ""
        return re.compile(_BY_FORM + by_name, re.IGNORECASE)

    def review(self) -> list[StandIn]:
        """Return all stand-ins in the order in which they were needed."""
        return [
            StandIn(kind, _masked(first), _FORMS[kind](first, text), self._times[kind, same])
            for (kind, same), text in self._texts.items()
            for first in [self._shown[kind, same]]
        ]

    def conversation(self, conversation: RecordedConversation) -> RecordedConversation:
        """Return a conversation without personal data."""
        return replace(
            conversation,
            name=self.text(conversation.name),
            title=self.text(conversation.title),
            turns=tuple(map(self._turn, conversation.turns)),
            user_info={key: self.value(item) for key, item in conversation.user_info.items()},
            notes=tuple(map(self.text, conversation.notes)),
        )

    def text(self, text: str) -> str:
        """Return a text without personal data."""
        return self._pattern.sub(self._replaced, text)

    def value(self, value: JsonValue) -> JsonValue:
        """Return a value without personal data; a number is a card by its check digit."""
        match value:
            case str():
                return self.text(value)
            case bool():
                return value
            case int() if 13 <= len(str(abs(value))) <= 19:
                return int(self.text(str(value)))
            case dict():
                return {self.text(key): self.value(item) for key, item in value.items()}
            case list():
                return [self.value(item) for item in value]
        return value

    def _turn(self, turn: Turn) -> Turn:
        calls = None if turn.tool_calls is None else tuple(map(self._call, turn.tool_calls))
        return recorded_turn(
            turn.index,
            self.text(turn.user),
            self.text(turn.agent),
            calls,
            turn.latency_seconds,
            partial=turn.tool_calls_partial,
        )

    def _call(self, call: ToolCall) -> ToolCall:
        arguments = call.arguments
        if arguments is not None:
            arguments = {key: self.value(item) for key, item in arguments.items()}
        return ToolCall(
            id=call.id,
            name=call.name,
            arguments=arguments,
            result=self.value(call.result),
            status=call.status,
            not_captured=call.not_captured,
        )

    def _replaced(self, match: re.Match[str]) -> str:
        text, group = match[0], str(match.lastgroup)
        if group == "known":
            return self._stand_in(self._known.get(text.casefold(), DataKind.NAME), text)
        kind = DataKind[group]
        if kind is DataKind.IBAN:
            end = _end_of_iban(text)
            return self._stand_in(kind, text[:end]) + self.text(text[end:]) if end else text
        if kind is DataKind.CARD and not _is_card(text):
            return self._stand_in(DataKind.PHONE, text) if _ANY_PHONE.fullmatch(text) else text
        return self._stand_in(kind, text)

    def _stand_in(self, kind: DataKind, text: str) -> str:
        identity = _identity(kind, text)
        if identity not in self._texts:
            number = 1 + sum(known is kind for known, _ in self._texts)
            self._texts[identity] = self._made(kind, text, number)
            self._shown[identity] = text
        self._times[identity] += 1
        return _FORMS[kind](text, self._texts[identity])

    def _made(self, kind: DataKind, text: str, number: int) -> str:
        """Return the stand-in with this number among those of its kind."""
        match kind:
            case DataKind.EMAIL:
                return f"user{number}@example.com"
            case DataKind.NAME:
                free = [name for name in _GIVEN_NAMES if name.casefold() not in self._known]
                names = free or ["Name"]
                round_, index = divmod(number - 1, len(names))
                return names[index] + (str(round_ + 1) if round_ else "")
            case DataKind.CARD:
                size = len(_digits(text))
                body = "4" + str(number).zfill(size - 2)[-(size - 2) :]
                return body + _check_digit(body)
            case DataKind.IBAN:
                return _iban(_letters_and_digits(text), number)
            case DataKind.PHONE:
                return _phone(text, number)


def _identity(kind: DataKind, text: str) -> tuple[DataKind, str]:
    """Return the same for the same data, however it is written."""
    match kind:
        case DataKind.CARD | DataKind.PHONE:
            return kind, _digits(text).removeprefix("00")
        case DataKind.IBAN:
            return kind, _letters_and_digits(text)
    return kind, text.casefold()


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def _letters_and_digits(text: str) -> str:
    return re.sub(r"[^A-Z0-9]", "", text.upper())


def _is_card(text: str) -> bool:
    digits = _digits(text)
    return digits.strip("0") != "" and _check_digit(digits[:-1]) == digits[-1]


def _check_digit(body: str) -> str:
    """Return the last digit of a card's number (ISO/IEC 7812, Luhn)."""
    total = 0
    for place, digit in enumerate(map(int, reversed(body))):
        doubled = 2 * digit if place % 2 == 0 else digit
        total += doubled - 9 if doubled > 9 else doubled
    return str(-total % 10)


def _end_of_iban(text: str) -> int:
    """Return where the IBAN at the start of a text ends: words may follow it; 0 if there is none."""
    end = len(text)
    while end > 0:
        plain = _letters_and_digits(text[:end])
        if len(plain) >= _SHORTEST_IBAN and _remainder(plain[4:] + plain[:4]) == 1:
            return end
        end = text.rfind(" ", 0, end)
    return 0


def _remainder(text: str) -> int:
    """Return the remainder by 97 of an IBAN whose letters are numbers (ISO 13616)."""
    return int("".join(str(int(char, 36)) for char in text)) % 97


def _iban(plain: str, number: int) -> str:
    country, account = plain[:2], re.sub(r"[A-Z]", "X", re.sub(r"\d", "0", plain[4:]))
    counter = str(number)
    account = account[: -len(counter)] + counter
    check = 98 - _remainder(f"{account}{country}00")
    return f"{country}{check:02}{account}"


def _phone(text: str, number: int) -> str:
    """Return digits: those of the country or the zero in front stay, and 555 begins the rest."""
    digits = _digits(text).removeprefix("00")
    kept = 1
    if text.startswith(("+", "00")):
        first = re.match(r"(?:\+|00)(\d{1,3})(?!\d)", text)
        kept = len(first[1]) if first else 2
    elif not digits.startswith("0"):
        kept = 0
    size = len(digits) - kept
    filled = str(number).zfill(size)[-size:]
    if size > 3 + len(str(number)):
        filled = "555" + filled[3:]
    return digits[:kept] + filled


def _as_it_is(_text: str, stand_in: str) -> str:
    return stand_in


def _in_its_form(text: str, stand_in: str) -> str:
    """Return the digits and letters of a stand-in with the separators of the text."""
    signs = iter(stand_in[-len(re.sub(r"[^A-Za-z0-9]", "", text)) :])
    return "".join(next(signs, "") if char.isalnum() else char for char in text)


def _as_phone(text: str, stand_in: str) -> str:
    prefix = "00" if text.startswith("00") else ""
    return _in_its_form(text, prefix + stand_in)


def _with_its_capitals(text: str, stand_in: str) -> str:
    if text.islower():
        return stand_in.lower()
    return stand_in.upper() if text.isupper() else stand_in


_FORMS: Mapping[DataKind, Callable[[str, str], str]] = {
    DataKind.EMAIL: _as_it_is,
    DataKind.IBAN: _in_its_form,
    DataKind.CARD: _in_its_form,
    DataKind.PHONE: _as_phone,
    DataKind.NAME: _with_its_capitals,
}


def _masked(text: str) -> str:
    return f"{text[0]}…{text[-1]}" if len(text) > 2 else "…"


def listed_for_review(stand_ins: Iterable[StandIn]) -> list[str]:
    """Return a line for each stand-in."""
    lines: list[str] = []
    for one in stand_ins:
        times = "once" if one.times == 1 else f"{one.times} times"
        lines.append(f"{one.kind} {one.original} is now {one.text} ({times})")
    return lines
