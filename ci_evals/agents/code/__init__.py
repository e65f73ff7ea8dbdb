"""Parts that agents in code share."""
