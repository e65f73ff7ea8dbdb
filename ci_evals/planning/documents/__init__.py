"""Texts of suites: read with a place for every part, `${NAME}` replaced, and written again."""
