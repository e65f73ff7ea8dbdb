"""Words and limits that the rules about changes since the baseline share."""

NOT_COMPARABLE = "none of its tests can be compared with the baseline"
CLOSE = 0.25
"""The p up to which a drop counts as near the threshold."""
