"""Programs that a run starts to serve an agent."""
