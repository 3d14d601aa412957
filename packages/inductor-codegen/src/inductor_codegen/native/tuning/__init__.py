"""Choices by measuring on a GPU: tiles of matrix products, and how much of a kernel one program takes."""
