"""Checks of a simulated user: what can be told without a model of whether it kept to its role.

A violation leaves the conversation out, so every rule looks for what nearly no good user writes. What is
doubtful is let pass: a person may be long-winded, insist, quote the agent, or answer twice what it is asked
twice. docs/judge.md tells each rule, and why.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from pydantic import JsonValue

from ci_evals.conversation import phrases
from ci_evals.domain.evaluation import Criterion
from ci_evals.domain.results.simulated_user import Violation
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import EndState, Transcript, Turn, UserSource

ENDED = frozenset({EndState.COMPLETED, EndState.STOPPED, EndState.ESCALATED, EndState.AGENT_ERROR})
"""How a conversation ended that is looked at. Others broke off, and count for nothing anyway."""

MOST_CHARACTERS, MOST_WORDS = 1_500, 250
"""Of a message. The prompt asks for one to three sentences; ten times as much is no line of a chat."""

MOST_REMARK_CHARACTERS, MOST_REMARK_WORDS = 600, 100
"""Of the words beside the stop marker: a goodbye, or why the user leaves."""

_FEWEST_REPEATED = 4
_RUN = 6
"""Words of a criterion in a row: fewer are met by chance."""
_LONG_FACT = 40
"""Characters from which on a text in `userInfo` may be meant to be pasted."""
_ECHO = 8
"""Words of a reply that the user says as its own."""

_WORD = re.compile(r"\w+(?:'\w+)*")
_WITHOUT_SPACES = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_QUOTED_PART = re.compile(r"\"[^\"]*\"|“[^”]*”|‘[^’]*’|«[^»]*»|(?<!\w)'[^']*'(?!\w)|`[^`]*`")
_CODE = re.compile(
    r"\S_\S|^[a-z]{3,}[A-Z]|^[A-Z][a-z]{4,}[A-Z][a-z]{4,}|^[^\s-]+(?:-[^\s-]{4,})+-[^\s-]+$|\w[.:/]\w+[.:/]\w"
)
"""`CANCEL_PLAN`, `cancelPlan`, `CancelPlan`, `cancel-before-renewal`; not `PayPal`, `out-of-stock`."""
_SHORTEST_CODE = 4


def is_looked_at(transcript: Transcript) -> bool:
    """Whether the conversation ended as one that counts, with a line of a simulated user in it."""
    wrote = any(turn.user_source is UserSource.AUTO for turn in transcript.turns)
    return transcript.status in ENDED and (wrote or transcript.status is EndState.STOPPED)


def violations(test: Test, transcript: Transcript) -> tuple[Violation, ...]:
    """Where a model that wrote the `auto` turns broke its role, turn by turn.

    Of each rule there is at most one violation in a turn. `text` holds what was written, secrets and all.
    """
    case = _Case(test, transcript.turns)
    found = [*_of_messages(case), *_of_remark(test, transcript), *_stops_too_early(case, transcript)]
    by_place = {(violation.rule, violation.turn): violation for violation in reversed(found)}
    return tuple(sorted(by_place.values(), key=lambda violation: violation.turn))


@dataclass(frozen=True)
class _Case:
    """A conversation, and what its user was told."""

    test: Test
    turns: Sequence[Turn]

    @cached_property
    def by_user(self) -> Sequence[str]:
        """What the user said in each turn, word by word."""
        return [spoken(turn.user) for turn in self.turns]

    @cached_property
    def by_agent(self) -> Sequence[str]:
        """The agent's replies likewise."""
        return [spoken(turn.agent) for turn in self.turns]

    @cached_property
    def own_words(self) -> str:
        """What the user knows before anything is said, word by word."""
        lines = (turn.user for turn in self.test.turns if not turn.auto)
        return spoken(" | ".join([self.test.guidelines, *_texts(self.test.user_info), *lines]))

    def known(self, place: int) -> str:
        """The same with what the agent said before this message."""
        return " ".join([self.own_words, *self.by_agent[:place]])


def _of_remark(test: Test, transcript: Transcript) -> Iterator[Violation]:
    """Violations in the closing remark, which is looked at as a message is, though it was never sent."""
    remark, before = transcript.closing_remark, transcript.turns
    if transcript.status is not EndState.STOPPED or not remark:
        return
    if not _is_short_enough(remark):
        most = f"{MOST_REMARK_CHARACTERS} characters and {MOST_REMARK_WORDS} words"
        index = len(before) + 1
        yield Violation(
            rule="length", turn=index, text=remark, reason=f"the closing remark is longer than {most}"
        )
    last = Turn(index=len(before) + 1, user=remark, user_source=UserSource.AUTO, agent="", latency_seconds=0)
    yield from _of_messages(_Case(test, (*before, last)), since=len(before))


def _is_short_enough(remark: str) -> bool:
    return len(remark) <= MOST_REMARK_CHARACTERS and len(remark.split()) <= MOST_REMARK_WORDS


def _of_messages(case: _Case, since: int = 0) -> Iterator[Violation]:
    leaks = _leaks_of(case.test)
    for place, turn in enumerate(case.turns):
        if place < since or turn.user_source is not UserSource.AUTO:
            continue
        text = turn.user

        def violation(rule: str, words: str, reason: str, turn: Turn = turn) -> Violation:
            return Violation(rule=rule, turn=turn.index, text=words, reason=reason)

        for rule in (_alternation, _as_agent, _meta, _too_long, _repeats):
            yield from rule(case, place, text, violation)
        yield from _gives_away(case, place, text, violation, leaks)


_Make = Callable[[str, str, str], Violation]


def _alternation(_case: _Case, _place: int, text: str, violation: _Make) -> Iterator[Violation]:
    if line := phrases.both_sides(text):
        yield violation("alternation", line, "the message holds both sides of the conversation")


def _as_agent(case: _Case, place: int, text: str, violation: _Make) -> Iterator[Violation]:
    for phrase in phrases.as_agent(text):
        if not _is_in(spoken(phrase.sentence), case.own_words):
            yield violation("as_agent", phrase.text, "the user speaks as the agent")
            return
    said = case.by_user[place]
    if said.count(" ") + 1 < _ECHO or not _is_echo(said, case.turns[:place]):
        return
    # An agent that repeats its user is no fault of the user's.
    if said not in case.by_user[:place] and said not in case.own_words:
        yield violation("as_agent", text, "the user says a reply of the agent's as its own")


def _is_echo(said: str, before: Sequence[Turn]) -> bool:
    """Whether a reply has these words alone. Few have the first ones, and only those are told into words."""
    first = said.split(" ", 4)[:4]
    return any(
        all(word in folded for word in first) and spoken(folded) == said
        for folded in (_folded(turn.agent) for turn in before)
    )


def _meta(case: _Case, place: int, text: str, violation: _Make) -> Iterator[Violation]:
    for phrase in phrases.meta(text):
        told = _is_in(spoken(phrase.sentence), case.own_words)
        if not told and not any(phrase.text in one.agent for one in case.turns[:place]):
            yield violation(
                "meta", phrase.text, "the user speaks of its role, or the message is not one alone"
            )
            return
    gesture = phrases.stage_direction(text)
    if gesture and gesture.verb.casefold() not in case.own_words:
        yield violation("meta", gesture.text, "a stage direction stands in the message")


def _too_long(case: _Case, _place: int, text: str, violation: _Make) -> Iterator[Violation]:
    if _fits(text) or phrases.has("may_be_long", case.test.guidelines):
        return
    for fact in _texts(case.test.user_info):
        if len(fact) >= _LONG_FACT:
            text = text.replace(fact, "")
    if not _fits(text):
        most = f"{MOST_CHARACTERS:,} characters and {MOST_WORDS} words"
        yield violation("length", text, f"the message is longer than {most}, which nobody types in a chat")


def _fits(text: str) -> bool:
    return len(text) <= MOST_CHARACTERS and len(text.split()) <= MOST_WORDS


def _repeats(case: _Case, place: int, text: str, violation: _Make) -> Iterator[Violation]:
    said = case.by_user[place]
    before = [i for i, earlier in enumerate(case.by_user[:place]) if earlier == said]
    if not before or _length(said) < _FEWEST_REPEATED or phrases.is_courtesy(text):
        return
    if phrases.has("may_repeat", case.test.guidelines) or _is_stuck(case.by_agent[: place + 1], before[-1]):
        return
    between = case.turns[before[-1] : place]
    if not any(phrases.has("asks", turn.agent) for turn in between):
        at = case.turns[before[-1]].index
        yield violation("repeats", text, f"said in turn {at} too, and the agent has asked nothing since")
    elif (
        before[0] == 0
        and phrases.has("greeting", text)
        and not phrases.has("may_begin_again", between[-1].agent)
    ):
        yield violation("repeats", text, "the user begins anew in the midst of the conversation")


def _is_stuck(replies: Sequence[str], since: int) -> bool:
    """Whether the agent said the same twice since then: whoever speaks to such a one may do so too."""
    return any(one == other for one, other in pairwise(replies[max(0, since - 1) :]))


def _stops_too_early(case: _Case, transcript: Transcript) -> Iterator[Violation]:
    """A yes, or a value asked for, beside the stop marker: it was never sent, so the agent could not act."""
    remark = transcript.closing_remark
    if transcript.status is not EndState.STOPPED or not remark or not case.turns:
        return
    reply = case.turns[-1].agent
    why = None
    if phrases.wants_confirmation(reply) and phrases.confirms(
        remark, plainly=phrases.ends_with_closing(reply)
    ):
        why = "the agent asked for a yes, and it was never sent"
    elif (asked := phrases.wanted(reply)) and _tells(case, remark, asked):
        why = "the agent asked for this, and it was never sent"
    if why:
        last = case.turns[-1].index
        yield Violation(rule="stop", turn=last + 1, text=remark, reason=f"{why}: the user stopped with it")


def _tells(case: _Case, remark: str, asked: str) -> bool:
    """Whether the remark holds a value of `userInfo` that was asked for by its name, or any new code."""
    found = phrases.values(remark)
    before = " ".join(text for turn in case.turns for text in (turn.user, turn.agent))
    if any(value not in before for value in found):
        return True
    words, told = set(spoken(asked).split()), spoken(remark)
    return any(
        set(spoken(re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name)).split()) <= words
        and len(spoken(str(value))) > 2
        and f" {spoken(str(value))} " in f" {told} "
        for name, value in case.test.user_info.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    )


@dataclass(frozen=True)
class _Leaks:
    """What of a test's evaluations no user can know."""

    runs: frozenset[tuple[str, ...]]
    codes: tuple[str, ...]


def _leaks_of(test: Test) -> _Leaks:
    runs = frozenset[tuple[str, ...]]().union(*(_runs(one.criterion) for one in test.evaluations))
    codes = dict.fromkeys(code for one in test.evaluations for code in _codes(one) if _is_code(code))
    return _Leaks(runs, tuple(codes))


@lru_cache(10_000)
def _runs(criterion: str) -> frozenset[tuple[str, ...]]:
    # What stands in quotation marks is what somebody may say.
    words = _words(_QUOTED_PART.sub(" | ", criterion))
    return frozenset(tuple(words[i : i + _RUN]) for i in range(len(words) - _RUN + 1))


def _codes(evaluation: Criterion) -> Iterator[str]:
    for name in ("tool_name", "rule_code", "param_name", "integration_code"):
        if code := getattr(evaluation, name, None):
            yield code
    yield from evaluation.aui_logic


@lru_cache(10_000)
def _is_code(name: str) -> bool:
    """Whether nobody would write it who does not read it somewhere, as `refund` and `order-number`."""
    return len(name) >= _SHORTEST_CODE and bool(_CODE.search(name))


def _gives_away(case: _Case, place: int, text: str, violation: _Make, leaks: _Leaks) -> Iterator[Violation]:
    for code in leaks.codes:
        stands = code in text and re.search(rf"(?<![\w-]){re.escape(code)}(?![\w-])", text)
        if stands and spoken(code) not in case.known(place):
            yield violation("criteria", code, "the user names what only the evaluations name")
            return
    words = case.by_user[place].split()
    for i in range(len(words) - _RUN + 1):
        run = tuple(words[i : i + _RUN])
        if run in leaks.runs and _is_news(run, case.known(place)):
            yield violation("criteria", " ".join(run), "the words are those of a criterion")
            return


def _is_news(run: Sequence[str], known: str) -> bool:
    """Whether words of a criterion are none that the user may have put together of what it knows."""
    if " ".join(run) in known:
        return False
    telling = [word for word in run if word not in phrases.common()]
    there = set(known.split())
    new = [word for word in telling if word not in there]
    return len(new) >= 2 and 2 * len(new) >= len(telling)


def _is_in(spoken: str, known: str) -> bool:
    """Whether a sentence stands there; one of a word or two stands nearly everywhere."""
    return spoken.count(" ") >= _FEWEST_REPEATED - 1 and spoken in known


def _words(text: str) -> list[str]:
    return _WORD.findall(_folded(text))


def _folded(text: str) -> str:
    return text.casefold().replace("’", "'")


def spoken(text: str) -> str:
    """The text as its words alone."""
    return " ".join(_words(text))


def _length(spoken: str) -> float:
    """In words; where these are not told apart by spaces, two signs make about one."""
    signs = len(_WITHOUT_SPACES.findall(spoken))
    return signs / 2 if signs else spoken.count(" ") + bool(spoken)


def _texts(value: JsonValue) -> Iterator[str]:
    match value:
        case dict():
            for name, item in value.items():
                yield name
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
        case None | bool():
            pass
        case _:
            yield str(value)
