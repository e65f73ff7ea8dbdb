"""Recordings: the answers of agents and models of a run, in a file without secrets, and their replay."""
