"""Arithmetic with numbers that differ from call to call."""
