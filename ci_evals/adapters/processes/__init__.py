"""Programs that a run starts, and their end with all that they have started."""
