"""All makers of values: importing this fills the table ``reconstruct.MAKERS``."""

from dynamo_capture.codegen.makes import callables, containers, iterators, modes, nested, numbers, wrappers
from dynamo_capture.codegen.reconstruct import MAKERS

__all__ = ["MAKERS", "callables", "containers", "iterators", "modes", "nested", "numbers", "wrappers"]
