"""The process of a command: how it is watched, interrupted and ended."""
