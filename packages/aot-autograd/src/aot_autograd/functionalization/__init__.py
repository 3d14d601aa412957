"""Operators that view or write memory become operators that compute."""
