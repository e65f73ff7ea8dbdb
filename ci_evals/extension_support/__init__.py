"""What several extensions share: asking a judge about a saved run, and drafting tests from conversations."""
