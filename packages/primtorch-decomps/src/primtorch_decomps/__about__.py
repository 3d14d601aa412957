"""The version of the primtorch-decomps distribution."""

__version__ = "0.1.0"
