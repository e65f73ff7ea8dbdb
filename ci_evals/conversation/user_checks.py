"""Checks of a simulated user: rules, without a model, for whether it stayed in character.

A violation excludes the conversation, so every rule looks for what nearly no good user writes and gives the
benefit of the doubt: a person may be long-winded, insist, quote the agent, or answer twice when asked twice.
docs/judge-statistics.md explains each rule.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

from pydantic import JsonValue

from ci_evals.conversation import phrases
from ci_evals.domain.criterion import Criterion
from ci_evals.domain.results.simulated_user import Violation
from ci_evals.domain.suite import Test, unsent_lines
from ci_evals.domain.transcript import EndState, Transcript, Turn, UserSource

ENDED = frozenset({EndState.COMPLETED, EndState.STOPPED, EndState.ESCALATED, EndState.AGENT_ERROR})
"""Ends of conversations that are checked. Others broke off, and count for nothing anyway."""

MAX_CHARACTERS, MAX_WORDS = 1_500, 250
"""Limits of a message. The prompt asks for one to three sentences; nobody types ten times that in a chat."""

MAX_REMARK_CHARACTERS, MAX_REMARK_WORDS = 600, 100
"""Limits of the words beside the stop marker: a goodbye, or why the user leaves."""

_FEWEST_REPEATED = 4
_WORDS_IN_A_ROW = 6
"""Words of a criterion in a row: fewer match by chance."""
_LONG_FACT = 40
"""Characters from which a text in `userInfo` may be meant to be pasted."""
_SHORTEST_ECHO = 8
"""Words of a reply that the user repeats as its own."""

_TOPICS = ("system prompt", "developer")
"""Words about prompts that guidelines may hold too."""

_WORD = re.compile(r"\w+(?:'\w+)*")
_WITHOUT_SPACES = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_QUOTED_PART = re.compile(r"\"[^\"]*\"|“[^”]*”|‘[^’]*’|«[^»]*»|(?<!\w)'[^']*'(?!\w)|`[^`]*`")
_CODE = re.compile(
    r"\S_\S|^[a-z]{3,}[A-Z]|^[A-Z][a-z]{4,}[A-Z][a-z]{4,}|^[^\s-]+(?:-[^\s-]{4,})+-[^\s-]+$|\w[.:/]\w+[.:/]\w"
)
"""`CANCEL_PLAN`, `cancelPlan`, `CancelPlan`, `cancel-before-renewal`; not `PayPal`, `out-of-stock`."""
_SHORTEST_CODE = 4


def is_checked(transcript: Transcript) -> bool:
    """Return whether the conversation ended in a way that counts, with a line of a simulated user in it."""
    wrote = any(turn.user_source is UserSource.AUTO for turn in transcript.turns)
    return transcript.status in ENDED and (wrote or transcript.status is EndState.STOPPED)


def violations(test: Test, transcript: Transcript) -> tuple[Violation, ...]:
    """Return where the model that wrote the `auto` turns broke character, at most one per rule and turn.

    `text` holds the words as they were written, secrets included.
    """
    dialogue = _Dialogue(test, transcript.turns)
    found = [
        *_in_messages(dialogue),
        *_in_remark(test, transcript),
        *skipped_lines(test, transcript),
        *_stop_too_early(dialogue, transcript),
    ]
    by_rule_and_turn = {(violation.rule, violation.turn): violation for violation in reversed(found)}
    return tuple(sorted(by_rule_and_turn.values(), key=lambda violation: violation.turn))


@dataclass(frozen=True)
class _Dialogue:
    """A conversation, and what its user knows."""

    test: Test
    turns: Sequence[Turn]

    @cached_property
    def messages(self) -> Sequence[str]:
        """The user's messages as words."""
        return [spoken(turn.user) for turn in self.turns]

    @cached_property
    def replies(self) -> Sequence[str]:
        """The agent's replies as words."""
        return [spoken(turn.agent) for turn in self.turns]

    @cached_property
    def instructions(self) -> str:
        """The user's knowledge from the start, as words."""
        lines = [turn.user for turn in self.test.planned_turns if not turn.auto]
        lines += [message["content"] for message in self.test.history]
        return spoken(" | ".join([self.test.guidelines, *_texts(self.test.user_info), *lines]))

    @cached_property
    def secret_runs(self) -> frozenset[tuple[str, ...]]:
        """Runs of words in the test's criteria, which no user can know."""
        runs = (_runs(evaluation.criterion) for evaluation in self.test.evaluations)
        return frozenset[tuple[str, ...]]().union(*runs)

    @cached_property
    def secret_codes(self) -> Sequence[str]:
        """Codes in the test's evaluations, which no user can know."""
        codes = (code for evaluation in self.test.evaluations for code in _codes(evaluation))
        return [*dict.fromkeys(filter(_is_code, codes))]

    def known(self, index: int) -> str:
        """Return what the user knows before the message at `index`, as words."""
        return " ".join([self.instructions, *self.replies[:index]])


class _Match(NamedTuple):
    """Words that break a rule, and why."""

    text: str
    reason: str


def _in_messages(dialogue: _Dialogue, since: int = 0) -> Iterator[Violation]:
    for index, turn in enumerate(dialogue.turns):
        if index < since or turn.user_source is not UserSource.AUTO:
            continue
        for rule, check in _MESSAGE_RULES.items():
            if match := check(dialogue, index, turn.user):
                yield Violation(rule=rule, turn=turn.index, text=match.text, reason=match.reason)


def _in_remark(test: Test, transcript: Transcript) -> Iterator[Violation]:
    """Yield violations in the closing remark, which is checked like a message though it was never sent."""
    remark, before = transcript.closing_remark, transcript.turns
    if transcript.status is not EndState.STOPPED or not remark:
        return
    index = len(before) + 1
    if len(remark) > MAX_REMARK_CHARACTERS or len(remark.split()) > MAX_REMARK_WORDS:
        most = f"{MAX_REMARK_CHARACTERS} characters and {MAX_REMARK_WORDS} words"
        reason = f"the closing remark is longer than {most}"
        yield Violation(rule="length", turn=index, text=remark, reason=reason)
    last = Turn(index=index, user=remark, user_source=UserSource.AUTO, agent="", latency_seconds=0)
    yield from _in_messages(_Dialogue(test, (*before, last)), since=len(before))


def _alternation(_dialogue: _Dialogue, _index: int, text: str) -> _Match | None:
    if line := phrases.both_sides(text):
        return _Match(line, "the message holds both sides of the conversation")
    if line := phrases.labeled(text):
        return _Match(line, "the message is labeled as a line of a written dialogue")
    return None


def _as_agent(dialogue: _Dialogue, index: int, text: str) -> _Match | None:
    for phrase in phrases.as_agent(text):
        if not _is_sentence_in(spoken(phrase.sentence), dialogue.instructions):
            return _Match(phrase.text, "the user speaks as the agent")
    message = dialogue.messages[index]
    if message.count(" ") + 1 < _SHORTEST_ECHO or not _is_echo(message, dialogue.turns[:index]):
        return None
    # An agent that repeats its user is no fault of the user's.
    if message in dialogue.messages[:index] or message in dialogue.instructions:
        return None
    return _Match(text, "the user says a reply of the agent's as its own")


def _is_echo(message: str, before: Sequence[Turn]) -> bool:
    """Return whether a reply has just these words; only those with the first ones are split into words."""
    first = message.split(" ", 4)[:4]
    return any(
        all(word in folded for word in first) and spoken(folded) == message
        for folded in (_folded(turn.agent) for turn in before)
    )


def _meta(dialogue: _Dialogue, index: int, text: str) -> _Match | None:
    for phrase in phrases.meta(text):
        instructed = _is_sentence_in(spoken(phrase.sentence), dialogue.instructions)
        # A user who is to attack the agent's prompt speaks of one.
        instructed = instructed or any(
            topic in spoken(phrase.text) and topic in dialogue.instructions for topic in _TOPICS
        )
        if not instructed and not any(phrase.text in turn.agent for turn in dialogue.turns[:index]):
            return _Match(phrase.text, "the user mentions its role, or the message contains more than one")
    gesture = phrases.stage_direction(text)
    if gesture and gesture.verb.casefold() not in dialogue.instructions:
        return _Match(gesture.text, "the message contains a stage direction")
    return None


def _length(dialogue: _Dialogue, _index: int, text: str) -> _Match | None:
    if _fits(text) or phrases.has("may_be_long", dialogue.test.guidelines):
        return None
    for fact in _texts(dialogue.test.user_info):
        if len(fact) >= _LONG_FACT:
            text = text.replace(fact, "")
    if _fits(text):
        return None
    most = f"{MAX_CHARACTERS:,} characters and {MAX_WORDS} words"
    return _Match(text, f"the message is longer than {most}, which nobody types in a chat")


def _fits(text: str) -> bool:
    return len(text) <= MAX_CHARACTERS and len(text.split()) <= MAX_WORDS


def _repeats(dialogue: _Dialogue, index: int, text: str) -> _Match | None:
    message = dialogue.messages[index]
    before = [i for i, earlier in enumerate(dialogue.messages[:index]) if earlier == message]
    if not before or _word_count(message) < _FEWEST_REPEATED or phrases.is_courtesy(text):
        return None
    stuck = _is_stuck(dialogue.replies[: index + 1], before[-1])
    if phrases.has("may_repeat", dialogue.test.guidelines) or stuck:
        return None
    between = dialogue.turns[before[-1] : index]
    if not any(phrases.has("asks", turn.agent) for turn in between):
        turn = dialogue.turns[before[-1]].index
        return _Match(text, f"said in turn {turn} too, and the agent has asked nothing since")
    begins_again = before[0] == 0 and phrases.has("greeting", text)
    if begins_again and not phrases.has("may_begin_again", between[-1].agent):
        return _Match(text, "the user starts over in the middle of the conversation")
    return None


def _is_stuck(replies: Sequence[str], since: int) -> bool:
    """Return whether the agent repeated itself since then: the user of such an agent may do so too."""
    return any(one == other for one, other in pairwise(replies[max(0, since - 1) :]))


def _criteria(dialogue: _Dialogue, index: int, text: str) -> _Match | None:
    for code in dialogue.secret_codes:
        named = code in text and re.search(rf"(?<![\w-]){re.escape(code)}(?![\w-])", text)
        if named and spoken(code) not in dialogue.known(index):
            return _Match(code, "the user names what only the evaluations name")
    words = dialogue.messages[index].split()
    for start in range(len(words) - _WORDS_IN_A_ROW + 1):
        run = tuple(words[start : start + _WORDS_IN_A_ROW])
        if run in dialogue.secret_runs and _is_news(run, dialogue.known(index)):
            return _Match(" ".join(run), "the words come from a criterion")
    return None


_MESSAGE_RULES: Mapping[str, Callable[[_Dialogue, int, str], _Match | None]] = {
    "alternation": _alternation,
    "as_agent": _as_agent,
    "meta": _meta,
    "length": _length,
    "repeats": _repeats,
    "criteria": _criteria,
}
"""The rules for one message, given the conversation, the message's index and its text."""


def can_skip_lines(test: Test) -> bool:
    """Return whether a simulated user could stop before a fixed line of the test."""
    turns = test.planned_turns
    first = next((number for number, turn in enumerate(turns) if turn.auto), len(turns))
    return bool(unsent_lines(turns, first))


def skipped_lines(test: Test, transcript: Transcript) -> Iterator[Violation]:
    """Yield that the user stopped before fixed lines, which were then never sent to the agent."""
    sent = len(transcript.turns)
    lines = unsent_lines(test.planned_turns, sent)
    if transcript.status is EndState.STOPPED and lines:
        reason = f"the user stopped before line {lines[-1]} of the test was sent"
        yield Violation(
            rule="skipped_line", turn=sent + 1, text=transcript.closing_remark or "", reason=reason
        )


def _stop_too_early(dialogue: _Dialogue, transcript: Transcript) -> Iterator[Violation]:
    """Yield a yes or a requested value beside the stop marker, which was never sent to the agent."""
    remark = transcript.closing_remark
    if transcript.status is not EndState.STOPPED or not remark or not dialogue.turns:
        return
    reply, index = dialogue.turns[-1].agent, dialogue.turns[-1].index + 1
    plainly = phrases.ends_with_closing(reply)
    if phrases.wants_confirmation(reply) and phrases.confirms(remark, plainly=plainly):
        reason = "the agent asked for a yes, and it was never sent: the user stopped with it"
        yield Violation(rule="stop", turn=index, text=remark, reason=reason)
    elif (request := phrases.requests(reply)) and _gives_value(dialogue, remark, request):
        reason = "the agent asked for this, and it was never sent: the user stopped with it"
        yield Violation(rule="stop", turn=index, text=remark, reason=reason)


def _gives_value(dialogue: _Dialogue, remark: str, request: str) -> bool:
    """Return whether the remark holds a value of `userInfo` that is requested by name, or any new code."""
    before = " ".join(text for turn in dialogue.turns for text in (turn.user, turn.agent))
    if any(value not in before for value in phrases.values(remark)):
        return True
    requested, remarked = set(spoken(request).split()), spoken(remark)
    return any(
        set(spoken(re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name)).split()) <= requested
        and len(spoken(str(value))) > 2
        and f" {spoken(str(value))} " in f" {remarked} "
        for name, value in dialogue.test.user_info.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    )


@lru_cache(10_000)
def _runs(criterion: str) -> frozenset[tuple[str, ...]]:
    # Words in quotation marks are those that somebody may say.
    words = _words(_QUOTED_PART.sub(" | ", criterion))
    starts = range(len(words) - _WORDS_IN_A_ROW + 1)
    return frozenset(tuple(words[i : i + _WORDS_IN_A_ROW]) for i in starts)


def _codes(evaluation: Criterion) -> Iterator[str]:
    for name in ("tool_name", "rule_code", "param_name", "integration_code"):
        if code := getattr(evaluation, name, None):
            yield code
    yield from evaluation.aui_logic


@lru_cache(10_000)
def _is_code(name: str) -> bool:
    """Return whether nobody would write the name by chance, as `refund` or `order-number`."""
    return len(name) >= _SHORTEST_CODE and bool(_CODE.search(name))


def _is_news(run: Sequence[str], known: str) -> bool:
    """Return whether the user cannot have put these words of a criterion together from what it knows."""
    if " ".join(run) in known:
        return False
    significant = [word for word in run if word not in phrases.common()]
    known_words = set(known.split())
    new = [word for word in significant if word not in known_words]
    return len(new) >= 2 and 2 * len(new) >= len(significant)


def _is_sentence_in(sentence: str, known: str) -> bool:
    """Return whether a sentence occurs there; one of a word or two occurs nearly everywhere."""
    return sentence.count(" ") >= _FEWEST_REPEATED - 1 and sentence in known


def _words(text: str) -> list[str]:
    return _WORD.findall(_folded(text))


def _folded(text: str) -> str:
    return text.casefold().replace("’", "'")


def spoken(text: str) -> str:
    """Return the text as its words alone."""
    return " ".join(_words(text))


def _word_count(message: str) -> float:
    """Return the number of words; in scripts without spaces, two characters count as one."""
    characters = len(_WITHOUT_SPACES.findall(message))
    return characters / 2 if characters else message.count(" ") + bool(message)


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
