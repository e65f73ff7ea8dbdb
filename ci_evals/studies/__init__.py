"""What is found out about the judge, the simulated user and the criteria of a saved run."""
