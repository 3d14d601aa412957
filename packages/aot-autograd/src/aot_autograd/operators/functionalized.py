"""Operators of others that write to their arguments: for each a functional form, made from its schema.

``mylib::scale_(Tensor(a!) x, Tensor y) -> ()`` becomes ``aot_autograd::mylib__scale___default(Tensor x, Tensor y) ->
Tensor``: it copies what is written, calls the operator on the copies, and returns its results, then the copies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

import torch
from torch._ops import OpOverload

from fx_interface.operators import OperatorLibrary
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec

_LIBRARY: Final[Any] = torch.library.Library("aot_autograd", "FRAGMENT")  # type: ignore[no-untyped-call]
_WRITTEN = re.compile(r"\(\w+! -> [^)]*\)|\(\w+!\)")
_COPIED: Final = {"Tensor": "Tensor", "Optional[Tensor]": "Tensor", "List[Tensor]": "Tensor[]"}
"""Types of arguments that may be written, and what the functional form returns for them; for None an empty tensor."""


@cache
def functional_form(op: OpOverload) -> OpOverload | None:
    """The functional form; None for torch's own operators, and where a result shares memory with an argument, unless
    the results are the written arguments."""
    schema = op._schema
    namespace, name = schema.name.split("::")
    written = [a for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    if namespace in ("aten", "prims", "prim"):
        return None
    plain = [ret for ret in schema.returns if ret.alias_info is None]
    if len(plain) < len(schema.returns) and not _returns_written(op, written):
        return None
    if not all(str(a.type) in _COPIED for a in written):
        return None
    made = f"{namespace}__{name}__{schema.overload_name or 'default'}"
    known = getattr(torch.ops.aot_autograd, made, None)
    if known is not None:  # the operator was declared anew
        return known.default  # type: ignore[no-any-return]
    arguments = _WRITTEN.sub("", str(schema)).partition("(")[2].rpartition(" -> ")[0]
    results = [str(ret.type) for ret in plain] + [_COPIED[str(a.type)] for a in written]
    returns = results[0] if len(results) == 1 else f"({', '.join(results)})"
    _LIBRARY.define(f"{made}({arguments} -> {returns}")
    keys = [a.name if a.kwarg_only else n for n, a in enumerate(schema.arguments) if a in written]
    _LIBRARY.impl(made, _on_copies(op, keys), "CompositeExplicitAutograd")
    found: OpOverload = getattr(torch.ops.aot_autograd, made).default
    _ORIGINS[found] = (op, keys)
    return found


_ORIGINS: Final[dict[OpOverload, tuple[OpOverload, list[int | str]]]] = {}
"""Of each functional form the operator, and position or name of what that writes."""


def _returns_written(op: OpOverload, written: list[Any]) -> bool:
    returns = op._schema.returns
    return len(returns) == len(written) and all(
        ret.alias_info is not None and ret.alias_info.before_set == arg.alias_info.before_set
        for ret, arg in zip(returns, written, strict=True)
    )


def form_spec(
    operators: OperatorLibrary,
    form: OpOverload,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    env: ShapeEnv,
) -> Any:
    """The spec of a functional form's result: those of the operator, and copies of what it writes."""
    op, keys = _ORIGINS[form]
    results: list[Any] = []
    if len(op._schema.returns) + len(keys) == len(form._schema.returns) and op._schema.returns:
        made: Any = operators.infer(op, args, kwargs, env)
        results = [made] if len(op._schema.returns) == 1 else list(made)
    places: dict[int | str, Any] = dict(enumerate(args))
    places.update(kwargs.items())
    results += [_copy_spec(operators, places.get(key), env) for key in keys]
    return results[0] if len(results) == 1 else tuple(results)


def is_form(op: OpOverload) -> bool:
    """Whether the operator is a functional form that was made here."""
    return op in _ORIGINS


def _copy_spec(operators: OperatorLibrary, spec: Any, env: ShapeEnv) -> Any:
    if isinstance(spec, (list, tuple)):
        return [_copy_spec(operators, part, env) for part in spec]
    if spec is None:
        return TensorSpec((0,), (1,), torch.get_default_dtype(), torch.device("cpu"))
    return operators.infer(torch.ops.aten.clone.default, (spec,), {}, env)


def restore(name: str) -> None:
    """Make the functional form that the operator ``name`` ("mylib::scale_.default") has, in a new process."""
    namespace, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    functional_form(_named(namespace, packet, overload))


def _named(namespace: str, packet: str, overload: str) -> OpOverload:
    found: OpOverload = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    return found


def _on_copies(op: OpOverload, keys: list[int | str]) -> Callable[..., Any]:
    count = sum(ret.alias_info is None for ret in op._schema.returns)
    path = (*op._schema.name.split("::"), op._overloadname)

    def run(*args: Any, **kwargs: Any) -> Any:
        places: dict[int | str, Any] = dict(enumerate(args))
        places.update(kwargs.items())
        copies = {key: _copied(places.get(key)) for key in keys}
        given = [copies.get(n, arg) for n, arg in enumerate(args)]
        result = _named(*path)(*given, **{name: copies.get(name, arg) for name, arg in kwargs.items()})
        made = [result] if count == 1 else list(result) if count else []
        made += [torch.empty(0) if copy is None else copy for copy in copies.values()]
        return made[0] if len(made) == 1 else tuple(made)

    return run


def _copied(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [part.clone() for part in value]
    return None if value is None else value.clone()
