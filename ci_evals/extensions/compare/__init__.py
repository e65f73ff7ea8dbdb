"""The command `compare`: two saved runs, test by test."""
