"""The values of a graph while they are being made: where each lies in memory, and what is copied for a layout."""

from __future__ import annotations

import torch

from fx_interface.errors import UserLocation
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from inductor_codegen.lower import layouts
from inductor_codegen.lower.layouts import is_dense, is_disjoint_at_hand, same_strides
from inductor_codegen.lower.values import Formula, Lowered, Operand, Placed, Pointwise, Value
from inductor_codegen.lower.views import Layout, Reshape, Sizes, View, reshape


class Values:
    """Owner of one graph's values."""

    def __init__(self, env: ShapeEnv) -> None:
        self.env = env
        self.result = Lowered()
        self.devices: set[torch.device] = set()
        """Where values are; nearly always one device."""
        self._names: set[str] = set()
        self._copies: dict[tuple[Operand, Sizes], Placed] = {}
        self._laid: dict[tuple[Sizes, Sizes, bool, bool], tuple[Sizes, Sizes]] = {}

    def add_value(
        self,
        name: str,
        spec: TensorSpec,
        formula: Formula | None,
        where: UserLocation | None,
        exact: bool = False,
    ) -> Value:
        """A new value with the sizes and strides of ``spec``; computed ones get row-major strides if those
        have gaps (that are not asked for by ``exact``) or overlap.
        """
        key = (spec.sizes, spec.strides, formula is not None, exact)
        laid = None if self.env.symbols else self._laid.get(key)  # layers have the same few layouts
        if laid is None:
            laid = self._laid[key] = self._sizes_and_strides(spec, formula is not None, exact)
        sizes, strides = laid
        while name in self._names:
            name += "_"
        self._names.add(name)
        self.devices.add(spec.device)
        value = Value(
            len(self.result.values), name, sizes, strides, spec.dtype, spec.device, formula, where=where
        )
        self.result.values.append(value)
        return value

    def _sizes_and_strides(self, spec: TensorSpec, computed: bool, exact: bool) -> tuple[Sizes, Sizes]:
        sizes = tuple(self.env.simplify(size) for size in spec.sizes)
        strides = tuple(self.env.simplify(stride) for stride in spec.strides)
        suits = is_disjoint_at_hand(sizes, strides, self.env) if exact else is_dense(sizes, strides)
        return sizes, contiguous_strides(sizes) if computed and not suits else strides

    def layout_of(self, operand: Operand) -> Layout | None:
        """Where the elements of ``operand`` lie once its source is in memory; None if strides cannot say it."""
        return layouts.seen_through(self.result.values[operand.source].layout, operand.views)

    def place(self, operand: Operand, where: UserLocation | None, strides: Sizes | None = None) -> Placed:
        """``operand`` as a strided view of memory; a copy is made where there is none, or none with these
        ``strides``.
        """
        layout = self.layout_of(operand)
        if layout is not None and (strides is None or same_strides(layout, strides)):
            exact = layout.strides if strides is None else strides
            return Placed(operand.source, Layout(layout.sizes, exact, layout.offset))
        wanted = contiguous_strides(operand.sizes) if strides is None else strides
        found = self._copies.get((operand, wanted))
        if found is None:
            source = self.result.values[operand.source]
            spec = TensorSpec(operand.sizes, wanted, operand.dtype, source.device)
            formula = Pointwise("clone", (operand,), operand.dtype)
            copy = self.add_value(
                f"{source.name}_copy", spec, formula, where or source.where, exact=strides is not None
            )
            found = self._copies[operand, wanted] = Placed(copy.number, copy.layout)
        return found


def operand_of(value: Value) -> Operand:
    """The value itself as an operand."""
    return Operand(value.number, (), value.sizes, value.dtype)


def seen_through(operand: Operand, view: View) -> Operand:
    """``operand`` with one more view on top; a reshape of a reshape is one."""
    below = operand.views[-1] if operand.views else None
    if isinstance(view, Reshape) and isinstance(below, Reshape):
        operand = Operand(operand.source, operand.views[:-1], below.operand_sizes, operand.dtype)
        view = reshape(below.operand_sizes, view.sizes)
    if isinstance(view, Reshape) and view.sizes == view.operand_sizes:
        return operand
    return Operand(operand.source, (*operand.views, view), view.sizes, operand.dtype)
