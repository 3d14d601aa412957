"""Arithmetic on elements, and reductions."""
