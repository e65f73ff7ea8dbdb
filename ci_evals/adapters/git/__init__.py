"""What git knows of a folder: its checkout, its changes and its suites."""
