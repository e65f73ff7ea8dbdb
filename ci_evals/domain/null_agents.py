"""Agents that do nothing. A good suite fails both."""

REFUSAL = "I'm sorry, I can't help with that."
"""All that an agent says that refuses whatever it is asked."""
CLAIM = "All done! I have taken care of that for you."
"""All that an agent says that claims to have done whatever it is asked."""
