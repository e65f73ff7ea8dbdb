"""The simulated user of the provider `offline`: no model, and the same words to the same agent every time."""

import re
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from ci_evals.conversation.simulated_user import STOP_MARKER
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Turn

OPENING = "Hello, I need some help, please."
AGREEMENT = "Yes, please."
UNSURE = "I am not sure, sorry."
THANKS = f"Thank you, that is all. {STOP_MARKER}"
GIVING_UP = f"All right, I will leave it at that. {STOP_MARKER}"

_SENTENCE = re.compile(r"[^.!?]*(?:[.!?](?![\s\"')\]]|$)[^.!?]*)*[.!?]*")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CLOSING = re.compile(
    r"\b(?:any|some)thing else\b|\bhave a (?:\w+ )?(?:day|evening|weekend)\b|\bgoodbye\b|\btake care\b",
    re.IGNORECASE,
)
_PROPOSAL = re.compile(
    r"\b(?:shall|should|may|can) (?:i|we) (?!ask|get|have|know)"
    r"|\b(?:would you like|do you want|want) (?:me|us) to\b|\bgo ahead\b"
    r"|\bis (?:that|this|it|everything) (?:right|correct|ok|okay|fine|all right)\b",
    re.IGNORECASE,
)
_YES_OR_NO = re.compile(
    r"(?:^|[,;:] *)(?:so |and |then |or )?(?:do|does|did|is|are|was|were|have|has|will|would) (?!.*\bor\b)",
    re.IGNORECASE,
)


class ScriptedUser:
    """A cooperative customer who knows `userInfo` and nothing else. Guidelines are not read."""

    async def next_message(self, test: Test, turns: Sequence[Turn]) -> str:
        """Return the next message; it contains `STOP_MARKER` when there is nothing more to say.

        The user agrees to a proposal, answers a question for something in `userInfo` with its value, and
        pleads ignorance once for any other. A repeated question or a reply without one ends the
        conversation.
        """
        if not turns:
            return OPENING
        *earlier, last = turns
        questions = tuple(_questions(last.agent))
        if not questions or _CLOSING.search(last.agent):
            return THANKS
        question = questions[-1]
        if any(question in _questions(turn.agent) for turn in earlier):
            return GIVING_UP
        if answer := _answer(question, test.user_info):
            return answer
        return GIVING_UP if any(turn.user == UNSURE for turn in turns) else UNSURE


def _answer(question: str, user_info: Mapping[str, JsonValue]) -> str | None:
    # Proposals come first: "Shall I cancel order number 5?" is no question for the order number.
    if _PROPOSAL.search(question):
        return AGREEMENT
    if fact := _fact_asked_for(question, user_info):
        return fact
    return AGREEMENT if _YES_OR_NO.search(question) else None


def _questions(text: str) -> Iterator[str]:
    for sentence in _SENTENCE.findall(" ".join(text.split())):
        if sentence.endswith("?"):
            yield sentence.strip()


def _fact_asked_for(question: str, user_info: Mapping[str, JsonValue]) -> str | None:
    """Return a sentence with the value whose whole name is in the question; the longest such name wins."""
    words = set(_words(question))
    known = [(name, value) for name, value in _facts(user_info) if set(name) <= words]
    if not known:
        return None
    name, value = max(known, key=lambda fact: len(fact[0]))  # the first of equals
    return f"My {' '.join(name)} is {value}."


def _facts(user_info: Mapping[str, JsonValue]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each named value that is short enough to say: at the top, and one level below."""
    for key, value in user_info.items():
        if isinstance(value, dict):
            for inner, item in value.items():
                if text := _spoken(item):
                    yield _words(f"{key} {inner}"), text
                    yield _words(inner), text
        elif text := _spoken(value):
            yield _words(key), text


def _spoken(value: JsonValue) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case str() | int() | float():
            return str(value).strip()
        case list():
            return ", ".join(item for item in map(_spoken, value) if item)
        case _:
            return ""


def _words(text: str) -> tuple[str, ...]:
    """`orderNumber`, `order_number` and `Order number` are the same words."""
    return tuple(word.lower() for word in _WORD.findall(text))
