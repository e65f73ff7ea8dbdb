"""Trials played by workers on other processors: the run stays here, and workers play one trial at a time."""
