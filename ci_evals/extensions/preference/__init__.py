"""A study of which of two runs a judge prefers, conversation by conversation."""
