"""Writing operators: the functional variant computes the new value, which then replaces what was written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._ops import OpOverload

from aot_autograd.functionalization.calls import values_of
from aot_autograd.functionalization.out_arguments import give_out, spec_of_target
from aot_autograd.operators.functional_variants import FunctionalVariant, functional_variant
from aot_autograd.recording.trace import Trace
from aot_autograd.recording.values import Value
from aot_autograd.views.memory import write
from aot_autograd.views.overlaps import refuse_overlaps
from fx_interface.errors import UnsupportedProgramError
from fx_interface.operator_facts.data_errors import is_opaque
from fx_interface.tensor_spec import TensorSpec

_OVER_LISTS = "aten::_foreach_"
_KERNELS = ("CPU", "CUDA", "CompositeExplicitAutograd")


def write_functionally(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Record the variant of ``op`` and write its results; returns what ``op`` returns."""
    variant = functional_variant(op)
    if variant.op.namespace == "aot_autograd":
        trace.functional_forms.add(f"{op._schema.name}.{op._overloadname}")
    if len(args) < len(variant.defaults):
        args = (*args, *variant.defaults[len(args) :])
    targets = [_target(op, args, kwargs, key) for key in variant.written]
    passed = [*enumerate(args), *kwargs.items()]
    refuse_overlaps(trace, op, [arg for key, arg in passed if key not in variant.written], targets)
    given = {name: values_of(trace, arg) for name, arg in kwargs.items() if name not in variant.dropped}
    value = trace.recorder.call(
        variant.op,
        [values_of(trace, arg) for position, arg in enumerate(args) if position not in variant.dropped],
        given | _options(op, variant, targets[0]) if variant.makes else given,
    )
    returned = [value] if type(value.spec) is TensorSpec else _items(trace, value)
    if op._schema.name.startswith(_OVER_LISTS):  # each operator on one tensor counts there, by itself
        _count(targets)
    if is_opaque(op) and _counts_by_its_operators(op):
        _count(targets)
    if len(targets) == 1 and isinstance(targets[0], (list, tuple)) and type(value.spec) is list:
        news, targets = returned, list(targets[0])
    else:
        news = returned[variant.plain :]
    for number, (target, new) in enumerate(zip(targets, news, strict=True)):
        if number < len(variant.dropped):
            give_out(trace, op, target, new)
        else:
            _assign(trace, op, target, new)
    if variant.returns_written:
        if not op._schema.returns:
            return None
        return targets[0] if len(op._schema.returns) == 1 else tuple(targets[: len(op._schema.returns)])
    made = tuple(trace.fresh(part) for part in returned[: variant.plain])
    return None if not made else made[0] if len(made) == 1 else made


def _counts_by_its_operators(op: OpOverload) -> bool:
    """Whether an operator of a program has a kernel in Python, whose in-place operators count what it writes, and none
    that counts around it: nothing counts while it is traced."""
    name = op._schema.name + (f".{op._schema.overload_name}" if op._schema.overload_name else "")
    if torch._C._dispatch_has_kernel_for_dispatch_key(name, "ADInplaceOrView"):
        return False
    registered = name.replace("::", "/", 1)
    return any(f"{registered}/{key}" in torch.library._impls for key in _KERNELS)


def _count(written: list[Any]) -> None:
    """One more write of each tensor that is written to, by itself or in a list."""
    flat = [t for part in written for t in (part if isinstance(part, (list, tuple)) else (part,))]
    torch.autograd.graph.increment_version([t for t in flat if t is not None and not t.is_inference()])


def _target(op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any], key: int | str) -> Any:
    """What is written; torch leaves out arguments at the end that are what they are by default."""
    if isinstance(key, str):
        return kwargs.get(key)
    return args[key] if key < len(args) else op._schema.arguments[key].default_value


def _options(op: OpOverload, variant: FunctionalVariant, target: Any) -> dict[str, Any]:
    """The dtype and device of what a tensor made of no other is written to."""
    spec = spec_of_target(op, target)
    if torch.Tag.nondeterministic_seeded in variant.op.tags and not spec.is_contiguous:
        raise UnsupportedProgramError(
            "AOT105", f"{op} draws in the order in which its out= lies in memory: {spec}"
        )
    return {"dtype": spec.dtype, "device": spec.device}


def _items(trace: Trace, value: Value) -> list[Value]:
    return [trace.recorder.item(value, index) for index in range(len(value.spec))]


def _assign(trace: Trace, op: OpOverload, target: Any, new: Value) -> None:
    if isinstance(target, (list, tuple)):
        for part, item in zip(target, _items(trace, new), strict=True):
            _assign(trace, op, part, item)
    elif target is not None:
        if not torch.can_cast(new.spec.dtype, target.dtype):
            raise TypeError(f"the results of {op}, {new.spec.dtype}, cannot be written to {target.dtype}")
        write(trace, op, target, new)
