"""Specs of views, and of what picks, sorts and scatters elements."""
