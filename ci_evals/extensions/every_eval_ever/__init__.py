"""Every Eval Ever: its records as results to gate, and runs as its records."""
