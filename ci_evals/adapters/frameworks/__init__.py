"""Agents behind the servers of agent frameworks, each by its own protocol."""
