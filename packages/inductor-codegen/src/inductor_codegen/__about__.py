"""The version of the inductor-codegen distribution."""

__version__ = "0.1.0"
