"""The top floor: take the options, wire the parts, run, publish, exit."""
