"""The version of the dynamo-capture distribution."""

__version__ = "0.1.0"
