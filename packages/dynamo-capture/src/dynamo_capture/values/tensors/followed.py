"""The results of a stretch with the history that autograd gives them where the graph has run."""

from __future__ import annotations

from typing import Any

from dynamo_capture.values.base import Context, Value
from dynamo_capture.values.tensors.tensor import TensorValue


class FollowedResults(Value):
    """A tuple that is made once. ``results`` are wrappers without history, or None where the carrier shows a plain
    tensor; ``carriers`` lead into the graph; ``inputs`` are what the stretch was given."""

    __slots__ = ("carriers", "ends", "inputs", "results")
    python_class = tuple

    def __init__(
        self, ends: Any, results: list[Value], carriers: list[TensorValue], inputs: list[Value]
    ) -> None:
        self.ends = ends
        self.results = results
        self.carriers = carriers
        self.inputs = inputs

    def children(self, tx: Context) -> list[Value]:
        return [*self.results, *self.carriers, *self.inputs]
