"""From an evaluation and a transcript to a verdict."""
