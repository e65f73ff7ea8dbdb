"""The tests that would run, and an estimate of what they take."""
