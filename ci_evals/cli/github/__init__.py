"""The job on GitHub: its event, its commit, its token, and what the runner reads."""
