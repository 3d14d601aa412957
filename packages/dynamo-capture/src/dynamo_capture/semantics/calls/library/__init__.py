"""The standard library and numpy."""
