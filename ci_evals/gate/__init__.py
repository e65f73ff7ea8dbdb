"""The gate: its checks, what they select, and what they would do by chance."""
