"""What stands on the page before a test is opened."""
