"""Operators of derivative formulas that no gradient has reached.

Autograd's engine runs a node also where the functions that use its result gave None, and most formulas then call
nothing. Those of fused attention and of recurrent layers call their operator all the same, with undefined tensors for
gradients, and its kernel answers with undefined tensors:

    aten._scaled_dot_product_flash_attention_for_cpu_backward(None, query, key, ...)  ->  None, None, None
"""

from __future__ import annotations

from typing import Any, Final

from torch._ops import OpOverload

_POSITIONS: Final[dict[OpOverload, tuple[int, ...]]] = {}


def has_no_gradient(op: OpOverload, args: tuple[Any, ...]) -> bool:
    """Whether ``op`` takes gradients, gives tensors alone, and is given None for every gradient."""
    if not any(arg is None for arg in args):
        return False
    positions = _POSITIONS.get(op)
    if positions is None:
        positions = _POSITIONS.setdefault(op, _gradient_positions(op))
    return bool(positions) and all(at < len(args) and args[at] is None for at in positions)


def no_results(op: OpOverload) -> Any:
    """None for each tensor that ``op`` returns."""
    count = len(op._schema.returns)
    return None if count == 1 else (None,) * count


def _gradient_positions(op: OpOverload) -> tuple[int, ...]:
    """Where ``op`` takes gradients: tensors, optional or not, whose names in the schema begin so."""
    schema = op._schema
    if not schema.returns or any(str(part.type) != "Tensor" for part in schema.returns):
        return ()
    return tuple(
        at
        for at, part in enumerate(schema.arguments)
        if part.name.startswith("grad") and str(part.type) in ("Tensor", "Optional[Tensor]")
    )
