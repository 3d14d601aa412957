"""Operators and comparisons of Python."""
