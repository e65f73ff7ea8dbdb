"""The options of all commands, each declared once."""
