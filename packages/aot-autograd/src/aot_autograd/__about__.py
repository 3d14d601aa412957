"""The version of the aot-autograd distribution."""

__version__ = "0.1.0"
