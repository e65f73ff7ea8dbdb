"""What agents that are code have in common."""
