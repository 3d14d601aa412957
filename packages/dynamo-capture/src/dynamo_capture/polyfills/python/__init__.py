"""Substitutes for functions and methods of Python."""
