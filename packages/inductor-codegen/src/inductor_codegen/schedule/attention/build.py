"""Building kernels of attention: from the operator's call to forms and parameters."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from fx_interface.attention.operators import ATTENTION
from fx_interface.errors import UnsupportedProgramError
from fx_interface.regions.attention import working_dtype
from fx_interface.symbols import Expr, IntLike, ShapeEnv, floordiv, symbol
from inductor_codegen.ir.attention.form import (
    ARRIVING,
    CPU_TILE,
    SCORE,
    AttentionForm,
    AttentionKernel,
    BlockLists,
    Scatter,
    Strided,
    Task,
)
from inductor_codegen.ir.attention.tiles import gpu_tiles
from inductor_codegen.ir.index import Index, Loaded, LoopVar, as_index, size_symbols
from inductor_codegen.ir.kernel import (
    Access,
    BufferParameter,
    Parameter,
    SizeParameter,
    Vector,
)
from inductor_codegen.ir.scalar import Guarded, Scalar, ScalarBuilder, loaded_scalars
from inductor_codegen.ir.traverse import indices_of, postorder
from inductor_codegen.lower.values import ExternalCall, Lowered, Placed, Value
from inductor_codegen.lower.views import Layout
from inductor_codegen.schedule.attention.programs import (
    Unwritten,
    kept_points,
    operand_layouts,
    scalars_of,
)
from inductor_codegen.schedule.kernels.called import Called, zeros
from inductor_codegen.schedule.kernels.positions import place_in

MOST_WIDTH = 256
"""Numbers of a query, and of a value, that a tile holds."""
logger = logging.getLogger("inductor_codegen")
_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
_ROLES = ("query", "key", "value", "sums", "grad_out", "change")
_RESULTS = {
    Task.FORWARD: ("out", "sums", "largest"),
    Task.KEYS: ("grad_key", "grad_value"),
    Task.QUERIES: ("grad_query",),
}


def attention_kernels(call: ExternalCall, lowered: Lowered, env: ShapeEnv) -> list[Called]:
    """The kernels that do what a call of one of the operators does. ``Unwritten`` where there are none: the operator's
    own kernel does it, with all scores in memory.
    """
    tasks = (Task.FORWARD,) if call.op is ATTENTION else (Task.KEYS, Task.QUERIES)
    made = [_Builder(call, lowered, env, task).build() for task in tasks]
    return [*(filled for one in made for filled in _zeros(one)), *made]


def _zeros(called: Called) -> Iterator[Called]:
    """Kernels that fill what points are added to."""
    form: AttentionForm = called.kernel.form  # type: ignore[attr-defined]
    held = dict(zip((buffer.name for buffer in called.kernel.buffers), called.buffers, strict=True))
    for name in dict.fromkeys(scatter.target.name for scatter in form.scatters):
        value = held[name]
        assert isinstance(value, Value)
        yield zeros(value)


def is_cpu(device: torch.device) -> bool:
    """Whether kernels for a device are C++."""
    return device.type == "cpu"


def loaded_of(places: Sequence[Index]) -> list[Scalar]:
    """The scalars that indices are made of."""
    return [scalar for place in places for scalar in loaded_scalars(place)]


def refused(call: ExternalCall, error: UnsupportedProgramError) -> bool:
    """Say why a call stays what it is; false."""
    logger.warning("%s attention keeps all scores in memory: %s", error.code, error.what)
    return False


class _Builder:
    """Owner of one kernel under construction."""

    def __init__(self, call: ExternalCall, lowered: Lowered, env: ShapeEnv, task: Task) -> None:
        self.lowered, self.env, self.task = lowered, env, task
        declared = (argument.name for argument in call.op._schema.arguments)
        self.args: dict[str, Any] = dict(zip(declared, call.args, strict=False))
        self.results = [None if number is None else lowered.values[number] for number in call.results]
        self.make = ScalarBuilder()
        self.parameters: list[Parameter] = []
        self.buffers: list[Placed | Value] = []

    def build(self) -> Called:
        """The kernel."""
        query = self._check()
        tensors = {role: self._read(role, self.args[role]) for role in _ROLES if role in self.args}
        lists = self._lists()
        operands = {place: self._operand(place, one) for place, one in enumerate(self.args["operands"])}
        given, value = tensors["query"], tensors["value"]
        extents = (given.sizes[0], given.sizes[1], given.sizes[2], tensors["key"].sizes[2])
        points = tuple(LoopVar(name, extent) for name, extent in zip("bhqk", extents, strict=True))
        score, mask = (self._program(name, points, operands) for name in ("score", "mask"))
        joint, scatters = self._joint(points, operands)
        tensors |= self._written()
        parts = [one for scatter in scatters for one in (scatter.value, *loaded_of(scatter.places))]
        scalars = [score[0], mask[0], *([joint] if joint is not None else []), *parts]
        if not is_cpu(query.device) and any(isinstance(node, Guarded) for node in postorder(scalars)):
            raise Unwritten("a program computes under conditions")
        working = working_dtype(query.dtype)
        form = AttentionForm(
            self.task,
            query.dtype,
            working,
            tensors,
            float(self.args["scale"]),
            tuple(self.args["block_size"]) or None,
            *lists,
            points,  # type: ignore[arg-type]
            score[0],
            mask[0],
            joint,
            scatters,
        )
        sizes = self._sizes(form)
        self.parameters += [SizeParameter(name) for name in sizes]
        tiles = LoopVar("tile", _tiles(form, value.sizes[2], query.device))
        text = repr(
            (self.args["score"], self.args["mask"], self.args.get("joint"), form, self.parameters, tiles)
        )
        name = f"attention_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        comments = (f"attention, {self.task.value}",)
        parameters = tuple(self.parameters)
        kernel = AttentionKernel(name, parameters, (tiles,), (), Vector.INNER, (), comments, form=form)
        return Called(kernel, tuple(self.buffers), tuple(symbol(name) for name in sizes))

    def _check(self) -> Value:
        """The queries. ``Unwritten`` for what no kernel is written for."""
        placed = [self.args[role] for role in ("query", "key", "value")]
        query: Value = self.lowered.values[placed[0].source]
        if not is_cpu(query.device) and query.dtype is torch.float64:
            raise Unwritten("queries are float64 on a GPU")
        if query.dtype not in _DTYPES:
            raise Unwritten(f"queries are {query.dtype}")
        for one in placed:
            _, heads, _, width = one.layout.sizes
            if not isinstance(heads, int) or not isinstance(width, int) or not 0 < width <= MOST_WIDTH:
                raise Unwritten(f"heads and widths are {heads} and {width}")
        return query

    def _parameter(self, name: str, dtype: torch.dtype, access: Access, held: Placed | Value) -> None:
        self.parameters.append(BufferParameter(name, dtype, access))
        self.buffers.append(held)

    def _read(self, name: str, placed: Placed) -> Strided:
        layout = placed.layout
        self._parameter(name, self.lowered.values[placed.source].dtype, Access.READ, placed)
        return Strided(name, layout.sizes, layout.strides)

    def _operand(self, place: int, placed: Placed) -> tuple[str, Layout]:
        made = self._read(f"operand{place}", placed)
        return made.name, Layout(made.sizes, made.strides, 0)

    def _lists(self) -> tuple[BlockLists | None, BlockLists | None]:
        """Lists of the blocks that are seen in part, and of those that are seen as a whole."""
        if not self.args["block_size"]:
            return None, None
        blocks = self.args["blocks"]
        first = 4 if self.task is Task.KEYS else 0
        found: list[BlockLists | None] = []
        for position, name in ((first, "partial"), (first + 2, "full")):
            counts, indices = blocks[position : position + 2]
            if counts is None or indices is None:
                if name == "partial":
                    raise Unwritten("there are no lists of blocks for the backward")
                found.append(None)
                continue
            for placed in (counts, indices):
                if self.lowered.values[placed.source].dtype is not torch.int32:
                    raise Unwritten("lists of blocks are not of int32")
            found.append(
                BlockLists(self._read(f"{name}_counts", counts), self._read(f"{name}_blocks", indices))
            )
        return found[0], found[1]

    def _program(
        self,
        name: str,
        points: Sequence[LoopVar],
        operands: dict[int, tuple[str, Layout]],
        last: Sequence[Scalar] = (),
    ) -> list[Scalar]:
        working = working_dtype(self.lowered.values[self.args["query"].source].dtype)
        given = kept_points(self.make, [as_index(point) for point in points])
        if name != "mask":
            given.insert(0, self.make.kept(SCORE, working))
        places = self.args["mask_args" if name == "mask" else "score_args"]
        layouts = operand_layouts(places, operands, len(operands))
        return scalars_of(self.args[name], given, layouts, last, self.env, self.make)

    def _joint(
        self, points: Sequence[LoopVar], operands: dict[int, tuple[str, Layout]]
    ) -> tuple[Scalar | None, tuple[Scatter, ...]]:
        if self.task is Task.FORWARD:
            return None, ()
        working = working_dtype(self.lowered.values[self.args["query"].source].dtype)
        found = self._program("joint", points, operands, [self.make.kept(ARRIVING, working)])
        if self.task is Task.KEYS:
            return found[0], ()
        rest, scatters = found[1:], []
        for number, rank in enumerate(self.args["ranks"]):
            value, *indices = rest[: 1 + rank]
            rest = rest[1 + rank :]
            result = self.results[3 + number]
            if result is None:
                continue
            self._parameter(f"grad{number}", result.dtype, Access.WRITE, result)
            target = Strided(f"grad{number}", result.sizes, result.strides)
            scatters.append(Scatter(target, value, tuple(map(self._index, indices, result.sizes))))
        return found[0], tuple(scatters)

    def _index(self, chosen: Scalar, size: IntLike) -> Index:
        """A place in a gradient, as it was where the operand was read."""
        chosen = self.make.convert(chosen, torch.int64)
        place = place_in(chosen, size, self.env)
        if place is None:
            extent = self.make.index_value(Index(size), torch.int64)
            place = as_index(Loaded(self.make.apply("wrap_index", (chosen, extent), torch.int64)))
        return place

    def _written(self) -> dict[str, Strided]:
        """The results that this task gives and somebody reads."""
        first = {Task.FORWARD: self.results, Task.KEYS: self.results[1:3], Task.QUERIES: self.results[:1]}
        found = {}
        for role, value in zip(_RESULTS[self.task], first[self.task], strict=False):
            if value is None or value.sizes == (0,):
                continue
            self._parameter(role, value.dtype, Access.WRITE, value)
            found[role] = Strided(role, value.sizes, value.strides)
        return found

    def _sizes(self, form: AttentionForm) -> list[str]:
        """The names of the symbols that the kernel uses."""
        found: dict[str, None] = {}
        values: list[Any] = []
        lists = [one for pair in (form.partial, form.full) if pair for one in (pair.counts, pair.indices)]
        for tensor in (*form.tensors.values(), *lists):
            values += [*tensor.sizes, *tensor.strides]
        scalars = [one for one in (form.score, form.mask, form.joint) if one is not None]
        for scatter in form.scatters:
            scalars += [scatter.value, *loaded_of(scatter.places)]
            for place in scatter.places:
                values += size_symbols(place)
            values += [*scatter.target.sizes, *scatter.target.strides]
        for node in postorder(scalars):
            for index in indices_of(node):
                values += size_symbols(index)
            if isinstance(node, Guarded):
                values += [bound for guard in node.guards for bound in (guard.low, guard.high)]
        for value in values:
            if isinstance(value, Expr):
                found.update(dict.fromkeys(sorted(atom.name for atom in value.symbols)))
        return list(found)


def _tiles(form: AttentionForm, keys: IntLike, device: torch.device) -> IntLike:
    """How many tiles there are, of all heads."""
    rows, size = (form.queries, 0) if form.task is not Task.KEYS else (keys, 1)
    block = form.block_size[size] if form.block_size else None
    heads = form.heads if form.task is not Task.KEYS else form.heads // form.group
    return form.batch * heads * tiles_along(rows, block, tile_length(form, device))


def tiles_along(length: IntLike, block: int | None, tile: int) -> IntLike:
    """Tiles of a sequence: each lies in one block."""
    if block is None or block % tile == 0:
        return floordiv(length + (tile - 1), tile)
    return floordiv(length + (block - 1), block) * -(-block // tile)


def tile_length(form: AttentionForm, device: torch.device) -> int:
    """Queries (or keys) of a tile."""
    if is_cpu(device):
        return CPU_TILE
    tiles = gpu_tiles(form)
    if tiles is None:
        raise Unwritten(f"blocks of {form.block_size} are no multiples of a tile")
    return tiles.rows
