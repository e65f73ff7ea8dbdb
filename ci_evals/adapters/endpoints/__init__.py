"""Agents behind HTTP: when they are spoken to, and what is said."""
