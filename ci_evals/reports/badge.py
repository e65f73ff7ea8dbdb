"""The badge: a run in two words, as a picture and as data for a service that draws its own.

The data are those of shields.io's endpoint badge (https://shields.io/badges/endpoint-badge).
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from ci_evals.domain import numbers
from ci_evals.reports.names import BADGE, BADGE_DATA
from ci_evals.reports.story.outcome_labels import UNFINISHED, RunOutcome
from ci_evals.reports.story.story import Story
from ci_evals.support.templates import render as fill

LABEL = "evals"

_SIGN = 6.5
"""Width of a character, in pixels: the picture stretches the text to it, so that no font matters."""
_MARGIN = 6


@dataclass(frozen=True)
class Badge:
    """The text and colors of a badge."""

    message: str
    ground: str
    """Behind white text that it keeps readable (WCAG AA)."""
    shade: str
    """The color's name at shields.io."""


def badge_of(story: Story) -> Badge:
    """The badge of a run: whether the gate passed, and the score as all reports show it."""
    outcome, score = story.outcome, story.run.score
    if outcome is RunOutcome.SKIPPED:
        return Badge("skipped", "#57606a", "lightgrey")
    if score is None:
        return Badge("no score", "#57606a", "lightgrey")
    if outcome in UNFINISHED or story.run.contradictory:
        return Badge("no verdict", "#8a4b00", "orange")
    passed = outcome is not RunOutcome.FAILED
    if story.certainty.too_little:
        words, ground, shade = ("passed", "#8a4b00", "orange") if passed else ("failed", "#b3261e", "red")
        return Badge(f"{words}, mostly undecided", ground, shade)
    if passed:
        return Badge(f"{numbers.score(score)} passed", "#116329", "brightgreen")
    return Badge(f"failed {numbers.score(score)}", "#b3261e", "red")


def files(story: Story) -> dict[str, Iterable[str]]:
    """The badge's files."""
    return {BADGE: _picture(story), BADGE_DATA: _data(story)}


def _picture(story: Story) -> Iterable[str]:
    badge = badge_of(story)
    widths = [round(len(text) * _SIGN) for text in (LABEL, badge.message)]
    yield fill("reports/templates/badge.svg.html.j2", label=LABEL, badge=badge, widths=widths, margin=_MARGIN)


def _data(story: Story) -> Iterable[str]:
    badge = badge_of(story)
    data = {"schemaVersion": 1, "label": LABEL, "message": badge.message, "color": badge.shade}
    yield json.dumps(data, indent=2) + "\n"
