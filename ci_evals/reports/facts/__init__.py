"""Facts about results as data and sentences that all reports share; not yet sanitized."""
