"""Existing tensors as inputs of the graph."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

import torch

import fx_guards
from dynamo_capture.foundation.break_kinds import UNUSUAL_TENSOR
from dynamo_capture.foundation.class_members import module_of
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.libraries.parameters import is_parameter, is_uninitialized
from dynamo_capture.guard_kinds.interpreters.function_transforms import WrappedFor
from dynamo_capture.semantics.tensors.attributes import check_reads, redefines
from dynamo_capture.semantics.tensors.content import small_buffers
from dynamo_capture.semantics.tensors.torchs_members import overrides
from dynamo_capture.sources.sources import PlainTensorSource
from dynamo_capture.tables import first_answer
from dynamo_capture.values import TensorMeta, TensorValue
from dynamo_capture.values.base import Context
from fx_interface.signature import InputKind
from fx_interface.source import ItemSource, Source
from fx_interface.tensor_spec import TensorSpec, with_grad
from fx_interface.torch_internals.function_levels import is_wrapped, level_of
from fx_interface.torch_internals.tensor_extents import torchs_own

_NOT_IN_NAMES = re.compile(r"\W")
_LONGEST_NAME = 12


class _Names:
    """Readable names of placeholders: ``self.encoder.layer[0].weight`` is ``self_encoder_layer_0_weight``."""

    def __init__(self) -> None:
        self._parts: dict[
            int, tuple[Source, tuple[str, ...]]
        ] = {}  # the sources are held: their ids stay theirs

    def of(self, source: Source) -> str:
        """The name of what is read from a source."""
        text = _NOT_IN_NAMES.sub("_", "_".join(self._parts_of(source))).strip("_") or "x"
        return text if not text[0].isdigit() else f"x_{text}"

    def _parts_of(self, source: Source) -> tuple[str, ...]:
        """The last steps of a path that say something to a reader."""
        known = self._parts.get(id(source))
        if known is not None:
            return known[1]
        parts = () if source.base is None else self._parts_of(source.base)
        step = getattr(source, "name", None)
        if step is None:
            step = getattr(source, "key", None)
            handed_on = getattr(source.base, "handed_on", None)
            name = None if handed_on is None else handed_on.name_of(step)
            parts, step = (parts, step) if name is None else ((), name)
        if isinstance(step, (str, int)) and step not in ("_modules", "_parameters", "_buffers"):
            parts = (*parts[1 - _LONGEST_NAME :], str(step))
        self._parts[id(source)] = (source, parts)
        return parts


class Inputs:
    """The tensors that one trace was given."""

    input_kinds: ClassVar[tuple[Callable[[Context, Any, Source], TensorValue | None], ...]]
    """Who is asked about a tensor of a class that is not torch's plain ones, in order."""
    unusual_kinds: ClassVar[tuple[Callable[[Context, Any, Source], TensorValue | None], ...]]
    """Who is asked about a tensor of a plain class that is not strided memory, in order."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx
        self.inputs: list[TensorValue] = []
        self._names = _Names()

    def _of_subclass(self, real: torch.Tensor, source: Source) -> TensorValue:
        """A tensor of a class with its own ``__torch_function__`` is passed as what it is to torch."""
        kind = type(real)
        if self._tx.levels:
            raise GraphBreak(
                UNUSUAL_TENSOR, f"{source}, a {kind.__name__}, is used in a transform of torch.func"
            )
        check_reads(self._tx, kind)
        made = first_answer(self.input_kinds, self._tx, real, source)
        if made is not None:
            self.inputs.append(made)
            return made
        is_torchs = is_of_torch(kind)  # uninitialized parameters, fake tensors and so on
        layout = torchs_own(real, "layout")
        if is_torchs or is_uninitialized(real) or layout is not torch.strided:
            raise GraphBreak(
                UNUSUAL_TENSOR, f"{source} is a tensor of the type {kind.__name__} and layout {layout}"
            )
        self._tx.attributes.in_class(kind, "__torch_function__")
        if not overrides(kind) and not redefines(kind):
            return self._input(real, source, source, real)
        passed = PlainTensorSource(source)
        return self._input(real, source, passed, passed.step(real))

    def input(self, real: torch.Tensor, source: Source) -> TensorValue:
        """An existing tensor as an input of the graph."""
        tx, kind = self._tx, type(real)
        if torch._is_functional_tensor(real) and not tx.levels:
            raise GraphBreak(UNUSUAL_TENSOR, f"{source} is a tensor that torch's functionalization wraps")
        if kind not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
            with torch._C.DisableTorchFunctionSubclass():
                return self._of_subclass(real, source)
        if real.layout is not torch.strided:
            made = first_answer(self.unusual_kinds, tx, real, source)
            if made is not None:
                return made
            raise GraphBreak(
                UNUSUAL_TENSOR, f"{source} is a tensor of the type {kind.__name__} and layout {real.layout}"
            )
        if real.is_nested:
            raise GraphBreak(UNUSUAL_TENSOR, f"{source} is a nested tensor without a layout of rows")
        return self._input(real, source, source, real)

    def _input(self, real: torch.Tensor, source: Source, passed: Source, plain: torch.Tensor) -> TensorValue:
        """``passed`` leads to ``plain``, what the graph takes for ``real``."""
        tx, kind = self._tx, type(real)
        if plain.is_quantized or (is_wrapped(real) and not tx.levels):
            raise GraphBreak(UNUSUAL_TENSOR, f"{source} is a wrapped or quantized tensor")
        if plain._is_zerotensor():
            raise GraphBreak(UNUSUAL_TENSOR, f"{source} is a tensor of zeros without memory")
        sizes, strides, dynamic = tx.policy.sizes_of(tx, real, source)
        spec, requires_grad = TensorSpec(sizes, strides, plain.dtype, plain.device), plain.requires_grad
        is_leaf = _is_leaf(real, source) if plain is real else torchs_own(real, "is_leaf")
        meta = TensorMeta.of(spec, requires_grad, is_leaf, kind, plain.is_inference())
        tx.guards.add(
            fx_guards.tensor_match(
                source, real, dynamic_sizes=dynamic[0], dynamic_strides=dynamic[1], where=tx.where()
            )
        )
        if tx.levels:
            tx.guards.add(WrappedFor(source, max(level_of(plain), 0)))
        node = tx.output.placeholder(
            self._names.of(source), _kind_of(real, source), with_grad(spec, requires_grad), passed, plain
        )
        made = TensorValue(node, meta, source, real)
        if plain is real:
            small_buffers.read(tx, made, real, source)
        self.inputs.append(made)
        return made


def _is_leaf(real: torch.Tensor, source: Source) -> bool:
    try:
        return real.is_leaf
    except RuntimeError as error:  # a view that ``unbind`` gave, whose base was written to since
        raise GraphBreak(UNUSUAL_TENSOR, f"{source} is a view that autograd refuses: {error}") from None


_MACHINERY = ("_subclasses", "distributed", "masked", "nested", "nn", "sparse", "utils")
"""Packages of torch's whose classes of tensors are not traced into: what they do is C++'s, or other processes'."""


def is_of_torch(kind: type) -> bool:
    """Whether a class of tensors is of these packages; others are taken for what they show to a program."""
    root, *inner = module_of(kind).split(".")
    return root == "torch" and (not inner or inner[0] in _MACHINERY)


def _kind_of(real: torch.Tensor, source: Source) -> InputKind:
    if is_parameter(real):
        return InputKind.PARAMETER
    if (
        isinstance(source, ItemSource)
        and isinstance(source.parent, ItemSource)
        and source.parent.key == "_buffers"
    ):
        return InputKind.BUFFER
    return InputKind.USER
