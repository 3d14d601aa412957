"""Calls of equal modules in a loop: what the first ones did is done again with another module's parameters."""
