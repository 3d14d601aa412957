"""Objects of the program's own classes."""
