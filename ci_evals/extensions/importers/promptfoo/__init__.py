"""promptfoo's configuration, imported as a suite."""
