"""Programs of points as Triton text: each value has the shape that it varies over, and is computed no more often.

doc[q] == doc[k]    ->  one load a row before the loop over keys, one load a column in it, one comparison a point
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from inductor_codegen.codegen.triton.formulas import TYPES
from inductor_codegen.codegen.triton.indices import index_text, size_text
from inductor_codegen.codegen.triton.scope import Names, Scope
from inductor_codegen.ir.index import Index, LoopVar
from inductor_codegen.ir.scalar import (
    Apply,
    Constant,
    Guarded,
    IndexValue,
    Kept,
    Load,
    Scalar,
    loaded_scalars,
    operands,
)
from inductor_codegen.ir.traverse import postorder

_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_SMALL = 1 << 30


class PointScope(Scope):
    """Values of one tile. ``held`` are texts of kept values; ``masks`` say of a loop which of its indices exist, where
    not all do; ``outer`` has what does not vary along the loop over tiles."""

    def __init__(
        self,
        names: Names,
        variables: Mapping[LoopVar, str],
        masks: Mapping[LoopVar, str],
        held: Mapping[int, str],
        outer: PointScope | None = None,
    ) -> None:
        super().__init__(names, "", "", variables, {}, outer)
        self._masks, self._held = masks, held

    def value(self, scalar: Scalar) -> str:
        """The name of ``scalar``'s value, computed now, in the widest scope that it allows, if it is not yet."""
        if isinstance(scalar, Kept):
            return self._held[scalar.slot]
        if isinstance(scalar, Constant):
            return super()._text(scalar)
        return super().value(scalar)

    def address(self, index: Index) -> str:
        """``index`` in the shape of its variables."""
        text = index_text(index, self.variables, lambda scalar: f"{self.value(scalar)}.to(tl.int64)")
        return text if index.terms else f"tl.full([1, 1], {text}, tl.int64)"

    def _varies(self, scalar: Scalar) -> bool:
        assert self.outer is not None
        nodes = postorder([scalar])
        return any(isinstance(node, Kept) for node in nodes) or any(
            variable not in self.outer.variables for variable in varying(scalar)
        )

    def _text(self, scalar: Scalar) -> str:
        if isinstance(scalar, Load):
            mask = self._mask(scalar)
            more = f", {mask}, other=0" if mask else ""
            loaded = f"tl.load({scalar.buffer} + ({self.address(scalar.index)}){more})"
            return f"({loaded} != 0)" if scalar.dtype == torch.bool else loaded
        if isinstance(scalar, IndexValue):
            return f"({self.address(scalar.index)}).to({TYPES[scalar.dtype]})"
        return super()._text(scalar)

    def _mask(self, scalar: Scalar) -> str:
        """The condition that all loops that a value varies over have the point; empty where they do."""
        found = varying(scalar)
        return " & ".join(text for loop, text in self._masks.items() if loop in found)

    def _apply(self, node: Apply) -> str:
        if node.op in _COMPARISONS and all(map(_is_small, node.args)):
            one, other = (self._narrow(arg) for arg in node.args)
            sign = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[node.op]
            return f"({one}) {sign} ({other})"
        return super()._apply(node)

    def _narrow(self, arg: Scalar) -> str:
        """A position or a number in 32 bits."""
        if isinstance(arg, Constant):
            return str(int(arg.value))
        assert isinstance(arg, IndexValue)
        return index_text(arg.index, self.variables, lambda scalar: self.value(scalar))

    def _checked_index(self, wraps: bool, index: str, extent: str) -> str:
        """An index from data; one out of range reads element 0, and is an assertion on the device."""
        moved, inside = self.names.fresh("t"), self.names.fresh("g")
        masks = " & ".join(self._masks.values())
        seen = f"{inside} | ~({masks})" if masks else inside
        self.lines += [
            f"{moved} = tl.where({index} < 0, {index} + {extent}, {index})"
            if wraps
            else f"{moved} = {index}",
            f"{inside} = ({moved} >= 0) & ({moved} < {extent})",
            f'tl.device_assert({seen}, "index out of range in self")',
        ]
        return f"tl.where({inside}, {moved}, 0)"


def varying(scalar: Scalar) -> set[LoopVar]:
    """The loops that a value varies over."""
    found: set[LoopVar] = set()
    pending = [scalar]
    while pending:
        node = pending.pop()
        if isinstance(node, (Load, IndexValue)):
            found.update(node.index.variables())
            pending += loaded_scalars(node.index)
        pending += operands(node)
    return found


def _is_small(arg: Scalar) -> bool:
    if isinstance(arg, Constant):
        return arg.dtype == torch.int64 and abs(arg.value) < _SMALL
    if not isinstance(arg, IndexValue) or arg.dtype != torch.int64:
        return False
    index = arg.index
    numbers = (index.const, *(factor for _, factor in index.terms))
    plain = all(isinstance(atom, LoopVar) for atom, _ in index.terms)
    return (
        plain
        and all(isinstance(number, int) and abs(number) <= 64 for _, number in index.terms)
        and all(isinstance(number, int) and abs(number) < _SMALL for number in numbers)
    )


def is_written(scalars: Sequence[Scalar]) -> bool:
    """Whether the scalars have a text here: what is computed under conditions has none."""
    return not any(isinstance(node, Guarded) for node in postorder(scalars))


__all__ = ["PointScope", "is_written", "size_text", "varying"]
