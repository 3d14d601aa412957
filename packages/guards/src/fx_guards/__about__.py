"""The version of the guards distribution."""

__version__ = "0.1.0"
