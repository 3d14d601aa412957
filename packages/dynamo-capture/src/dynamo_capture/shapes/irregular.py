"""Operators whose result's metadata is not a function of the argument specs alone, or that read a tensor's content."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch._ops import OpOverload

from dynamo_capture.foundation.errors import OUT_ARGUMENT, DataDependent
from dynamo_capture.shapes import forward_derivatives
from dynamo_capture.shapes.inferring import Inferring
from fx_interface.errors import UnsupportedProgramError
from fx_interface.operator_facts.masks import MASKS, check_masks
from fx_interface.symbols import Expr, substitute
from fx_interface.tensor_spec import TensorSpec, contiguous_strides

aten = torch.ops.aten
Rule = Callable[["Inferring", OpOverload, tuple[Any, ...], Mapping[str, Any]], Any]


def _reads_content(
    inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    tensor = args[0]
    if func is aten.equal.default or getattr(tensor, "content", None) is None:
        raise DataDependent(str(func), None if func is aten.equal.default else tensor)
    inference.read.append(tensor)
    content = tensor.content
    return content.item() if isinstance(content, torch.Tensor) else content


def _sized_by_content(
    inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    raise DataDependent(f"{func}, whose result's size depends on it")


def _counting(
    inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """``nonzero`` and what selects by a mask: of one tensor the same number each time, as long as it is not changed."""
    mask = args[-1]
    follow(inference, func)
    found = inference.infer(func, args, kwargs)
    if func is aten.masked_select.default and args[0].spec.sizes != mask.spec.sizes:
        return found
    return _with_count(inference, mask, found)


def _with_count(inference: Inferring, mask: Any, found: Any) -> Any:
    made = found.spec.sizes[0]
    count = inference.counts.setdefault(mask if mask.origin is None else mask.origin, made)
    return found if count is made else inference.results(aten.alias.default, renamed(found.spec, made, count))


def renamed(spec: TensorSpec, old: Expr, new: Expr) -> TensorSpec:
    """``spec`` with one size for another."""
    atom = old.as_symbol
    assert atom is not None
    sizes, strides = (tuple(substitute(n, {atom: new}) for n in part) for part in (spec.sizes, spec.strides))
    return replace(spec, sizes=sizes, strides=strides)


def _index(inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A mask among the indices stands for the places of its elements that are set."""
    check_masks(inference.plain(args[0]).sizes, inference.plain(args[1]), inference.env)
    indices: list[Any] = []
    for item in args[1]:
        if isinstance(item, torch.Tensor) and item.dtype in MASKS:
            rows = _counting(inference, aten.nonzero.default, (item,), {}).spec
            column = TensorSpec(rows.sizes[:1], rows.strides[:1], rows.dtype, rows.device)
            indices += [inference.results(func, column) for _ in range(item.dim())]
        else:
            indices.append(item)
    return inference.infer(func, (args[0], indices), kwargs)


def _sized_by_data(
    inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    follow(inference, func)
    return NotImplemented


def follow(inference: Inferring, func: OpOverload) -> None:
    """The result has a size that only data can tell."""
    if not inference.follows_data:
        raise DataDependent(f"the shape of {func}'s result depends on the data")
    inference.by_data = True


def _changes_metadata(
    inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    raise UnsupportedProgramError(
        OUT_ARGUMENT, f"{func} changes the shape or the memory of a tensor in place"
    )


def _same(inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    return args[0]


def _copied(inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A tensor on the meta device has no data that could be copied anywhere else."""
    source, target = args[1], args[0].device
    _check_has_data(source, target)
    return NotImplemented


def _converted(
    inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """The same; under ``vmap`` a Python number is converted like a tensor."""
    (source,) = args
    if isinstance(source, torch.Tensor):
        _check_has_data(source, kwargs.get("device") or source.device)
        return NotImplemented
    made = torch.tensor(source).dtype if kwargs.get("dtype") is None else kwargs["dtype"]
    options = {"dtype": made, "device": kwargs.get("device") or torch.device("cpu")}
    return inference.infer(aten.scalar_tensor.default, (source,), options)


def _check_has_data(source: Any, target: torch.device) -> None:
    if isinstance(source, torch.Tensor) and source.is_meta and target.type != "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")


def _batch_norm(
    inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Returns three new tensors and updates its running statistics, whose metadata stay."""
    return inference.infer(aten.native_batch_norm.default, args, kwargs)


def _sdp_choice(
    inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """torch's own choice, asked on tensors with one element of memory."""

    def small(arg: Any) -> Any:
        spec = getattr(arg, "spec", None)
        if spec is None:
            return arg
        sizes = [inference.env.hint(n) for n in spec.sizes]
        strides = [inference.env.hint(n) for n in spec.strides]
        extent = 1 + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
        storage = torch.empty(extent, dtype=spec.dtype, device=spec.device)
        return storage.as_strided(sizes, strides).requires_grad_(arg.requires_grad)

    with torch._C._DisableTorchDispatch(), torch.enable_grad():
        return func(*map(small, args), **{k: small(v) for k, v in kwargs.items()})


_VIEWS_IN_PLACE: dict[OpOverload, OpOverload] = {
    aten.t_.default: aten.t.default,
    aten.transpose_.default: aten.transpose.int,
    aten.swapdims_.default: aten.transpose.int,
    aten.swapaxes_.default: aten.transpose.int,
    aten.squeeze_.default: aten.squeeze.default,
    aten.squeeze_.dim: aten.squeeze.dim,
    aten.squeeze_.dims: aten.squeeze.dims,
    aten.unsqueeze_.default: aten.unsqueeze.default,
    aten.as_strided_.default: aten.as_strided.default,
}
"""Operators by which a tensor becomes a view of itself, and the operators that give that view."""


def _becomes_its_view(
    inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """``x.unsqueeze_(0)``: the same tensor with other sizes and strides."""
    return _take_form(inference, args[0], inference.infer(_VIEWS_IN_PLACE[func], args, kwargs).spec)


def _take_form(inference: Inferring, tensor: Any, spec: TensorSpec) -> Any:
    sizes, strides = (
        [inference.sizes.to_torch(n) for n in numbers] for numbers in (spec.sizes, spec.strides)
    )
    with torch._C._DisableTorchDispatch():
        aten.as_strided_.default(tensor, sizes, strides)
    tensor.spec = spec
    return tensor


def _resized(inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """``x.resize_(sizes)`` where ``x`` has that many elements, without gaps: its memory in other sizes."""
    tensor, template = args[0], args[1]
    wanted = template.shape if isinstance(template, torch.Tensor) else template
    sizes = tuple(
        inference.env.simplify(n.node.value) if isinstance(n, torch.SymInt) else int(n) for n in wanted
    )
    spec: TensorSpec = tensor.spec
    memory_format = args[2] if len(args) > 2 else kwargs.get("memory_format")
    if sizes == spec.sizes and memory_format is None:
        return tensor
    made = TensorSpec(sizes, contiguous_strides(sizes), spec.dtype, spec.device)
    if memory_format not in (None, torch.contiguous_format) or not _has_room(inference, spec, made):
        return _changes_metadata(inference, func, args, kwargs)
    return _take_form(inference, tensor, made)


def _has_room(inference: Inferring, spec: TensorSpec, made: TensorSpec) -> bool:
    """Whether a tensor without gaps has the elements; where that is open the sizes are fixed."""
    env = inference.env
    if spec.is_contiguous and env.simplify(spec.numel) == env.simplify(made.numel):
        return True
    sizes, strides = map(env.specialize, spec.sizes), map(env.specialize, spec.strides)
    extents = list(zip(sizes, strides, strict=True))
    numel = math.prod(size for size, _ in extents)
    reach = 1 + sum((size - 1) * stride for size, stride in extents) if numel else 0
    return math.prod(map(env.specialize, made.sizes)) <= numel == reach


def _as_numbers(
    inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """A composite operator asks for plain sizes or strides, as ``fill_diagonal_`` does: they are fixed."""
    spec: TensorSpec = args[0].spec
    numbers = spec.sizes if func is aten.size.default else spec.strides
    return [inference.env.specialize(n) for n in numbers]


def _by_operator(*rows: tuple[Iterable[OpOverload], Rule]) -> dict[OpOverload, Rule]:
    """A table of rules; two for one operator are an error, as the second would take the place of the first."""
    found: dict[OpOverload, Rule] = {}
    for operators, rule in rows:
        for operator in operators:
            if operator in found:
                raise ValueError(f"{operator} has two rules: {found[operator].__name__}, {rule.__name__}")
            found[operator] = rule
    return found


IRREGULAR: dict[OpOverload, Rule] = _by_operator(
    ((aten.is_same_size.default,), forward_derivatives.same_size),
    ((aten._has_same_storage_numel.default,), forward_derivatives.same_extent),
    ((aten._new_zeros_with_same_feature_meta.default,), forward_derivatives.zeros_like),
    ((aten._efficientzerotensor.default,), forward_derivatives.zeros),
    ((aten.size.default, aten.stride.default), _as_numbers),
    (
        (aten._local_scalar_dense.default, aten.equal.default, aten.is_nonzero.default, aten.item.default),
        _reads_content,
    ),
    (
        (
            aten.set_.default, aten.set_.source_Storage,
            aten.set_.source_Storage_storage_offset, aten.set_.source_Tensor,
        ),
        _changes_metadata,
    ),
    ((aten._pack_padded_sequence.default,), _sized_by_content),
    (_VIEWS_IN_PLACE, _becomes_its_view),
    ((aten.resize_.default, aten.resize_as_.default), _resized),
    ((aten._native_batch_norm_legit.default,), _batch_norm),
    ((aten.detach_.default,), _same),
    ((aten._fused_sdp_choice.default,), _sdp_choice),
    ((aten.index.Tensor,), _index),
    ((aten._to_copy.default,), _converted),
    ((aten.copy_.default,), _copied),
    ((aten.nonzero.default, aten.argwhere.default, aten.masked_select.default), _counting),
    (
        (
            aten._unique.default, aten._unique2.default, aten.unique_consecutive.default, aten.unique_dim.default,
            aten.unique_dim_consecutive.default, aten.bincount.default, aten.repeat_interleave.Tensor,
            aten._ctc_loss.Tensor,
        ),
        _sized_by_data,
    ),
)  # fmt: skip


LEAVE_OPEN = frozenset(
    {
        aten.empty.memory_format, aten.empty_like.default, aten.empty_strided.default,
        aten.new_empty.default, aten.new_empty_strided.default, aten.empty_permuted.default,
    }
)  # fmt: skip
"""Operators that make memory without writing to it."""


_UNDECLARED = frozenset(
    {aten.native_batch_norm.default, aten.cudnn_batch_norm.default, aten.miopen_batch_norm.default}
)
"""Operators that update running statistics, their fourth argument, in training; their schemas do not say so."""


def writes(func: OpOverload, args: tuple[Any, ...]) -> bool:
    """Whether an operator changes what it is given."""
    return func._schema.is_mutable or (func in _UNDECLARED and args[3] is not None and bool(args[5]))


def written_by(func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
    """The tensors that a writing operator changes."""
    if func in _UNDECLARED:
        return [tensor for tensor in args[3:5] if tensor is not None]
    found: list[Any] = []
    for index, declared in enumerate(func._schema.arguments):
        if declared.alias_info is not None and declared.alias_info.is_write:
            given = args[index] if index < len(args) else kwargs.get(declared.name)
            found += given if isinstance(given, (list, tuple)) else [given]
    return [tensor for tensor in found if isinstance(tensor, torch.Tensor)]


def written_argument(
    func: OpOverload, returned: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """The argument that a result of a writing operator is, by its schema; None for a result of its own."""
    if returned.alias_info is None:
        return None
    for index, declared in enumerate(func._schema.arguments):
        info = declared.alias_info
        if info is not None and info.before_set & returned.alias_info.before_set:
            return args[index] if index < len(args) else kwargs.get(declared.name)
    return None


@functools.cache
def is_view(func: OpOverload) -> bool:
    """Whether an operator's result shows the memory of its first argument."""
    returned = func._schema.returns
    return bool(returned) and returned[0].alias_info is not None and not func._schema.is_mutable
