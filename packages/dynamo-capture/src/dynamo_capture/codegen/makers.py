"""All makers of values: importing this fills the table ``reconstruct.MAKERS``."""

from dynamo_capture.codegen import (
    made_callables,
    made_containers,
    made_iterators,
    made_modes,
    made_numbers,
    made_wrappers,
)
from dynamo_capture.codegen.reconstruct import MAKERS

__all__ = [
    "MAKERS", "made_callables", "made_containers", "made_iterators", "made_modes", "made_numbers", "made_wrappers",
]  # fmt: skip
