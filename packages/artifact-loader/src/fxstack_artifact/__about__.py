"""The version of the fxstack-artifact distribution."""

__version__ = "0.1.0"
