"""Compiled programs that are stored and read back: their names and their form."""
