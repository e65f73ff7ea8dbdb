"""The files that a command reads and writes: suites, saved runs, reports."""
