"""Apps on a server of Google's Agent Development Kit."""
