"""Functions and classes of torch that are more than operations."""
