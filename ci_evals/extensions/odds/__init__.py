"""The command `odds`: how often noise alone would fail the gate of a saved run."""
