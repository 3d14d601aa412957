"""Functional variants: for an operator that writes, the one that computes the same and writes nothing.

Found by schema: ``add_.Tensor`` is ``add.Tensor`` because names and types of the arguments agree; ``add.out`` is the
overload of ``add`` with the same arguments without ``out``; what the rule cannot see is in ``IRREGULAR``.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import torch
from torch._ops import OpOverload

from aot_autograd.operators.functionalized import functional_form
from fx_interface.errors import UnsupportedProgramError
from fx_interface.operator_facts.functional_overloads import (
    FACTORY_OPTIONS,
    argument_names,
    functional_overload,
    is_factory,
)
from fx_interface.python_runtime.quick_dataclasses import dataclass

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class FunctionalVariant:
    """``op`` computes what a writing operator does.

    ``written`` are the positions (or keyword names) of the writing operator's arguments that are written;
    ``dropped`` those that ``op`` does not take (``out=``). ``op`` returns ``plain`` ordinary results, then one new
    value for each written argument. ``returns_written`` tells that the writing operator returns the written arguments.
    ``defaults`` are those of the writing operator's positional arguments, which ``op`` may not have. ``makes`` tells
    that ``op`` makes a tensor of no other (``zeros``): dtype and device are those of the one that is written.
    """

    op: OpOverload
    written: tuple[int | str, ...]
    dropped: frozenset[int | str]
    plain: int
    returns_written: bool
    defaults: tuple[Any, ...]
    makes: bool = False


IRREGULAR: Final[dict[OpOverload, OpOverload]] = {
    aten.bernoulli_.float: aten.bernoulli.p,
    aten.bernoulli_.Tensor: aten.bernoulli.Tensor,
    aten.normal_.default: aten.normal_functional.default,
}
"""Variants under other names. Their arguments correspond in order."""


@cache
def functional_variant(op: OpOverload) -> FunctionalVariant:
    """The variant of a writing operator; UnsupportedProgramError (AOT105) where there is none."""
    arguments = op._schema.arguments
    written: list[int | str] = []
    outs: list[int | str] = []
    for position, arg in enumerate(arguments):
        if arg.alias_info is None or not arg.alias_info.is_write:
            continue
        key: int | str = arg.name if arg.kwarg_only else position
        written.append(key)
        if arg.is_out:
            outs.append(key)
    written = [*outs, *(key for key in written if key not in outs)]  # as variants return them
    returns_written = any(ret.alias_info is not None for ret in op._schema.returns)
    plain = 0 if returns_written else len(op._schema.returns)
    found = IRREGULAR.get(op) or functional_overload(op)
    form = functional_form(op) if found is None else None
    if form is not None:
        return FunctionalVariant(form, tuple(written), frozenset(), plain, returns_written, ())
    if found is None:
        raise UnsupportedProgramError(
            "AOT105", f"{op} writes to its arguments and has no functional counterpart"
        )
    expected = plain + len(written)
    returned = len(found._schema.returns)
    if returned != expected and not (plain == 0 and returned == 1):
        raise UnsupportedProgramError("AOT105", f"the results of {found} do not match what {op} writes")
    makes = len(outs) == 1 and is_factory(found) and not FACTORY_OPTIONS & argument_names(op)
    return FunctionalVariant(
        found, tuple(written), frozenset(outs), plain, returns_written, _defaults(op, found), makes
    )


def _defaults(op: OpOverload, variant: OpOverload) -> tuple[Any, ...]:
    """Defaults of positional arguments, where the variant has none; dispatch leaves arguments out that equal theirs."""
    if all(a.has_default_value() for a in variant._schema.arguments if not a.kwarg_only and a.name != "self"):
        return ()
    return tuple(a.default_value for a in op._schema.arguments if not a.kwarg_only)
