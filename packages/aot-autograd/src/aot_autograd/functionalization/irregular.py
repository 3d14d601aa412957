"""Operators whose schema does not tell the whole story, each with its own treatment, found by one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch._ops import OpOverload

from aot_autograd.functionalization.calls import Treatment, compute, results, values_of, view
from aot_autograd.functionalization.forms import FORM_OPERATORS
from aot_autograd.functionalization.forward_derivatives import FORWARD_DERIVATIVES
from aot_autograd.functionalization.writes import write_functionally
from aot_autograd.operators.lstm import LSTM_LAYER
from aot_autograd.recording.known_content import answer
from aot_autograd.recording.trace import Trace, TracedTensor
from aot_autograd.recording.values import Value
from aot_autograd.views.memory import conform, read, write
from aot_autograd.views.overlaps import refuse_overlaps
from fx_interface.errors import UnsupportedProgramError
from fx_interface.operator_facts.masks import MASKS, check_masks
from fx_interface.symbols import Relation
from fx_interface.tensor_spec import TensorSpec

aten = torch.ops.aten


def _keep(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """In-place operators that change no value (``detach_``)."""
    return args[0]


def _sizes(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """What a composite operator asks of its input; torch takes integers here, so symbolic sizes are fixed."""
    return list(args[0].stride() if op is aten.stride.default else args[0].shape)


def _clone(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """While an input is adopted, a clone stands for the input itself, so that it is no autograd leaf."""
    adopting = trace.adopting
    if adopting is None:
        made = compute(trace, op, args, kwargs)
        if kwargs.get("memory_format") is torch.contiguous_format:
            _note_copy(trace, args[0], made)
        return made
    made = trace.tensor(adopting, None, adopting.value)
    adopting.base = made
    return made


def _note_copy(trace: Trace, source: Any, made: TracedTensor) -> None:
    """``contiguous`` and ``reshape`` copy or share by strides, which do not matter for sizes 0 and 1."""
    if type(source) is TracedTensor and any(trace.env.is_from_data(n) for n in made.value.spec.sizes):
        trace.unsure_copies |= {id(source.storage_record), id(made.storage_record)}


def _unsafe_view(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """What ``reshape`` makes of its copy: memory that nobody else knows. Of an input it is a view (``kron(out=)``)."""
    if type(args[0]) is TracedTensor and args[0].storage_record.input_index is not None:
        return view(trace, aten.view.default, args, kwargs)
    made = compute(trace, op, args, kwargs)
    if type(args[0]) is TracedTensor and id(args[0].storage_record) in trace.unsure_copies:
        trace.unsure_copies.add(id(made.storage_record))
    return made


def _copy_into(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """``target.copy_(source)``: the target's value is the source's, in the target's form."""
    target, source = args[0], values_of(trace, args[1])
    if type(target) is TracedTensor and not isinstance(source, Value):
        return _fill(trace, op, (target, source), {})
    refuse_overlaps(trace, op, args[1:], [target])
    write(trace, op, target, source)
    return target


def _fill(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """``fill_`` and ``zero_``: a constant of the target's form."""
    target = args[0]
    if type(target) is not TracedTensor:
        write(trace, op, target, None)  # type: ignore[arg-type]  # raises: a constant is never written
    number = values_of(trace, args[1]) if len(args) > 1 else 0
    old = read(trace.recorder, target)
    if isinstance(number, Value):
        write(trace, op, target, trace.recorder.call(aten.copy.default, (old, number)))
        return target
    spec = old.spec
    constant = trace.recorder.call(
        aten.full.default, (list(spec.sizes), number), {"dtype": spec.dtype, "device": spec.device}
    )
    write(trace, op, target, conform(trace.recorder, old, constant))
    return target


def _batch_norm(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """``native_batch_norm`` updates its running statistics in training, which its schema conceals."""
    data, weight, bias, mean, variance, training, momentum, eps = args
    if not training or mean is None:
        return compute(trace, aten.native_batch_norm.default, args, kwargs)
    values = [values_of(trace, arg) for arg in (data, weight, bias, mean, variance)]
    value = trace.recorder.call(
        aten._native_batch_norm_legit_functional.default, (*values, training, momentum, eps)
    )
    items = [trace.recorder.item(value, index) for index in range(5)]
    write(trace, op, mean, items[3])
    write(trace, op, variance, items[4])
    return tuple(trace.fresh(item) for item in items[:3])


def _cudnn_batch_norm(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """cuDNN's batch norm in training as the common one; the reserve that it passes to its backward is empty."""
    data = args[0]
    results = _batch_norm(trace, aten.native_batch_norm.default, args, kwargs)
    device = data.value.spec.device
    reserve = trace.recorder.call(aten.empty.memory_format, ([0],), {"dtype": torch.uint8, "device": device})
    return (*results, trace.fresh(reserve))


def _cudnn_batch_norm_backward(
    trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """The backward that belongs to ``_cudnn_batch_norm``."""
    data, gradient, weight, _, _, save_mean, save_invstd, epsilon, _ = args
    mask = [True, weight is not None, weight is not None]
    given = (gradient, data, weight, None, None, save_mean, save_invstd, True, epsilon, mask)
    return compute(trace, aten.native_batch_norm_backward.default, given, {})


def _batch_norm_backward(
    trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """In training the running statistics are not used, so that they need not be kept."""
    gradient, data, weight, _, _, save_mean, save_invstd, training, epsilon, mask = args
    if training:
        args = (gradient, data, weight, None, None, save_mean, save_invstd, training, epsilon, mask)
    return compute(trace, op, args, kwargs)


def _index(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A mask among the indices stands for the places of its set elements, as torch's kernel has it."""
    data, given = values_of(trace, args[0]), values_of(trace, args[1])
    check_masks(data.spec.sizes, [None if index is None else index.spec for index in given], trace.env)
    indices: list[Any] = []
    for index in given:
        if index is not None and index.spec.dtype in MASKS:
            indices += _places(trace, index)
        else:
            indices.append(index)
    return results(trace, trace.recorder.call(op, (data, indices), kwargs))


def _places(trace: Trace, mask: Value) -> list[Value]:
    """One index tensor for each dimension of a mask."""
    recorder = trace.recorder
    columns = recorder.call(aten.unbind.int, (recorder.call(aten.nonzero.default, (mask,)), 1))
    return [recorder.item(columns, dim) for dim in range(mask.spec.rank)]


def _masked_select(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Of a tensor of the mask's shape: the same as indexing by the mask, whose set elements are counted once."""
    data, mask = (values_of(trace, arg) for arg in args)
    if data.spec.sizes != mask.spec.sizes or mask.spec.rank == 0:
        return compute(trace, op, args, kwargs)
    return results(trace, trace.recorder.call(aten.index.Tensor, (data, _places(trace, mask))))


def _sized_by_data(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Operators whose result's size depends on the content of a tensor."""
    raise UnsupportedProgramError(
        "AOT118", f"the size of {op}'s result depends on the content of a tensor", where=trace.recorder.where
    )


def _bernoulli(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """``bernoulli_`` draws in the order of memory, ``bernoulli`` row by row: draw on dimensions in memory's order."""
    target, probability = args[0], args[1] if len(args) > 1 else 0.5
    generator = {name: values_of(trace, arg) for name, arg in kwargs.items()}
    if type(target) is not TracedTensor or target.value.spec.is_contiguous:
        return write_functionally(trace, op, (target, probability), kwargs)
    recorder, old = trace.recorder, read(trace.recorder, target)
    spec: TensorSpec = old.spec
    order = sorted(range(spec.rank), key=lambda dim: -trace.env.hint(spec.strides[dim]))
    drawn = recorder.call(
        aten.bernoulli.p, (recorder.call(aten.permute.default, (old, order)), probability), generator
    )
    back = [order.index(dim) for dim in range(spec.rank)]
    write(trace, op, target, recorder.call(aten.permute.default, (drawn, back)))
    return target


def _lstm_layer(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Where gradients are on, the layer keeps a workspace for its backward."""
    return compute(trace, LSTM_LAYER if torch.is_grad_enabled() else op, args, kwargs)


def _spectrum(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Who wants eigenvalues or singular values alone computes no vectors where no gradient is wanted. Torch asks for
    them whenever it is given a subclass of tensors: other last bits, in several times the time."""
    data, *rest = args
    if not trace.recorder.spectrum_alone or (torch.is_grad_enabled() and data.requires_grad):
        return compute(trace, op, args, kwargs)
    if op is aten.linalg_eig.default:
        values = compute(trace, aten._linalg_eigvals.default, args, kwargs)
        return values, values
    option, default = _VECTORS[op]
    return compute(trace, op, (data, rest[0] if rest else default), {**kwargs, option: False})


_VECTORS: Final[Mapping[OpOverload, tuple[str, Any]]] = {
    aten._linalg_svd.default: ("compute_uv", False),
    aten._linalg_eigh.default: ("compute_v", "L"),
}
"""The option that asks for vectors, and the default of the argument before it."""


def _polygamma(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """``polygamma_`` takes its tensor first, ``polygamma`` last."""
    target, order = args
    write(trace, op, target, trace.recorder.call(aten.polygamma.default, (order, values_of(trace, target))))
    return target


def _python_number(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A tensor's content as a Python number: an integer is a symbol of its own, unless it is known."""
    data = values_of(trace, args[0])
    known = answer(op, (data,))
    if known is not None:
        return known
    if data.spec.dtype in _INTEGERS:
        value = trace.recorder.call(op, (data,))
        return trace.sizes.to_torch(value.spec.expr)
    refusal = UnsupportedProgramError(
        "AOT106", "the program reads the content of a tensor as a Python number", where=trace.recorder.where
    )
    if data.spec.dtype is not torch.bool:
        raise refusal
    call = trace.recorder.call
    return trace.questions.ask(trace.recorder, lambda: call(aten.reshape.default, (data, [])), refusal)


def _question(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A yes or no about two tensors' content: known where the content is, or the sizes tell."""
    one, other, *rest = values = values_of(trace, args)
    known = answer(op, values) if not kwargs else None
    if known is not None:
        return known
    refusal = UnsupportedProgramError(
        "AOT106", f"{op} returns a number that depends on the data", where=trace.recorder.where
    )
    if one.spec.dtype is not other.spec.dtype:
        raise refusal  # eager raises
    if op is aten.equal.default and not _may_be_equal(trace, one, other):
        return False
    if 0 in one.spec.sizes:
        return True
    parts = aten.eq.Tensor if op is aten.equal.default else aten.isclose.default
    call = trace.recorder.call
    return trace.questions.ask(
        trace.recorder, lambda: call(aten.all.default, (call(parts, (one, other, *rest), kwargs),)), refusal
    )


def _may_be_equal(trace: Trace, one: Value, other: Value) -> bool:
    """Whether two tensors have the same sizes; of others torch asks no more."""
    mine, theirs = one.spec.sizes, other.spec.sizes
    return len(mine) == len(theirs) and all(
        trace.env.decide(Relation("==", a, b)) for a, b in zip(mine, theirs, strict=True)
    )


def _check(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A fact about numbers from data that the program states."""
    condition, message = args
    value = condition.node.value if isinstance(condition, torch.SymInt) else int(bool(condition))
    trace.recorder.check(
        value, message
    )  # as it was stated: from then on it is a fact, which simplifies it away


_INTEGERS: Final = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})


def _to_copy(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Under ``vmap`` a Python number is converted like a tensor."""
    if isinstance(args[0], torch.Tensor):
        return compute(trace, op, args, kwargs)
    made = torch.tensor(args[0]).dtype if kwargs.get("dtype") is None else kwargs["dtype"]
    options = {"dtype": made, "device": kwargs.get("device") or torch.device("cpu")}
    return compute(trace, aten.scalar_tensor.default, args[:1], options)


def _linear_out(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Of a vector the kernel computes one row: it gives ``out=`` that form, with a warning, and other strides."""
    if args[0].dim() == 1:
        raise UnsupportedProgramError("AOT111", f"{op} would change the form of its out=")
    return write_functionally(trace, op, args, kwargs)


IRREGULAR_OPERATORS: Final[dict[OpOverload, Treatment]] = {
    **FORWARD_DERIVATIVES,
    aten._to_copy.default: _to_copy,
    aten.detach_.default: _keep,
    aten.clone.default: _clone,
    aten.size.default: _sizes,
    aten.stride.default: _sizes,
    aten.sym_size.default: _sizes,
    aten.copy_.default: _copy_into,
    aten._unsafe_view.default: _unsafe_view,
    aten.fill_.Scalar: _fill,
    aten.fill_.Tensor: _fill,
    aten.zero_.default: _fill,
    aten.native_batch_norm.default: _batch_norm,
    aten.native_batch_norm_backward.default: _batch_norm_backward,
    aten.cudnn_batch_norm.default: _cudnn_batch_norm,
    aten.cudnn_batch_norm_backward.default: _cudnn_batch_norm_backward,
    aten.index.Tensor: _index,
    aten.bernoulli_.float: _bernoulli,
    aten.linear.out: _linear_out,
    aten._local_scalar_dense.default: _python_number,
    aten._assert_scalar.default: _check,
    **dict.fromkeys((aten.equal.default, aten.allclose.default), _question),
    aten.masked_select.default: _masked_select,
    aten.polygamma_.default: _polygamma,
    aten.mkldnn_rnn_layer.default: _lstm_layer,
    **dict.fromkeys((*_VECTORS, aten.linalg_eig.default), _spectrum),
    **FORM_OPERATORS,
    **dict.fromkeys(
        (aten._pack_padded_sequence.default,),
        _sized_by_data,
    ),
}
