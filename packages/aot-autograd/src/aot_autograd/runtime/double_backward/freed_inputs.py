"""Inputs of a program that may run again: kept, or, where earlier compiled programs can make them again, forgotten.

After a graph break, what one compiled function computed is another's input, and nobody may hold it any more. Autograd's
graph still leads to the node of the function that made it, and that node remembers its own inputs. So such an input is
not kept. What a kernel of eager made is: nothing else has its values, though eager's formulas may get by without them.

Hooks of the input, those too that it got after the second function ran, are registered at its place in autograd's
graph. So what stands for it leads there, and not to a copy of what made it (``Freed``).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, Final

import torch

from aot_autograd.runtime.hooks.chosen_tensors import edges_of_inputs
from aot_autograd.runtime.hooks.freed_tensors import CAN_BE_FREED, Freed
from fx_interface.python_runtime.own_references import OwnReference

_OWN_NODES = frozenset({"_BetweenBackward", "_SpreadBackward"})
"""Nodes between a compiled function's result and the compiled function's node: each hands on its first gradient."""
_SMALL: Final = 1 << 16
"""Bytes: to copy so many takes a microsecond or two."""
_top_hooks = torch._C._autograd._top_saved_tensors_default_hooks


def is_small(value: torch.Tensor) -> bool:
    """Whether nobody minds the memory of the tensor."""
    return value.numel() * value.element_size() <= _SMALL


def loosely(value: Any) -> Any:
    """A tensor by weak reference, whatever happens to its hooks."""
    return OwnReference(value) if isinstance(value, torch.Tensor) else value


def with_its_hooks(value: Any) -> Any:
    """A tensor itself, or by weak reference if an earlier compiled function can make it again, and hooks that it has or
    gets can be called when it is gone. Hooks of the program on saved tensors decide themselves what is kept: beside
    them no large tensor is that has a history."""
    if not isinstance(value, torch.Tensor):
        return value
    maker = value.grad_fn
    hooked = _top_hooks(True) is not None and not is_small(value)
    if maker is None:
        return value if not hooked or value._backward_hooks else OwnReference(value)
    remade = can_be_made_again(value)
    if not CAN_BE_FREED:  # a derivative that is refused could not lead to the place of one that is gone
        return OwnReference(value) if remade and not value._backward_hooks else value
    return Freed.of(value) if remade or hooked else value


def can_be_made_again(value: torch.Tensor) -> bool:
    """Whether a compiled function made the tensor, and is asked to make it again when it is gone."""
    maker = value.grad_fn
    return maker is not None and _made_by((maker, value.output_nr)) is not None


def made_again(node: Any, index: int, version: int, freed: weakref.ref[torch.Tensor]) -> torch.Tensor | None:
    """Input ``index`` of a compiled function's ``node``, as it was at that version; None where that cannot be told.

    Where gradients are on, it has the history that it had.
    """
    edge = edges_of_inputs(node).get(index)
    found = None if edge is None else _made_by(edge)
    if found is None:
        return None
    maker, node_of_maker, output = found
    made: torch.Tensor | None = maker(node_of_maker, output)
    if made is None or made._version != version:
        return None
    if not torch.is_grad_enabled():
        return made.detach().requires_grad_()
    return _placed(made, freed) if isinstance(freed, Freed) else made


def _made_by(edge: tuple[Any, int]) -> tuple[Callable[[Any, int], torch.Tensor | None], Any, int] | None:
    """What makes a result of a compiled function again, to be called with the node and the number of its output; None
    if an edge of autograd's graph does not lead to one."""
    node, output = edge
    while node is not None and node.name() in _OWN_NODES:
        node, output = node.next_functions[0]
    maker = getattr(getattr(type(node), "_forward_cls", None), "result_again", None)
    return None if maker is None else (maker, node, output)


def _placed(made: torch.Tensor, freed: Freed) -> torch.Tensor | None:
    """The tensor in the place of the one that is gone. Where that was overwritten, it has a history of its own, which
    leads to no hooks."""
    placed = freed.tensor(made.detach())
    return made if placed is None and not freed.hooked else placed


def places_of_gone(loose: Iterable[Any]) -> list[torch.Tensor]:
    """For each tensor of these that is gone, an empty one in its place in autograd's graph."""
    gone = [value for value in loose if isinstance(value, Freed) and value() is None]
    return [placed for freed in gone if (placed := freed.tensor(torch.empty(0))) is not None]
