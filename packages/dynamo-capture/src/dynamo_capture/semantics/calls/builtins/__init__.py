"""Builtin functions and classes, and the methods of what they make."""
