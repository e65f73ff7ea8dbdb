"""A trial played: from planned turns to a transcript."""
