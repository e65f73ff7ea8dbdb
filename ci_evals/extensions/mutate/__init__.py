"""What would turn a gate red: faults planted in saved conversations, and graded again."""
