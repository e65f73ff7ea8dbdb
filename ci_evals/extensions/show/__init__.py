"""Saved conversations on a terminal."""
