"""The terminal: lines, bars and colors while a command works."""
