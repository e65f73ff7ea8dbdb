"""What all neighbours are reached by: HTTP connections, programs, and reading what they send."""
