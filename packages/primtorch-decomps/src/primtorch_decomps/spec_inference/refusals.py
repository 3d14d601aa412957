"""What an operator's kernel refuses: a decomposition holds for any dtype, while the kernel takes some.

``gelu`` of integers, ``-`` of booleans and indices that are floats raise in eager. What a kernel takes is written
nowhere but in the kernel, so it is asked: it runs on small tensors, once for each kind of call. On a GPU those that
look at content are not asked: what they refuse ends the process there.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import torch
from torch._ops import OpOverload

from fx_interface.operator_facts.data_errors import may_fail
from fx_interface.symbols import Expr, ShapeEnv
from fx_interface.tensor_spec import SymSpec, TensorSpec

aten = torch.ops.aten

LARGEST_ELEMENTS: Final = 1 << 12
"""The kernel is asked about larger tensors in sizes of at most two. What it then refuses may be the sizes, so that only
an exception about a missing kernel, or about a number, counts."""
_ANY_DTYPE_HOLDS: Final = 127
_RANGES: Final[tuple[torch.iinfo | torch.finfo, ...]] = (
    *(torch.iinfo(dtype) for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)),
    *(torch.finfo(dtype) for dtype in (torch.float16, torch.bfloat16, torch.float32)),
)
_BOUNDS: Final = sorted(bound for info in _RANGES for bound in (info.min, info.max))
"""The least and largest numbers of all dtypes: numbers between the same two are converted alike."""
_OVERFLOW: Final = "without overflow"
"""What a kernel says of a number that its dtype cannot hold, whatever the sizes."""
_NO_ANSWER: Final = (torch.OutOfMemoryError, torch.AcceleratorError)
"""What has to do with the state of the GPU."""
_FILLS: Final = {aten.scalar_tensor.default: 0, aten.full.default: 1}
"""Operators without tensors that convert a number, and which argument that is."""

_OF_TWO: Final[Mapping[OpOverload, tuple[Any, ...]]] = {
    aten.arange.default: (2,),
    aten.arange.start: (0, 2),
    aten.arange.start_step: (0, 2, 1),
    aten.range.default: (0, 1),
    aten.range.step: (0, 1),
    aten.linspace.default: (0, 1, 2),
    aten.logspace.default: (0, 1, 2),
    aten.tril_indices.default: (2, 2),
    aten.triu_indices.default: (2, 2),
    aten.randperm.default: (2,),
}
"""Operators without tensors that have a kernel for some dtypes, and what they make two elements of."""
_OF_SIZES: Final = frozenset(
    {aten.rand.default, aten.randn.default, aten.randint.default, aten.randint.low, aten.normal.float_float}
)
"""As these, with a list of sizes among the arguments."""
_RANDOM: Final = frozenset(
    {
        *(aten.uniform, aten.normal_functional, aten.random, aten.exponential, aten.geometric, aten.cauchy),
        *(aten.log_normal, aten.bernoulli, aten.rand_like, aten.randn_like, aten.randint_like),
    }
)
"""Operators that fill a tensor like one that they are given with random numbers."""
_MADE_BY_KERNELS: Final = frozenset(
    {
        *("workspace", "reserve", "reserveSpace", "reservedSpace", "weight_buf", "dropout_state"),
        *("rng_state", "philox_seed", "philox_offset", "cum_seq_q", "cum_seq_k", "batch_sizes"),
        *("offset2bag", "bag_size", "sobolstate", "meta", "mat1_meta", "packed", "packed_weight"),
        *("packed_weights", "packed_ih", "packed_hh", "col_offsets", "col_offsets_ih", "col_offsets_hh"),
    }
)
"""Names of arguments in schemas whose content another kernel has laid out. A kernel believes it without looking: given
zeros, that of LSTM's backward reads memory that is not its own."""
_INTEGERS: Final = frozenset({torch.int32, torch.int64})
_USUAL: Final = frozenset({torch.float32, torch.float64, *_INTEGERS})
"""Dtypes of numbers and of indices beside them, which most kernels take."""


class Kernels:
    """Which kinds of calls torch's kernels take: each is asked about once, as long as they take it."""

    def __init__(self) -> None:
        self._taken: set[object] = set()

    def check(self, op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], env: ShapeEnv) -> None:
        """Raise what the kernel of ``op`` raises for arguments of this kind, if it does so whatever the tensors hold.

        The kind is the dtypes and ranks of the tensors, and what other arguments are: of a number also which dtypes
        can hold it.
        """
        if _takes_any_dtype(op):
            return
        others = tuple((name, _kind(value)) for name, value in kwargs.items())
        kind = (op, torch.get_default_dtype(), _kind(args), others)
        if kind in self._taken:
            return
        if op in _OF_TWO or op in _OF_SIZES:
            _make_two(op, args, kwargs)
        elif torch.Tag.nondeterministic_seeded in op.tags and op.overloadpacket not in _RANDOM:
            return
        if env.has_data and _is_open((*args, *kwargs.values())):
            return  # perhaps only data tell the size, and any that we choose may be a wrong one
        specs = list(_specs((*args, *kwargs.values())))
        if _can_be_asked(op, args, kwargs, {spec.device.type for spec in specs}) and (
            not _takes(op, args, kwargs, specs, env) or _any_empty(specs, env)
        ):
            return
        if op in _FILLS:
            _convert(args[_FILLS[op]], kwargs.get("dtype"))
        self._taken.add(kind)

    def asks_about(self, op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether kernels are asked about an operator although no decomposition is written for it: those that fill
        tensors, and others about dtypes that many kernels lack. What fails for its content stays in a graph anyway."""
        if op in _OF_TWO or op in _OF_SIZES or op.overloadpacket in _RANDOM:
            return True
        dtypes = {spec.dtype for spec in _specs((*args, *kwargs.values()))}
        rare = bool(dtypes) and (not dtypes <= _USUAL or dtypes <= _INTEGERS)
        return rare and not may_fail(op, args, kwargs)


def _can_be_asked(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], devices: set[str]) -> bool:
    """Whether a call on tensors of these kinds of devices can be tried."""
    if not devices <= {"cpu", "cuda"} or _believes_operands(op):
        return False
    if "cuda" not in devices:
        return bool(devices)
    draws = torch.Tag.nondeterministic_seeded in op.tags
    return not draws and not may_fail(op, args, kwargs) and _has_free_gpu()


@functools.cache
def _believes_operands(op: OpOverload) -> bool:
    """Whether ``op`` takes memory that only the kernel of another operator can fill."""
    return any(argument.name in _MADE_BY_KERNELS for argument in op._schema.arguments)


def _has_free_gpu() -> bool:
    """Whether a GPU is in use by this process, and does not write down what it is given to do."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return False
    return not torch.cuda.is_current_stream_capturing()


def _make_two(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise what the kernel raises that has none for the dtype, or takes no such numbers with it."""
    dtype = kwargs.get("dtype")
    few = _OF_TWO.get(op) or [[2] if isinstance(arg, (list, tuple)) else arg for arg in args]
    device = torch.device(kwargs.get("device") or "cpu")
    on_gpu = device.type == "cuda" and op in _OF_TWO and op is not aten.randperm.default and _has_free_gpu()
    if dtype is None or not (device.type == "cpu" or on_gpu) or _is_open(few):
        return
    with _drawing_nothing(), torch._C._DisableTorchDispatch(), contextlib.suppress(*_NO_ANSWER):
        op(*few, dtype=dtype, device=device)


@contextlib.contextmanager
def _drawing_nothing() -> Iterator[None]:
    """What is drawn in this block from torch's generator does not count."""
    state = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(state)


@functools.cache
def _takes_any_dtype(op: OpOverload) -> bool:
    """Whether ``op`` is a view's kernel, which looks at sizes alone; a composite may look at more (``positive``)."""
    name = op.name()  # type: ignore[no-untyped-call]
    composite = torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
    return op.is_view and not composite


def _convert(number: Any, dtype: torch.dtype | None) -> None:
    """Raise what a kernel raises that fills a tensor of ``dtype`` with a number that the dtype cannot hold."""
    if isinstance(number, float) or (isinstance(number, int) and dtype is not None):
        with torch._C._DisableTorchDispatch():
            torch.scalar_tensor(number, dtype=dtype)


def _kind(value: Any) -> object:
    match value:
        case TensorSpec():
            return value.dtype, value.device, len(value.sizes)
        case list() | tuple():
            return tuple(map(_kind, value))
        case bool() | str() | None | torch.dtype():
            return value
        case int() | float() if abs(value) > _ANY_DTYPE_HOLDS:
            return type(value), bisect.bisect_left(_BOUNDS, value)
    return type(value)


def _takes(
    op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], specs: Sequence[TensorSpec], env: ShapeEnv
) -> bool:
    """Whether the kernel took such a call. False where it cannot be told, since the sizes were others."""
    if torch.Tag.nondeterministic_seeded in op.tags:
        with _drawing_nothing():
            return _takes_now(op, args, _without_generator(kwargs), specs, env)
    return _takes_now(op, args, kwargs, specs, env)


def _without_generator(kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: None if name == "generator" else value for name, value in kwargs.items()}


def _takes_now(
    op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], specs: Sequence[TensorSpec], env: ShapeEnv
) -> bool:
    whole = _are_few(specs, env)
    refusal: Exception | None = None
    try:
        for fill in (torch.zeros, torch.ones):
            try:
                with torch._C._DisableTorchDispatch(), torch.no_grad():
                    op(*_small(tuple(args), env, fill, whole), **_small(dict(kwargs), env, fill, whole))
            except _NO_ANSWER:
                return False
            except (RuntimeError, IndexError, TypeError, ValueError) as error:
                refusal = refusal or error
            else:
                return True
        if refusal is not None and (
            whole or isinstance(refusal, NotImplementedError) or _OVERFLOW in str(refusal)
        ):
            raise refusal
        return False
    finally:
        del refusal  # it has this frame, with all that called it, in its traceback


def _specs(values: Sequence[Any]) -> Iterator[TensorSpec]:
    for value in values:
        if isinstance(value, TensorSpec):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _specs(value)


def _any_empty(specs: Sequence[TensorSpec], env: ShapeEnv) -> bool:
    """Whether a kernel may have looked at no dtype, since there was nothing to do."""
    return any(env.hint(size) == 0 for spec in specs for size in spec.sizes)


def _are_few(specs: Sequence[TensorSpec], env: ShapeEnv) -> bool:
    """Whether the tensors can be made as large as they are."""
    return sum(math.prod(map(env.hint, spec.sizes)) for spec in specs) <= LARGEST_ELEMENTS


def _is_open(value: Any) -> bool:
    """Whether the value is, or has, a size that is not known."""
    match value:
        case TensorSpec():
            return not value.is_static
        case Expr() | SymSpec():
            return True
        case list() | tuple():
            return any(map(_is_open, value))
    return False


def _small(value: Any, env: ShapeEnv, fill: Callable[..., torch.Tensor], whole: bool) -> Any:
    match value:
        case TensorSpec():
            sizes = [env.hint(size) for size in value.sizes]
            few = sizes if whole else [min(size, 2) for size in sizes]
            return fill(few, dtype=value.dtype, device=value.device)
        case SymSpec():
            return env.hint(value.expr)
        case Expr():
            return env.hint(value)
        case list() | tuple():
            return type(value)(_small(item, env, fill, whole) for item in value)
        case dict():
            return {name: _small(item, env, fill, whole) for name, item in value.items()}
    return value
