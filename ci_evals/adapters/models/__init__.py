"""Models: behind judge and simulated user, and for comparing meanings."""
