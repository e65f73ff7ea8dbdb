"""Parts of the command `run`."""
