"""Facts of the judge and the simulated user: verdicts, votes, grounds, reliability; not yet sanitized."""
