"""Texts for users."""
