"""Agents behind HTTP: an `_agent` sends requests, its `_wire` defines what they and the answers mean."""
