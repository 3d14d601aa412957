"""Inputs: what they share and how they are marked, and how they get what the program wrote."""
