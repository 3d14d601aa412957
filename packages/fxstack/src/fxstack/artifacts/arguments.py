"""The arguments of an export: bound to parameters, taken apart into leaves, and copied; the user's stay as they are."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import torch
from torch import nn

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import Scope
from fxstack.artifacts.errors import ExportError
from fxstack_artifact.program.parameters import EITHER, KEYWORD, POSITIONAL
from fxstack_artifact.program.structure import PLAIN


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an entry point, as the loader's ``Parameters`` reads it, and where its value is in a call."""

    name: str
    kind: str
    node: Any
    optional: bool = False

    def to_data(self) -> dict[str, Any]:
        """JSON data."""
        data: dict[str, Any] = {"name": self.name, "kind": self.kind, "node": self.node}
        return {**data, "optional": True} if self.optional else data


@dataclass(slots=True)
class Arguments:
    """A call of the model on copies. ``leaves`` are the tensors in it, in the order of the parameters, with their
    ``names``."""

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    parameters: list[Parameter] = field(default_factory=list)
    leaves: list[torch.Tensor] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    roots: dict[str, Any] = field(default_factory=dict)
    """Each parameter's value, by the name of an entry point's parameter."""
    training: bool = False
    varying: frozenset[str] = frozenset()
    """The parameters whose numbers vary, as far as they are numbers: tensors without dimensions stand for them."""
    numbers: list[str] = field(default_factory=list)
    sizes: frozenset[str] = frozenset()
    """The parameters whose integers are sizes that vary: tensors without elements stand for them, of that size."""
    sized: list[str] = field(default_factory=list)

    @property
    def scope(self) -> Scope:
        """What sources of the capture read these arguments from."""
        return Scope({**self.roots, "args": self.args, "kwargs": self.kwargs}, {})


def bind(
    model: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    training: bool = False,
    varying: frozenset[str] = frozenset(),
    sizes: frozenset[str] = frozenset(),
) -> Arguments:
    """The call ``model(*args, **kwargs)``. ExportError FXS502 if ``args`` is no tuple, and for an argument that no
    contract can describe, or where they do not fit the model's signature. ``training``: copies require
    grad where the arguments do."""
    if not isinstance(args, list | tuple):
        raise ExportError(
            "FXS502",
            f"args is a {type(args).__name__}, and no tuple",
            action="pass a tuple with the arguments of a call, (x,) for one; those by name as kwargs={...}",
        )
    signature, bound = _bound(model.forward if isinstance(model, nn.Module) else model, args, kwargs)
    made = Arguments(training=training, varying=varying, sizes=sizes)
    passed: list[Any] = []
    by_position = (
        True  # in calls of the artifact, which knows the parameters that were left to their defaults
    )
    all_given = True  # so far; what comes behind a parameter that was left out is passed by name
    for name, parameter in signature.parameters.items():
        given = bound.arguments.get(name, parameter.empty)
        if parameter.kind is parameter.VAR_POSITIONAL:
            passed += [
                _parameter(made, f"{name}[{i}]", POSITIONAL, value)
                for i, value in enumerate(() if given is parameter.empty else given)
            ]
        elif parameter.kind is parameter.VAR_KEYWORD:
            for key, value in ({} if given is parameter.empty else given).items():
                made.kwargs[key] = _parameter(made, key, KEYWORD, value)
        elif given is parameter.empty:
            by_position = _default(made, name, parameter, by_position) and by_position
            all_given = False
        elif parameter.kind is parameter.KEYWORD_ONLY or not by_position:
            made.kwargs[name] = _parameter(made, name, KEYWORD, given)
        else:
            kind = POSITIONAL if parameter.kind is parameter.POSITIONAL_ONLY else EITHER
            copied = _parameter(made, name, kind, given)
            if all_given:
                passed.append(copied)
            else:
                made.kwargs[name] = copied
    made.args = tuple(passed)
    return made


def _bound(
    called: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[inspect.Signature, inspect.BoundArguments]:
    """What is called, and the arguments by its parameters."""
    try:
        signature = inspect.signature(called)
    except ValueError as error:
        raise ExportError(
            "FXS502",
            f"{getattr(called, '__name__', called)!r} is a builtin that does not say what its parameters are",
            action="pass a function that calls it: lambda x: torch.relu(x)",
        ) from error
    try:
        return signature, signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ExportError(
            "FXS502",
            f"the arguments do not fit {getattr(called, '__qualname__', called)}{signature}: {error}",
            action="pass the arguments of a call: export(model, (x,), {'mask': mask})",
        ) from error


def reading_numbers(model: Callable[..., Any], arguments: Arguments) -> Callable[..., Any]:
    """``model``, called with tensors in the place of the numbers that vary, which it reads them from."""
    if not arguments.numbers and not arguments.sized:
        return model
    reads: dict[int, Callable[[torch.Tensor], Any]] = {
        id(arguments.roots[name]): _item for name in arguments.numbers
    }
    reads |= {id(arguments.roots[name]): _size for name in arguments.sized}
    places = {i: reads[id(value)] for i, value in enumerate(arguments.args) if id(value) in reads}
    names = {name: reads[id(value)] for name, value in arguments.kwargs.items() if id(value) in reads}

    def reading(*args: Any, **kwargs: Any) -> Any:
        given = [places[i](value) if i in places else value for i, value in enumerate(args)]
        named = {name: names[name](value) if name in names else value for name, value in kwargs.items()}
        return model(*given, **named)

    return reading


def _item(number: torch.Tensor) -> Any:
    return number.item()


def _size(number: torch.Tensor) -> int:
    return number.shape[0]


def _default(made: Arguments, name: str, parameter: inspect.Parameter, by_position: bool) -> bool:
    """A parameter that was left to its default: it may be passed, if it can be told whether that is the default."""
    value = parameter.default
    if not isinstance(value, PLAIN) or (isinstance(value, float) and not math.isfinite(value)):
        return False
    is_keyword = parameter.kind is parameter.KEYWORD_ONLY or not by_position
    kind = KEYWORD if is_keyword else POSITIONAL if parameter.kind is parameter.POSITIONAL_ONLY else EITHER
    made.parameters.append(Parameter(name, kind, {"const": value}, optional=True))
    return True


def _parameter(made: Arguments, name: str, kind: str, value: Any) -> Any:
    node: Any
    if name in made.varying and type(value) in (float, int):
        dtype = torch.float64 if type(value) is float else torch.int64
        node, copied = {"number": type(value).__name__}, _tensor(made, name, torch.tensor(value, dtype=dtype))
        made.numbers.append(name)
    elif name in made.sizes and type(value) is int and value >= 0:
        node, copied = {"leaf": None}, _tensor(made, name, torch.empty(value, 0))
        made.sized.append(name)
    else:
        node, copied = _take(made, name, value)
    made.parameters.append(Parameter(name, kind, node))
    made.roots[name] = copied
    return copied


def _take(made: Arguments, name: str, value: Any) -> tuple[Any, Any]:
    """The node that describes ``value``, and a copy of it."""
    if isinstance(value, torch.Tensor):
        return {"leaf": None}, _tensor(made, name, value)
    if isinstance(value, PLAIN) and not (isinstance(value, float) and not math.isfinite(value)):
        return {"const": value}, value
    if type(value) in (tuple, list):
        parts = [_take(made, f"{name}[{i}]", item) for i, item in enumerate(value)]
        nodes = [node for node, _ in parts]
        return {type(value).__name__: nodes}, type(value)(item for _, item in parts)
    if type(value) is dict and all(isinstance(key, (str, int)) for key in value):
        items = {key: _take(made, f"{name}[{key!r}]", item) for key, item in value.items()}
        pairs = [[key, node] for key, (node, _) in items.items()]
        return {"dict": pairs}, {key: item for key, (_, item) in items.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = {key: _take(made, f"{name}.{key}", getattr(value, key)) for key in value._fields}
        named = [f"{type(value).__module__}.{type(value).__qualname__}"]
        pairs = [[key, node] for key, (node, _) in fields.items()]
        return {"record": [*named, pairs]}, type(value)(*(item for _, item in fields.values()))
    raise ExportError(
        "FXS502",
        f"the argument {name} is a {type(value).__name__}",
        action="pass tensors, numbers, strings and None in tuples, lists, dicts and named tuples; wrap the model in "
        "one that makes other objects of them",
    )


def _tensor(made: Arguments, name: str, value: torch.Tensor) -> torch.Tensor:
    if type(value) not in (torch.Tensor, nn.Parameter) or value.layout is not torch.strided:
        raise ExportError(
            "FXS502",
            f"the argument {name} is a {type(value).__name__} of layout {value.layout}",
            action="pass a plain tensor",
        )
    if value.is_conj() or value.is_neg():
        raise ExportError(
            "FXS502",
            f"the argument {name} is a lazy conjugate or negative",
            action="pass .resolve_conj() of it",
        )
    copied = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
    copied.copy_(value.detach()).requires_grad_(made.training and value.requires_grad)
    made.leaves.append(copied)
    made.names.append(name)
    return copied
