"""An app of ADK."""
