"""Agents behind an endpoint of OpenAI's chat completions, or of its Responses API."""
