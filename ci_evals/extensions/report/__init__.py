"""The reports of a saved run, written again."""
