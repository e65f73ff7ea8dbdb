"""What the GitHub runner offers an action."""
