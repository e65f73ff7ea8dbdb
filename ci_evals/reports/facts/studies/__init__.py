"""The facts that studies find out about judge and simulated user."""
