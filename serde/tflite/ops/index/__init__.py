"""Elements that are picked."""
