"""The overview: the page before a test is opened."""
