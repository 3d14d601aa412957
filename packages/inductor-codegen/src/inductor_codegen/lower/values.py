"""Lowered values: what a graph's nodes become before any fusion is decided.

Shape-only primitives leave no value behind: they are views on an ``Operand``. What remains has memory (an
input, a library call's result) or is a computation whose element at any index can be written down
(``Computed``).
"""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

import torch
from torch._ops import OpOverload

from fx_interface.errors import UserLocation
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import IntLike
from inductor_codegen.ir.program import Born, Buffer, ProgramInput
from inductor_codegen.lower.views import Layout, Sizes, View

STRIDED_DTYPES = frozenset(
    getattr(torch, name)
    for name in [
        "float64",
        "float32",
        "float16",
        "bfloat16",
        "int64",
        "int32",
        "int16",
        "int8",
        "uint8",
        "bool",
    ]
)
"""What kernels can load, compute with and store."""


@dataclass(frozen=True, slots=True)
class Operand:
    """The value number ``source`` seen through ``views``, the first of which is nearest to the source."""

    source: int
    views: tuple[View, ...]
    sizes: Sizes
    dtype: torch.dtype


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar argument: a Python number, or an integer expression over sizes."""

    value: bool | float | IntLike


@dataclass(frozen=True, slots=True)
class RuntimeFloat:
    """A Python float that is an input of the graph."""

    name: str


Argument: TypeAlias = Operand | Number | RuntimeFloat


@dataclass(frozen=True, slots=True)
class Pointwise:
    """A pointwise primitive on operands of the value's own sizes; numbers and operands are converted to
    ``compute``.
    """

    op: str
    args: tuple[Argument, ...]
    compute: torch.dtype


@dataclass(frozen=True, slots=True)
class Fill:
    """One number everywhere."""

    value: Number | RuntimeFloat


@dataclass(frozen=True, slots=True)
class Iota:
    """``start + i * step``."""

    start: IntLike
    step: IntLike


@dataclass(frozen=True, slots=True)
class Pad:
    """The operand with ``low[k]`` elements of ``value`` before and some after it in dimension k."""

    operand: Operand
    low: Sizes
    value: bool | float


@dataclass(frozen=True, slots=True)
class Cat:
    """Operands one after the other along ``dim``; ``starts[k]`` is where operand k begins."""

    operands: tuple[Operand, ...]
    starts: Sizes
    dim: int


@dataclass(frozen=True, slots=True)
class Gather:
    """``operand`` at its own position, except in dimensions with an index: there ``indices[k]`` says where.
    Negative ones count from the end if it ``wraps``, else they are out of range.

    ``indices[k]`` is None, or an integer operand whose dimensions are ``index_dims`` of the result. ``rest``
    gives for each operand dimension without an index the result's dimension that runs along it.
    """

    operand: Operand
    indices: tuple[Operand | None, ...]
    index_dims: tuple[int, ...]
    rest: tuple[int | None, ...]
    wraps: bool


@dataclass(frozen=True, slots=True)
class Reduction:
    """``kind`` over the dimensions ``dims`` of the operand, which the result lacks."""

    kind: str
    operand: Operand
    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """Along one dimension: ``length`` taps that stand ``gap`` elements apart, the first of them ``pad`` elements before
    the element ``step * i`` for point i."""

    length: int
    step: int
    pad: int
    gap: int


@dataclass(frozen=True, slots=True)
class Depthwise:
    """A convolution of each channel of ``image`` [N, C, H, W] with its own window of ``weight`` [C, 1, KH, KW], plus
    ``bias`` [C]; what lies outside of the image counts as zero. Summed in float32.

    ``transposed``: the gradient of such a convolution's image, computed from that of its result. Image and weight are
    read in memory.
    """

    image: Operand
    weight: Operand
    bias: Operand | None
    windows: tuple[Window, Window]
    transposed: bool


Formula: TypeAlias = Pointwise | Fill | Iota | Pad | Cat | Gather | Reduction | Depthwise


@dataclass(frozen=True, slots=True)
class Placed:
    """The strided view ``layout`` of value ``source`` in memory: a library call's argument or an output."""

    source: int
    layout: Layout


@dataclass(frozen=True, slots=True)
class ExternalCall:
    """A library call. Tensors inside ``args`` and ``kwargs`` are ``Placed``; ``results`` are value numbers,
    None where unused.

    ``aliases``: a result may share the memory of an argument. ``born``: symbols that the call gives; ``token`` is then
    the value, without memory, that stands for them, or for what is true after a check: whoever computes with a symbol
    waits for its tokens.
    """

    op: OpOverload
    args: tuple[object, ...]
    kwargs: tuple[tuple[str, object], ...]
    results: tuple[int | None, ...]
    aliases: bool
    where: UserLocation | None
    born: tuple[Born, ...] = ()
    token: int | None = None


@dataclass(slots=True, eq=False)
class Value:
    """One tensor of the graph. ``number`` is its place in topological order; sizes and strides are those it
    has in memory.

    It has a ``formula``, or is the result of ``call``, or an input of the program called ``name``.
    """

    number: int
    name: str
    sizes: Sizes
    strides: Sizes
    dtype: torch.dtype
    device: torch.device
    formula: Formula | None = None
    call: ExternalCall | None = None
    where: UserLocation | None = None

    @property
    def layout(self) -> Layout:
        """Where its elements lie once it is in memory."""
        return Layout(self.sizes, self.strides, 0)

    @property
    def domain(self) -> Sizes:
        """The sizes that its computation runs over: a reduction's operand's, else its own."""
        return self.formula.operand.sizes if isinstance(self.formula, Reduction) else self.sizes


LoweredOutput: TypeAlias = Placed | Number | RuntimeFloat | None


@dataclass(slots=True)
class Lowered:
    """A graph of values in topological order, with the library calls in the order of the graph.

    ``passing`` names the inputs that the caller may leave to the graph: what a forward kept for its backward, and
    gradients.
    ``mutated`` maps the position of an output that is an input's new content to that input. ``numbers`` maps the names
    of floats to the inputs on the CPU that hold them when the graph is called. ``within`` maps a value that is computed
    in another's memory to that one and to the place of its first element there. ``windows``: the gradients of depthwise
    weights that calls give, the work of kernels of our own, each with its windows.
    """

    inputs: list[ProgramInput] = field(default_factory=list)
    passing: set[str] = field(default_factory=set)
    values: list[Value] = field(default_factory=list)
    calls: list[ExternalCall] = field(default_factory=list)
    outputs: list[LoweredOutput] = field(default_factory=list)
    mutated: dict[int, Buffer] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)
    within: dict[int, tuple[int, IntLike]] = field(default_factory=dict)
    windows: dict[int, tuple[Window, Window]] = field(default_factory=dict)


def operands_of(formula: Formula) -> tuple[Operand, ...]:
    """The tensors that a formula reads."""
    match formula:
        case Pointwise():  # most are, and every pass asks
            return tuple([arg for arg in formula.args if isinstance(arg, Operand)])
        case Fill() | Iota():
            return ()
        case Pad(operand=operand) | Reduction(operand=operand):
            return (operand,)
        case Cat(operands=operands):
            return operands
        case Gather(operand, indices):
            return (operand, *(index for index in indices if index is not None))
        case Depthwise(image, weight, bias):
            return (image, weight) if bias is None else (image, weight, bias)


def placed_in(argument: object) -> tuple[Placed, ...]:
    """The tensors inside a library call's argument."""
    if isinstance(argument, Placed):
        return (argument,)
    if isinstance(argument, tuple):
        return tuple(placed for item in argument for placed in placed_in(item))
    return ()
