"""The version of the fxstack distribution."""

__version__ = "0.1.0"
