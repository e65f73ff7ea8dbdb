"""Checks: the strict evaluations and what they share, by what they look at."""
