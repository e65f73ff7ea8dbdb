"""The option `--watch` of `run`: run again as soon as a suite or another file changes."""
