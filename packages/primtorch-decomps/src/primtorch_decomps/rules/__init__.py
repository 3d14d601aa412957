"""Spec rules of operators that have no decomposition, and of those whose layout it does not imply."""
