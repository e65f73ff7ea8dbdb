"""Builds the real agents and models that settings and suites ask for."""
