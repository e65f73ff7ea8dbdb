"""One module per neighbour; the only vendor imports."""
