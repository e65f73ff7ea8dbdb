"""What is worth saying about results, in plain words that all reports share; not yet sanitized."""
