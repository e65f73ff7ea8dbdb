"""From results to text; opens no file."""
