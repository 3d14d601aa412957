"""Code that goes on where a graph has ended."""
