"""Assistants on a Rasa server."""
