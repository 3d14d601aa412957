"""What a kernel means, in torch: every scalar is evaluated at all points of the loops at once.

Slow and plain; the reference that generated code is tested against. It also checks what text cannot show:
that no value that comes from outside of a buffer is stored, and that no two points store to one element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from fx_interface.dialects.prims import prim
from fx_interface.symbols import IntLike, Symbol, evaluate
from inductor_codegen.ir.index import Atom, Index, Loaded, LoopVar, Quotient, Remainder
from inductor_codegen.ir.kernel import Accumulate, Keep, Kernel, Statement, Store
from inductor_codegen.ir.scalar import (
    Apply,
    Constant,
    FloatValue,
    Guard,
    Guarded,
    IndexValue,
    Kept,
    Load,
    Scalar,
    Total,
)
from inductor_codegen.ir.traverse import postorder, roots_of

_HALVES = (torch.float16, torch.bfloat16)


def interpret(
    kernel: Kernel,
    buffers: Mapping[str, Tensor],
    sizes: Mapping[Symbol, int] | None = None,
    floats: Mapping[str, float] | None = None,
) -> bool:
    """Run ``kernel`` on flat tensors by parameter name; whether every index from data was in range.

    AssertionError if the kernel breaks a rule of its grammar: a stored value from outside of a buffer, two
    stores to one element. NotImplementedError for kernels without passes.
    """
    if not kernel.passes:
        raise NotImplementedError(f"kernel {kernel.name} has no passes to interpret")
    return _Interpreter(kernel, buffers, dict(sizes or {}), dict(floats or {})).run()


class _Interpreter:
    def __init__(
        self,
        kernel: Kernel,
        buffers: Mapping[str, Tensor],
        sizes: dict[Symbol, int],
        floats: dict[str, float],
    ) -> None:
        self.kernel = kernel
        self.buffers = buffers
        self.sizes = sizes
        self.floats = floats
        loops = (*kernel.outer, *kernel.inner)
        self.shape = [self.size(loop.extent) for loop in loops]
        self.counters: dict[LoopVar, Tensor] = {}
        for axis, loop in enumerate(loops):
            around = [1] * len(loops)
            around[axis] = self.shape[axis]
            self.counters[loop] = torch.arange(self.shape[axis]).view(around)
        self.inner_axes = list(range(len(kernel.outer), len(loops)))
        self.values: dict[Scalar, Tensor] = {}
        self.valid: dict[Scalar, Tensor] = {}
        self.totals: dict[int, Tensor] = {}
        self.kept: dict[int, Tensor] = {}
        self.in_range = True

    def size(self, value: IntLike) -> int:
        return evaluate(value, self.sizes)

    def run(self) -> bool:
        row_shape = [1 if axis in self.inner_axes else size for axis, size in enumerate(self.shape)]
        for step in self.kernel.passes:
            self._statements(step.points, self.shape)
            self._statements(step.row, row_shape)
        return self.in_range

    def _statements(self, statements: Sequence[Statement], shape: Sequence[int]) -> None:
        """All scalars of a point are computed before anything is stored there."""
        for node in postorder(root for statement in statements for root in roots_of(statement)):
            if node not in self.values:
                self.values[node], self.valid[node] = self._node(node)
        for statement in statements:
            self._statement(statement, shape)

    def _statement(self, statement: Statement, shape: Sequence[int]) -> None:
        value = self.values[statement.value].expand(shape)
        assert bool(self.valid[statement.value].expand(shape).all()), (
            "a value from outside of a buffer is used"
        )
        match statement:
            case Store(buffer, index):
                self._store(buffer, self.index(index).expand(shape), value)
            case Accumulate():
                self.totals[statement.accumulator] = self._reduce(statement, value)
            case Keep(slot):
                self.kept[slot] = value

    def _store(self, name: str, index: Tensor, value: Tensor) -> None:
        flat = index.reshape(-1)
        assert len(set(flat.tolist())) == flat.numel(), f"two points store to one element of {name}"
        self.buffers[name][flat] = value.reshape(-1).to(self.buffers[name].dtype)

    def _reduce(self, item: Accumulate, value: Tensor) -> Tensor:
        axes = self.inner_axes
        shape = [1 if axis in axes else size for axis, size in enumerate(self.shape)]
        rows = value.reshape(*shape[: len(self.kernel.outer)], -1)
        if item.position is not None:
            chosen = (torch.argmax if item.kind == "argmax" else torch.argmin)(rows, -1, keepdim=True)
            where = self.index(item.position).expand(self.shape).reshape(rows.shape)
            return where.gather(-1, chosen).reshape(shape)
        return self._fold(item, rows).reshape(shape).to(_computed(item.dtype))

    def _fold(self, item: Accumulate, rows: Tensor) -> Tensor:
        match item.kind:
            case "sum":
                exact = torch.float64 if rows.dtype.is_floating_point else item.dtype
                return rows.any(-1) if item.dtype == torch.bool else rows.sum(-1, dtype=exact)
            case "prod":
                return rows.prod(-1, dtype=item.dtype if not item.dtype.is_floating_point else torch.float64)
            case "amax":
                return rows.amax(-1)
            case "amin":
                return rows.amin(-1)
            case "any":
                return rows.any(-1)
        return rows.all(-1)

    # -- scalars ---------------------------------------------------------------------------------------------------

    def _node(self, node: Scalar) -> tuple[Tensor, Tensor]:
        always = torch.ones((1,) * len(self.shape), dtype=torch.bool)
        match node:
            case Load(buffer, index, dtype):
                return self._load(self.buffers[buffer], index, dtype)
            case Constant(value, dtype):
                return self._number(value, dtype), always
            case IndexValue(index, dtype):
                return self.index(index).to(dtype), self._index_valid(index)
            case FloatValue(name, dtype):
                return self._number(self.floats[name], dtype), always
            case Guarded(guards, body, other):
                condition = always
                for guard in guards:
                    condition = condition & self._guard(guard)
                chosen = torch.where(condition, self.values[body], self.values[other])
                return chosen, torch.where(condition, self.valid[body], self.valid[other])
            case Total(accumulator):
                return self.totals[accumulator], always
            case Kept(slot):
                return self.kept[slot], always
            case Apply():
                return self._apply(node)

    def _number(self, value: bool | int | float, dtype: torch.dtype) -> Tensor:
        return torch.full((1,) * len(self.shape), value, dtype=_computed(dtype))

    def _load(self, memory: Tensor, index: Index, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        where = self.index(index)
        inside = (where >= 0) & (where < memory.numel())
        loaded = (
            memory.take(where.clamp(0, memory.numel() - 1)) if memory.numel() else torch.zeros_like(where)
        )
        return loaded.to(_computed(dtype)), inside & self._index_valid(index)

    def _index_valid(self, index: Index) -> Tensor:
        valid = torch.ones((1,) * len(self.shape), dtype=torch.bool)
        for atom in index.atoms():
            if isinstance(atom, Loaded):
                valid = valid & self.valid[atom.scalar]
        return valid

    def _guard(self, guard: Guard) -> Tensor:
        index = self.index(guard.index)
        holds = torch.ones_like(index, dtype=torch.bool)
        if guard.low is not None:
            holds &= index >= self.size(guard.low)
        if guard.high is not None:
            holds &= index < self.size(guard.high)
        return holds

    def _apply(self, node: Apply) -> tuple[Tensor, Tensor]:
        args = [self.values[arg] for arg in node.args]
        valid = torch.ones((1,) * len(self.shape), dtype=torch.bool)
        for arg in node.args:
            valid = valid & self.valid[arg]
        if node.op in ("wrap_index", "check_index"):
            wraps = node.op == "wrap_index"
            moved = torch.where(args[0] < 0, args[0] + args[1], args[0]) if wraps else args[0]
            inside = (moved >= 0) & (moved < args[1])
            self.in_range = self.in_range and bool((inside | ~valid).all())
            return torch.where(inside, moved, 0), valid
        if node.op == "convert_dtype":
            return args[0].to(node.dtype).to(_computed(node.dtype)), valid
        return prim(node.op)(*args).to(_computed(node.dtype)), valid

    # -- indices ---------------------------------------------------------------------------------------------------

    def index(self, index: Index) -> Tensor:
        """The index at all points."""
        total = torch.full((1,) * len(self.shape), self.size(index.const), dtype=torch.int64)
        for atom, coefficient in index.terms:
            total = total + self._atom(atom) * self.size(coefficient)
        return total

    def _atom(self, atom: Atom) -> Tensor:
        match atom:
            case LoopVar():
                return self.counters[atom]
            case Quotient(numerator, denominator):
                return self.index(numerator) // self.size(denominator)
            case Remainder(numerator, denominator):
                return self.index(numerator) % self.size(denominator)
            case Loaded(scalar):
                return self.values[scalar]


def _computed(dtype: torch.dtype) -> torch.dtype:
    """16-bit floats are computed with as float32."""
    return torch.float32 if dtype in _HALVES else dtype
