"""Operators of others that write to their arguments: for each a functional form, made from its schema.

``mylib::scale_(Tensor(a!) x, Tensor y) -> ()`` becomes ``aot_autograd::mylib__scale___default(Tensor x, Tensor y) ->
Tensor``: it copies what is written, calls the operator on the copies, and returns its results, then the copies.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import torch
from torch._ops import OpOverload

_LIBRARY: Final[Any] = torch.library.Library("aot_autograd", "FRAGMENT")  # type: ignore[no-untyped-call]
_WRITTEN = re.compile(r"\(\w+! -> [^)]*\)|\(\w+!\)")
_COPIED: Final = {"Tensor": "Tensor", "Optional[Tensor]": "Tensor", "List[Tensor]": "Tensor[]"}
"""Types of arguments that may be written, and what the functional form returns for them; for None an empty tensor."""


@cache
def functional_form(op: OpOverload) -> OpOverload | None:
    """The functional form; None for torch's own operators, and where a result shares memory with an argument."""
    schema = op._schema
    namespace, name = schema.name.split("::")
    written = [a for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    if namespace in ("aten", "prims", "prim") or any(ret.alias_info is not None for ret in schema.returns):
        return None
    if not all(str(a.type) in _COPIED for a in written):
        return None
    made = f"{namespace}__{name}__{schema.overload_name or 'default'}"
    known = getattr(torch.ops.aot_autograd, made, None)
    if known is not None:  # the operator was declared anew
        return known.default  # type: ignore[no-any-return]
    arguments = _WRITTEN.sub("", str(schema)).partition("(")[2].rpartition(" -> ")[0]
    results = [str(ret.type) for ret in schema.returns] + [_COPIED[str(a.type)] for a in written]
    returns = results[0] if len(results) == 1 else f"({', '.join(results)})"
    _LIBRARY.define(f"{made}({arguments} -> {returns}")
    keys = [a.name if a.kwarg_only else n for n, a in enumerate(schema.arguments) if a in written]
    _LIBRARY.impl(made, _on_copies(op, keys), "CompositeExplicitAutograd")
    found: OpOverload = getattr(torch.ops.aot_autograd, made).default
    return found


def restore(name: str) -> None:
    """Make the functional form that the operator ``name`` ("mylib::scale_.default") has, in a new process."""
    namespace, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    functional_form(_named(namespace, packet, overload))


def _named(namespace: str, packet: str, overload: str) -> OpOverload:
    found: OpOverload = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    return found


def _on_copies(op: OpOverload, keys: list[int | str]) -> Callable[..., Any]:
    count = len(op._schema.returns)
    path = (*op._schema.name.split("::"), op._overloadname)

    def run(*args: Any, **kwargs: Any) -> Any:
        places: dict[int | str, Any] = dict(enumerate(args))
        places.update(kwargs.items())
        copies = {key: _copied(places.get(key)) for key in keys}
        given = [copies.get(n, arg) for n, arg in enumerate(args)]
        result = _named(*path)(*given, **{name: copies.get(name, arg) for name, arg in kwargs.items()})
        made = [result] if count == 1 else list(result or ())
        made += [torch.empty(0) if copy is None else copy for copy in copies.values()]
        return made[0] if len(made) == 1 else tuple(made)

    return run


def _copied(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [part.clone() for part in value]
    return None if value is None else value.clone()
