"""Agents behind an endpoint of OpenAI's Responses API."""
