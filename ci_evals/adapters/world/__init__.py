"""The world around an agent: its services, databases, files and programs."""
