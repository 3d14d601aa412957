"""Specs of arithmetic on elements, and of reductions."""
