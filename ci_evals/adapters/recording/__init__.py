"""What agents and models answered in a run, kept in a file without secrets, and played again from there."""
