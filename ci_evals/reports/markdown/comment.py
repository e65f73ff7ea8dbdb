"""The text of the pull request's comment: the run's summary within the bytes that a comment holds."""

from html import escape

from ci_evals.reports import sanitize
from ci_evals.reports.markdown import summary
from ci_evals.reports.markdown.sections import SummaryContext, section, truncated
from ci_evals.reports.story.story import Story

__all__ = ["BUDGET", "SummaryContext", "refused", "render"]

BUDGET = 59_500
"""Bytes of UTF-8. With its hidden marker a comment has 60,000, which is below every reading of the limit."""
_REASON_BYTES = 10_000
_CUT = "… (cut; the log of the run has it whole)"


def render(story: Story, context: SummaryContext, budget: int = BUDGET) -> str:
    """The text, at most `budget` bytes. Nothing in the results becomes a link, mention or picture."""
    run = (
        f'<a href="{escape(context.run_url)}">{context.run_page}</a>' if context.run_url else context.run_page
    )
    elsewhere = f"The {run} shows more, its <code>summary.md</code> everything."
    return truncated(summary.sections(story, context), budget, elsewhere)


def refused(reason: str, context: SummaryContext) -> str:
    """The text where a run was refused before anything was played: a suite that cannot be read, say.

    It replaces an earlier commit's comment, whose numbers would otherwise seem to be this one's.
    """
    block = sanitize.code_block(sanitize.cut(reason, _REASON_BYTES, _CUT).strip())
    return section("refused", reason=block, context=context) + "\n"
