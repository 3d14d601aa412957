"""Metadata of results: torch's own functions run on tensors without data, whose operators ask shape rules.

A ``MetaTensor`` is a wrapper subclass that carries sizes, strides, dtype and device and nothing else. Running the traced
program's tensor operations on them gives every question about a result (shape, contiguity, whether it requires grad) torch's
own answer, without touching memory. No stock compiler module is loaded: the mode and the class opt out of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from fx_interface.errors import UnsupportedProgramError
from fx_interface.operators import OperatorLibrary
from fx_interface.symbols import ShapeEnv
from fx_interface.sym_nodes import SizeTable, from_torch
from fx_interface.tensor_spec import TensorSpec
from torch.utils._python_dispatch import TorchDispatchMode

from dynamo_capture.graph_breaks import GraphBreak


class MetaTensor(torch.Tensor):
    """A tensor without data. ``owner`` is the tracing state that answers its operators."""

    owner: MetadataTrace

    @staticmethod
    def make(spec: TensorSpec, owner: MetadataTrace, requires_grad: bool = False) -> MetaTensor:
        """A leaf with the given metadata."""
        made: MetaTensor = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            MetaTensor,
            tuple(owner.sizes.to_torch(n) for n in spec.sizes),
            strides=tuple(owner.sizes.to_torch(n) for n in spec.strides),
            dtype=spec.dtype,
            device=spec.device,
            requires_grad=requires_grad,
        )
        made.owner = owner
        return made

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for value in _flatten((args, kwargs or {})):
            if isinstance(value, MetaTensor):
                return value.owner.dispatch(func, args, kwargs or {})
        raise AssertionError(func)

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"MetaTensor({tuple(self.shape)}, {self.dtype})"


def _flatten(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _flatten(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _flatten(item)
    else:
        yield value


class MetadataTrace(TorchDispatchMode):
    """The mode that is active while a program is traced; catches factories too."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __init__(self, operators: OperatorLibrary, env: ShapeEnv) -> None:
        super().__init__()
        self.operators = operators
        self.env = env
        self.sizes = SizeTable(env)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.dispatch(func, args, kwargs or {})

    def spec(self, tensor: torch.Tensor) -> TensorSpec:
        """A tensor's metadata, sizes in our algebra."""
        return TensorSpec(
            tuple(from_torch(n) for n in tensor.shape),
            tuple(from_torch(n) for n in tensor.stride()),
            tensor.dtype,
            tensor.device,
        )

    def dispatch(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Answer one ATen call."""
        name = func._schema.name
        if name in _DATA_DEPENDENT:
            raise GraphBreak("data-dependent", f"{name.removeprefix('aten::')} needs a tensor's values")
        if name == "aten::_fused_sdp_choice":
            return _sdp_choice(self, func, args, kwargs)
        if name == "aten::set_.source_Tensor":
            raise GraphBreak("operator", "a tensor's storage is replaced")
        if name == "aten::detach":
            return MetaTensor.make(self.spec(args[0]), self)
        if func._schema.is_mutable:
            return self._mutation(func, args, kwargs)
        given = [self._to_spec(value) for value in args]
        named = {key: self._to_spec(value) for key, value in kwargs.items()}
        try:
            result = self.operators.infer(func, given, named, self.env)
        except UnsupportedProgramError as error:
            raise GraphBreak("operator", str(error)) from error
        return self._from_spec(result)

    def _mutation(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """An in-place operator returns what it wrote to; its metadata does not change."""
        written = [
            (args[position] if position < len(args) else kwargs.get(argument.name))
            for position, argument in enumerate(func._schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        returns = func._schema.returns
        aliased = [r for r in returns if r.alias_info is not None and r.alias_info.is_write]
        if len(aliased) == len(returns):
            if not returns:
                return None
            return written[0] if len(returns) == 1 else tuple(written[: len(returns)])
        given = [self._to_spec(value) for value in args]
        named = {key: self._to_spec(value) for key, value in kwargs.items()}
        return self._from_spec(self.operators.infer(func, given, named, self.env))

    def _to_spec(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.spec(value)
        if isinstance(value, torch.SymInt):
            return from_torch(value)
        if isinstance(value, (list, tuple)):
            return [self._to_spec(item) for item in value]
        return value

    def _from_spec(self, spec: Any) -> Any:
        if isinstance(spec, TensorSpec):
            return MetaTensor.make(spec, self)
        if isinstance(spec, (tuple, list)):
            return type(spec)(self._from_spec(item) for item in spec)
        return spec


_DATA_DEPENDENT = frozenset(
    {"aten::_local_scalar_dense", "aten::item", "aten::is_nonzero", "aten::equal", "aten::nonzero", "aten::_unique2"}
)


def _sdp_choice(trace: MetadataTrace, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Ask torch with real, empty tensors of the same metadata, so that the kernel is the one that eager takes."""

    def real(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        spec = trace.spec(value)
        sizes = [trace.env.hint(n) for n in spec.sizes]
        strides = [trace.env.hint(n) for n in spec.strides]
        made = torch.empty_strided(sizes, strides, dtype=spec.dtype, device=spec.device)
        return made.requires_grad_(value.requires_grad)

    with torch._C._DisableTorchDispatch():  # type: ignore[attr-defined]
        return func(*[real(a) for a in args], **{k: real(v) for k, v in kwargs.items()})


class RunKernels:
    """An ``OperatorLibrary`` for capture used alone: runs the operator on zeros of the hinted sizes, once per question."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def infer(self, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], env: ShapeEnv) -> Any:
        """The result's spec; sizes in play are specialised."""
        key = (op, repr(args), repr(kwargs))
        if key not in self._known:
            self._known[key] = self._run(op, args, kwargs, env)
        return self._known[key]

    def _run(self, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], env: ShapeEnv) -> Any:
        def real(value: Any) -> Any:
            if isinstance(value, TensorSpec):
                sizes = [env.specialize(n) for n in value.sizes]
                strides = [env.specialize(n) for n in value.strides]
                return torch.empty_strided(sizes, strides, dtype=value.dtype, device=value.device).zero_()
            if isinstance(value, list):
                return [real(item) for item in value]
            return value

        def spec(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return TensorSpec(tuple(value.shape), tuple(value.stride()), value.dtype, value.device)
            if isinstance(value, (tuple, list)):
                return type(value)(spec(item) for item in value)
            return value

        with torch._C._DisableTorchDispatch(), torch.random.fork_rng(), torch.no_grad():  # type: ignore[attr-defined]
            return spec(op(*[real(a) for a in args], **{k: real(v) for k, v in kwargs.items()}))


Inference = Callable[[Any], Any]
