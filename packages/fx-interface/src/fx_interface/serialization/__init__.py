"""Graphs as text: JSON that is read back, a printed form for people, and a hash of what a graph computes."""
