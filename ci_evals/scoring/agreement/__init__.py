"""Agreement of judges, people and repeated votes."""
