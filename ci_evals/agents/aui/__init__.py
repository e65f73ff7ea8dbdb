"""Agents behind AUI's task API."""
