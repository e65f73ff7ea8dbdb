"""Keeps words of agents, users and judges apart: out of reasons, and as marked data if they are asked for."""

import json
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from pydantic import JsonValue

from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import Turn
from ci_evals.domain.verdict import Finding
from ci_evals.reports import sanitize
from ci_evals.support import templates

_FOLDER = "extensions/mcp_server"
LEFT_OUT = "[…]"
MOST_NAME = 200
_MOST_REASON = 600
_MOST_WORDS = 40_000
"""Characters of all words of an answer."""
_MOST_MESSAGE = 4_000
_MOST_RAW = 20_000
"""Characters of a reason that are looked at."""

_KEPT = "\x00{}\x00"
_PARTS = re.compile(
    r"\x00\d+\x00"  # a text of the suite
    # A quotation that nothing closes runs to the end: a long reason is cut, and its closing mark with it.
    r"|\"(?:[^\"\\]|\\.)*(?:\"|\\?\Z)|'(?:[^'\\]|\\.)*(?:'|\\?\Z)"
    r"|[“”„‟‘’‚‛«»‹›].*"  # our reasons have none of these
    r"|[\w.\-:/@$]+"
    r"|\s+|.",
    re.DOTALL,
)
_SHAPE_OF_NAMES = re.compile(r"[A-Za-z_][\w.\-]{0,39}", re.ASCII)
_NUMBER = re.compile(r"-?\$?\d{1,9}(?:[.,]\d{1,9})?", re.ASCII)
_LEFT_OUT_RUN = re.compile(rf"{re.escape(LEFT_OUT)}(?:[\s,;:]*{re.escape(LEFT_OUT)})+")
_SHORTEST = 3
"""Characters from which a text of a suite is recognized within a reason without quotation marks."""


@cache
def _reason_words() -> frozenset[str]:
    """The words that reasons of strict checks are made of, except for what they name and quote."""
    text = files("ci_evals").joinpath(_FOLDER, "reason_words.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


@cache
def verdict_words() -> frozenset[str]:
    """The words that reasons for a missing verdict are made of, except for what they name and quote."""
    text = files("ci_evals").joinpath(_FOLDER, "verdict_words.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


@dataclass(frozen=True)
class ReasonFilter:
    """Leaves out of the reasons of strict checks whatever the suite's author did not write.

    Names of tools, rules, workflows and parameters stay if the suite has them, and so do numbers.
    """

    suite_texts: frozenset[str] = frozenset()
    """All texts of the test in its suite."""
    names: frozenset[str] = frozenset()
    """Names of the suite that the agent called, fired or extracted: others it could choose to be read."""
    words: frozenset[str] = field(default_factory=_reason_words)
    """The words that our reasons are made of."""

    @classmethod
    def of(cls, suite_texts: Iterable[str], trial: TrialResult) -> "ReasonFilter":
        """Return the filter for the findings of a trial."""
        names = frozenset(name for turn in trial.turns.without_traces() for name in names_of(turn))
        texts = frozenset(text for text in suite_texts if text.strip())
        return cls(texts, names & texts)

    def reason(self, finding: Finding) -> str | None:
        """Return the reason of a strict check without foreign words; None for what a judge wrote."""
        if finding.kind != "strict":
            return None
        return sanitize.one_line(self.without_words(finding.reason), _MOST_REASON)

    def without_words(self, text: str) -> str:
        """Return a text in which `[…]` stands for foreign words."""
        text, kept = self._marked(text[:_MOST_RAW].replace("\x00", " "))
        parts = []
        for match in _PARTS.finditer(text):
            part = match[0]
            if part.startswith("\x00"):
                parts.append(kept[int(part.strip("\x00"))])
            elif not part[0].isalnum() and part[0] not in "\"'_" and len(part) == 1:
                parts.append(part if part in " ()[]{},;:=.-/" else LEFT_OUT)
            elif part.isspace() or self._may_be_shown(part):
                parts.append(part)
            else:
                parts.append(LEFT_OUT)
        return _LEFT_OUT_RUN.sub(LEFT_OUT, "".join(parts))

    def _marked(self, text: str) -> tuple[str, list[str]]:
        """Replace texts of the suite by marks, the longest first."""
        kept: list[str] = []
        forms = sorted(self._forms(), key=len, reverse=True)
        if not forms:
            return text, kept
        pattern = re.compile("|".join(rf"(?<!\w){re.escape(form)}(?!\w)" for form in forms))

        def mark(match: re.Match[str]) -> str:
            kept.append(match[0])
            return _KEPT.format(len(kept) - 1)

        return pattern.sub(mark, text), kept

    def _forms(self) -> set[str]:
        """Return the texts of the suite as reasons write them."""
        forms = set()
        for text in self.suite_texts:
            forms |= {f"/{text}/", repr(text), json.dumps(text, ensure_ascii=False)}
            if len(text) >= _SHORTEST:
                forms.add(text)
        return forms

    def _may_be_shown(self, part: str) -> bool:
        if part[0] in "\"'":
            return False
        word = part.rstrip(".:")
        if not word or word.lower() in self.words or _NUMBER.fullmatch(word):
            return True
        return word in self.names


def names_of(turn: Turn) -> Iterator[str]:
    """Yield the names of what the agent called, fired and extracted in a turn, if they look like names."""
    found = [call.name for call in turn.tool_calls or ()]
    found += [key for call in turn.tool_calls or () for key in call.arguments or {}]
    found += [integration.code for integration in turn.integrations or ()]
    found += [*(turn.workflows or ()), *(turn.rules or ()), *(turn.params or {}), *turn.named_params]
    yield from filter(is_name, found)


def is_name(text: str) -> bool:
    """Return whether a text looks like a name of a tool, a rule or a parameter."""
    return _SHAPE_OF_NAMES.fullmatch(text) is not None


def texts_in(value: object) -> Iterator[str]:
    """Yield all texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from texts_in(key)
            yield from texts_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts_in(inner)


class Words:
    """Collects the words that an answer returns as untrusted data, up to a limit."""

    def __init__(self) -> None:
        self._left = _MOST_WORDS
        self.cut = False

    def take(self, text: str) -> str:
        """Return a text, cut if it is long or if the answer is full."""
        limit = min(_MOST_MESSAGE, self._left)
        if len(text) > limit:
            self.cut = True
        shown = sanitize.cut(text, limit, "…") if limit > 0 else ""
        self._left -= len(shown)
        return shown


def untrusted(data: JsonValue, *, cut: bool) -> str:
    """Return words as marked data. Nobody in a conversation knows the mark."""
    template = f"{_FOLDER}/untrusted.md.j2"
    return templates.render(template, words=data, mark=secrets.token_hex(8), cut=cut)
