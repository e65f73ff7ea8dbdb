"""Agents that are programs, which read and write JSON lines."""
