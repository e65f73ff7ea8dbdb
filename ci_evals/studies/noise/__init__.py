"""Where the noise of scores comes from: the agent, the simulated user or the judge."""
