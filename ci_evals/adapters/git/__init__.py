"""A repository as seen from a folder: its checkout, its changes, its suites."""
