"""Adapters to everything outside: agents, models, files, GitHub. Vendors are imported only here."""
