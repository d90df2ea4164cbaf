"""What is registered for targets that run parts of a program."""
