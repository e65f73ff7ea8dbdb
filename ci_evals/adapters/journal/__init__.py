"""The journal of a run: its finished trials, to resume it, and if recorded all answers, to replay it."""
