"""The journal of a run: its finished trials, to resume it, and with `--record` all answers, to replay it."""
