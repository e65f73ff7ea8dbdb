"""The sources of noise in scores: the agent, the simulated user and the judge."""
