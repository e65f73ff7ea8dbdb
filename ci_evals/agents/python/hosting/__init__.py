"""Agents that are code in a process of their own, which may die, hang or print without touching the run."""
