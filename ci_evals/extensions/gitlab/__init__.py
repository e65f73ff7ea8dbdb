"""GitLab: the job, its merge request's note, and baselines among artifacts."""
