"""All makers of values: importing this fills the table ``reconstruct.MAKERS``."""

from dynamo_capture.codegen.makes import (
    callables,
    choices,
    containers,
    iterators,
    modes,
    nested,
    numbers,
    sparse,
    wrappers,
)
from dynamo_capture.codegen.reconstruct import MAKERS

__all__ = [
    "MAKERS",
    "callables",
    "choices",
    "containers",
    "iterators",
    "modes",
    "nested",
    "numbers",
    "sparse",
    "wrappers",
]
