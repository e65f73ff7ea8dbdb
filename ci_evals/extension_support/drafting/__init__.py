"""Tests that are drafted from conversations which really happened."""
