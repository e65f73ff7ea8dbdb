"""Agents behind the Agent2Agent protocol."""
