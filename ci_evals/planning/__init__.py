"""Suite text to plan: read, point at every fault, select."""
