"""Agents that speak AG-UI."""
