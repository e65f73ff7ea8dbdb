"""Talk to an agent in the terminal, and keep the conversation as a test."""
