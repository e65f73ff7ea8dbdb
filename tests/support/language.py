"""Banned words and patterns: what a native engineer would not say, and what to write instead."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PATTERNS = {
    r"\bgate (?:does not )?holds?\b|\bgate (?:has )?held\b|\bgate did not hold": "passed or failed",
    r"\b(?:run|results?) (?:cannot|can not|is not to) be trusted|\bto be trusted less": "no verdict",
    r"\bis gone on with|\bgo(?:es)? on with|\btaken up again": "resumes",
    r"\bplay(?:s|ed)? (?:it )?anew|\bplay(?:s|ed)? again\b": "rerun, retried",
    r"\breckon": "compute",
    r"\bis told by|\btells of\b|\btold of\b": "reports, shows",
    r"\bhangs? (?:less )?on\b(?! Linux)": "depends on",
    r"\bh(?:old|eld|olds|olding) (?:[\w'` -]{1,40} )?against\b(?! the run\b)": "compare with, check against",
    r"\btalk(?:s|ed)? (?:the|this|a|your) judge round|\btalked round": "flip the verdict by prompt injection",
    r"\bwhere there is none\b|\bbe it\b|\bfor want of|\bsave for\b": "if there is none, whether, except",
    r"\bso many\b": "N",
    r"\b(?:environment|service|agent) tells (?:it|them)\b": "names, reports",
    r"\bfor the \w+ before goes on\b": "continues",
    r"\basked less at a time": "fewer concurrent requests",
    r"\bbr(?:oke|oken|eaks?) (?:its|their) role|\bke(?:pt|eps?) to (?:its|their) role": "broke character",
    r"\bparts? from the baseline|\bin which they part\b": "diverges from",
    r"\bunsound\b": "invalid",
    r"\b(?:Least|Most) (?:run score|[a-z]+ that|unsound)|\bleast score\b": "Minimum, Maximum",
    r"\btells? \w+ apart|\btells \w+ and \w+ (?:of \w+ \w+ )?apart": "distinguishes",
    r"\bleft out (?:since|as)\b": "excluded because",
    r"\bspoken to\b|\bspeak to the agent": "call the agent",
    r"\bin place of\b": "instead of",
    r"\bfor ever\b": "forever",
    r"\bof no account\b": "ignored",
    r"\bwe (?:make|keep) (?:an|the) (?:id|conversation)": "ci-evals",
    r"(?<!`)\bexchanges?\b(?!`| rate)": "turn",
    r"\b(?:null|none|undecided|empty) where\b": "if",
    r"\bwants (?:an? (?:list|text|object|number|string)|at least|exactly)\b": "must be, needs",
    r"\b(?:is|are) there twice\b": "appears twice",
    r"\bsomething else than\b": "something other than",
    r"\b(?:gave|gives?) back\b": "returned",
    r"\bspelt\b|\blearnt\b|\blicen[c]es?\b": "American: spelled, learned, license",
    r"\bmend(?:s|ed)?\b": "fix",
    r"\bcame to nothing\b|\binto its mouth\b|\bours to\b": "say it plainly",
    r"\bin its place\b": "instead",
    r"\bnothing here is like\b": "no counterpart",
    r"\bafresh\b": "start over",
    r"\bprocess was ended, since\b": "stopped because",
    r"\bis no (?:list|object|text) (?:but|of)\b": "is not a",
    r"\bof (?:its|their) own\b": "its own, separate, new",
    r"(?<!\.)\bbesides?\b": "next to, in addition to, except",
    r"\bmust be a texts?\b|\b(?:not|return|be) a text\b|\btexts?, or an? (?:object|list)\b": "a string",
    r",? in all[.,;]": "in total, overall",
    r"\bas (?:the|an?) \w+(?: \w+)? has it\b": "in, by",
    r"\b(?:is|are) told from\b|\bas told\b": "computed from, as requested",
    r"\bof nothing in\b": "matches nothing in",
    r"\bsaid of any\b|\bnothing can be said\b": "say it plainly",
    r"\b(?:lies|lie) beside\b|\bis no (?:bug|call|error|typo) of\b": "is not",
    r"\b(?:is|are) freed of\b|\btakes? .{1,30} as much of it away\b": "corrected for, removes",
}
"""What is banned, and what to write."""

_ANY = re.compile("|".join(f"(?P<p{number}>{text})" for number, text in enumerate(PATTERNS)), re.IGNORECASE)


def violations(text: str) -> list[str]:
    """Return what is banned in a text, each with what to write."""
    plain = " ".join(text.split())
    result = []
    for match in _ANY.finditer(plain):
        instead = list(PATTERNS.values())[int(str(match.lastgroup)[1:])]
        result.append(f"{plain[max(0, match.start() - 30) : match.end() + 30]!r}: write {instead!r}")
    return result


def messages(file: Path) -> Iterator[str]:
    """Yield the text constants of a module that are no docstrings: messages, help, labels."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    docstrings = {
        id(node.value)
        for node in nodes
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value
