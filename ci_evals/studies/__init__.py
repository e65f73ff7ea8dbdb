"""Studies of the judge, the simulated user and the criteria of a saved run, each in a folder of its own."""
