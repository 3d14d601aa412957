"""The version of the fx-interface distribution."""

__version__ = "0.1.0"
