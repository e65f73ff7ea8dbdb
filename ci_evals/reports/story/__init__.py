"""The story of a run, computed once: facts in plain text, not yet sanitized, that every report lays out."""
