"""Frames of the symbolic interpreter: code, stack, variables, and where an exception has been."""
