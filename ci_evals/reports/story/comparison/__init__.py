"""What changed since the baseline, how surely, and how the run came to know; not yet sanitized."""
