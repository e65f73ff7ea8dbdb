"""Results of other tools, read from their files and gated like a run: the command `gate`."""
