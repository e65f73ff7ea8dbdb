"""Agents behind an endpoint of OpenAI's chat completions."""
