"""Which of two runs a judge prefers, conversation by conversation."""
