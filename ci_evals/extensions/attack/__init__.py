"""Prompt injection: instructions in the agent's replies that flip verdicts."""
