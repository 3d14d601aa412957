"""Attribute access with Python's own lookup order, over known objects and over what the trace made or changed."""
