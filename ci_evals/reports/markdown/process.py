"""The agent's process in Markdown: its measures, and the logic that the tests reached."""

from ci_evals.reports import sanitize
from ci_evals.reports.markdown.sections import Rank, Section, folded, table_text, tabled
from ci_evals.reports.story.story import Story


def lost(story: Story) -> Section | None:
    """The logic used in the baseline and no longer in the same tests; None if there is none."""
    text = sanitize.inline(story.process.lost)
    return Section("the logic that is no longer used", text, Rank.DETAILS) if text else None


def measures(story: Story) -> Section | None:
    """The measures of the process, folded; None if no trial has a trace."""
    found = story.process
    if not found.is_traced:
        return None
    parts = [sanitize.inline(note) for note in found.notes]
    if found.coverage:
        parts.append(f"Coverage of {found.coverage.parts}: {sanitize.inline(found.coverage.says)}")
        parts += [f"**{table.title}**\n\n{table_text(table)}" for table in found.coverage.open]
    inner = Section("the process", "", Rank.DETAILS, noun="measure", tail="\n\n".join(parts))
    return folded(found.measures.title, tabled(inner, found.measures))
