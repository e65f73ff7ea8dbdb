"""Markdown reports: comment, step summary, summary files and the story of each test."""
