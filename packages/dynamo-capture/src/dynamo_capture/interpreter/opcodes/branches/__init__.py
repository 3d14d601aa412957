"""Branches that data alone decide, and that a graph can go past."""
