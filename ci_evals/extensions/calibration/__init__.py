"""A judge compared with people, who label a sample of its verdicts."""
