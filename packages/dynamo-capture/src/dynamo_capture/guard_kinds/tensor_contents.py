"""The guard on what small tensors hold, of which the trace has read the content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import torch

from fx_guards import GuardRecord, guard_kind
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import Source


@guard_kind
@dataclass(frozen=True, slots=True)
class TensorContents(GuardRecord):
    """Small tensors that hold what they held.

    The first ``len(contents)`` sources lead to them, the others to tensors that the code writes to. The former own
    their memory and share it with none of the others: else their content could change before the code gets there.
    """

    kind: ClassVar[str] = "tensor_contents"
    takes_tuple: ClassVar[bool] = True
    others: tuple[Source, ...]
    contents: tuple[Any, ...]

    @property
    def sources(self) -> tuple[Source, ...]:
        return (self.source, *self.others)

    def holds(self, value: Any) -> bool:
        with torch._C.DisableTorchFunction():  # reading is no operation of the program
            return self._holds(value)

    def _holds(self, value: Any) -> bool:
        count = len(self.contents)
        memory = set()
        for tensor, expected in zip(value[:count], self.contents, strict=True):
            if not isinstance(tensor, torch.Tensor) or _frozen(tensor.tolist()) != expected:
                return False
            storage = tensor.untyped_storage()
            if storage.nbytes() != tensor.numel() * tensor.element_size():
                return False
            memory.add(storage.data_ptr())
        return memory.isdisjoint(
            tensor.untyped_storage().data_ptr()
            for tensor in value[count:]
            if isinstance(tensor, torch.Tensor)
        )

    def explain(self, value: Any) -> str:
        with torch._C.DisableTorchFunction():
            return self._explained(value)

    def _explained(self, value: Any) -> str:
        for source, tensor, expected in zip(self.sources, value, self.contents, strict=False):
            if not isinstance(tensor, torch.Tensor):
                return f"expected {source} to be a tensor"
            if _frozen(tensor.tolist()) != expected:
                return f"expected {source} to hold {expected!r}, got {_frozen(tensor.tolist())!r}"
        return "expected tensors that own their memory, and that nothing else writes to"


def tensor_contents(contents: Mapping[Source, Any], written: Iterable[Source]) -> TensorContents:
    """The guard of what was read; ``written``: tensors that the code writes to."""
    read = list(contents)
    others = [source for source in written if source not in contents]
    return TensorContents(read[0], (*read[1:], *others), _frozen(list(contents.values())))


def _frozen(content: Any) -> Any:
    """Lists of numbers as tuples: a guard is compared and hashed. Floats by their bits: 0 is not -0, NaN is itself."""
    if isinstance(content, float):
        return content.hex()
    return tuple(map(_frozen, content)) if isinstance(content, list) else content
