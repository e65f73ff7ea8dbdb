"""Graphs on a LangGraph Server."""
