"""Decompositions by family. A module declares its family's operators when it is loaded (``index``)."""
