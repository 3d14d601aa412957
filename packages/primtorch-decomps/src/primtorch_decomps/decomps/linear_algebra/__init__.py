"""Vectors and diagonals."""
