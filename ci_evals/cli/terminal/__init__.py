"""What people see while a command works."""
