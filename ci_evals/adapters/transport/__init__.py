"""Connections, programs, retries, and reading what others send."""
