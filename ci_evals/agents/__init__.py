"""The agents under test, one folder for each kind."""
