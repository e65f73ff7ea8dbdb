"""GitHub: the event of a job, its API, its commands."""
