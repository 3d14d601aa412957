"""Jumps, loops, exceptions and patterns."""
