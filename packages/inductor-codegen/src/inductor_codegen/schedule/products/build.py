"""The kernel of a product and of what it is joined with, and the program's steps with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import ShapeEnv, product
from inductor_codegen.ir.index import Index, LoopVar, as_index, divide, flatten, modulo
from inductor_codegen.ir.kernel import (
    Access,
    BufferParameter,
    FloatParameter,
    Kernel,
    Parameter,
    Pass,
    Store,
    Vector,
)
from inductor_codegen.ir.printer import print_kernel
from inductor_codegen.ir.products.form import SUMS, Factor, ProductForm, ProductKernel, ProductTiles
from inductor_codegen.ir.program import Allocate, Buffer, RunKernel, Step, Storage, View
from inductor_codegen.ir.scalar import Load, Scalar, ScalarBuilder
from inductor_codegen.ir.traverse import Rebuilder, postorder, roots_of, statements_of
from inductor_codegen.schedule.kernels.called import named
from inductor_codegen.schedule.products.places import Place, Places

_LEFT, _RIGHT, _ADDED, _PRODUCT = "left", "right", "added", "product"
_NO_SYMBOLS = ShapeEnv()


@dataclass(frozen=True, slots=True)
class Joined:
    """A product as a kernel: what it computes as ``text``; ``of`` makes it for tiles; ``buffers`` and ``floats`` are
    what it is given."""

    text: str
    of: Callable[[ProductTiles], ProductKernel]
    buffers: tuple[str, ...]
    floats: tuple[str, ...]


def joined_kernel(place: Place, step: RunKernel | None, kernel: Kernel | None) -> Joined:
    """The kernel of a product, with what the ``kernel`` of ``step`` computes from it if there is one."""
    return _Builder(place).build(step, kernel)


class _Builder:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.make = ScalarBuilder()
        batch, rows, _, columns = place.sizes
        self.points = (LoopVar("b", batch), LoopVar("m", rows), LoopVar("n", columns))
        self.at = tuple(as_index(point) for point in self.points)
        self.position = flatten(self.at, (batch, rows, columns))
        self.parameters: list[Parameter] = []
        self.buffers: list[str] = []
        self.stores: list[Store] = []

    def build(self, step: RunKernel | None, kernel: Kernel | None) -> Joined:
        place = self.place
        factors = [
            self._factor(name, buffer) for name, buffer in ((_LEFT, place.left), (_RIGHT, place.right))
        ]
        value = self._product()
        if step is None or place.kept:
            self._parameter(_PRODUCT, place.result, Access.WRITE)
            self.stores.append(Store(_PRODUCT, self.position, value))
        comments = [f"{place.call.op}"]
        floats: tuple[str, ...] = ()
        if step is not None and kernel is not None:
            self._join(step, kernel, value)
            comments += kernel.comments
            floats = step.floats
        left, right = factors
        dtype, sizes, points = place.left.dtype, place.sizes, self.points
        parameters, stores = tuple(self.parameters), tuple(self.stores)
        printed = print_kernel(Kernel("", parameters, points, (), Vector.INNER, (Pass(stores, ()),)), "")
        text = repr((dtype, sizes, left, right, printed))

        def of(tiles: ProductTiles) -> ProductKernel:
            form = ProductForm(dtype, sizes, left, right, points, stores, tiles)
            loop, name = LoopVar("tile", form.count), named("product_", (text, tiles))
            return ProductKernel(name, parameters, (loop,), (), Vector.INNER, (), tuple(comments), form=form)

        return Joined(text, of, tuple(self.buffers), floats)

    def _parameter(self, name: str, buffer: Buffer, access: Access) -> None:
        self.parameters.append(BufferParameter(name, buffer.dtype, access))
        self.buffers.append(buffer.name)

    def _factor(self, name: str, buffer: Buffer) -> Factor:
        self._parameter(name, buffer, Access.READ)
        strides = [int(stride) for stride in buffer.strides]  # type: ignore[arg-type]
        return Factor(name, (0, *strides) if len(strides) == 2 else tuple(strides))  # type: ignore[arg-type]

    def _product(self) -> Scalar:
        """An element of the product: the sum and what is added, rounded once."""
        found, dtype = self.make.kept(SUMS, torch.float32), self.place.result.dtype
        added = self.place.added
        if added is not None:
            self._parameter(_ADDED, added, Access.READ)
            at = self.at[3 - len(added.sizes) :]
            place = Index(0)
            for index, size, stride in zip(at, added.sizes, added.strides, strict=True):
                place = place + (index * stride if size != 1 else Index(0))
            loaded = self.make.convert(self.make.load(_ADDED, place, dtype), torch.float32)
            found = self.make.apply("add", (found, loaded), torch.float32)
        return self.make.convert(found, dtype)

    def _join(self, step: RunKernel, kernel: Kernel, value: Scalar) -> None:
        """The stores of a kernel, at the points of the product."""
        seen = self.place.seen
        taken = {parameter.name for parameter in self.parameters}
        names = {one.name: f"{one.name}_" if one.name in taken else one.name for one in kernel.parameters}
        given = zip(step.buffers, kernel.buffers, strict=True)
        for buffer, parameter in given:
            if parameter.name != seen:
                name = names[parameter.name]
                self.parameters.append(BufferParameter(name, parameter.dtype, parameter.access))
                self.buffers.append(buffer)
        self.parameters += [one for one in kernel.parameters if isinstance(one, FloatParameter)]
        statements = [one for one in statements_of(kernel.passes) if isinstance(one, Store)]
        nodes = postorder(root for statement in statements for root in roots_of(statement))
        loads = (node for node in nodes if isinstance(node, Load) and node.buffer == seen)
        indices = self._loops_in(next(loads).index)

        def leaf(node: Scalar) -> Scalar | None:
            if not isinstance(node, Load):
                return None
            if node.buffer == seen:
                return value
            return self.make.load(names[node.buffer], rebuilder.index(node.index), node.dtype)

        rebuilder = Rebuilder(
            self.make,
            _NO_SYMBOLS,
            leaf,
            lambda atom: indices.get(atom) if isinstance(atom, LoopVar) else None,
        )
        for one in statements:
            moved = rebuilder.statement(one)
            assert isinstance(moved, Store)
            self.stores.append(Store(names[moved.buffer], moved.index, moved.value))

    def _loops_in(self, position: Index) -> dict[LoopVar, Index]:
        """The loops of a kernel at a point of the product, of which ``position`` says which element they name."""
        found: dict[LoopVar, Index] = {}
        for atom, stride in position.terms:
            assert isinstance(atom, LoopVar)
            outermost = stride * atom.extent == product(self.place.result.sizes)
            index = divide(self.position, stride, _NO_SYMBOLS)
            found[atom] = index if outermost else modulo(index, atom.extent, _NO_SYMBOLS)
        return found


Choose = Callable[
    [Place, Joined, "RunKernel | None", "Kernel | None", Mapping[str, Buffer]], "ProductTiles | None"
]
"""The tiles of a product, with what it is joined with; None where the library's product is to stay."""


def with_products(
    choose: Choose,
    steps: list[Step],
    kernels: dict[str, Kernel],
    buffers: Mapping[str, Buffer],
    outputs: frozenset[str],
) -> list[Step]:
    """The steps of a program with kernels in the place of those products for which ``choose`` has tiles; adds to
    ``kernels``. ``outputs``: the program's results."""
    places = list(Places(steps, buffers, kernels, outputs))
    gone: set[int] = set()
    changed: dict[int, list[Step]] = {}
    for place in places:
        free = None if place.joined in changed else place.joined  # else it is joined with another product
        for joined in dict.fromkeys((free, None)):
            step = None if joined is None else steps[joined]
            assert step is None or isinstance(step, RunKernel)
            kernel = None if step is None else kernels[step.kernel]
            found = joined_kernel(place, step, kernel)
            tiles = choose(place, found, step, kernel, buffers)
            if tiles is None:
                continue
            made = found.of(tiles)
            kernels[made.name] = made
            run = RunKernel(made.name, found.buffers, (), found.floats, place.call.where)
            own: list[Step] = [Allocate(place.result, Storage.SCRATCH)]
            if joined is None:
                changed[place.at] = [*own, run]
            else:
                changed[place.at], changed[joined] = own if place.kept else [], [run]
                if not place.kept:
                    gone.update(_views_of(place, steps))
            break
    listed = (changed.get(position, [step]) for position, step in enumerate(steps) if position not in gone)
    return [step for group in listed for step in group]


def _views_of(place: Place, steps: Sequence[Step]) -> list[int]:
    named = place.names - {place.result.name}
    return [n for n, step in enumerate(steps) if isinstance(step, View) and step.buffer.name in named]
