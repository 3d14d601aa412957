"""Functions that a graph calls and does not look into, where the function itself is no target of a node: one that takes
instances of data classes is given what the instances hold, one of TorchScript has no name by which to find it.

inner(Pair(a, b), 2)    ->    OpaqueCall(inner, ...)(a, b, 2)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Form: TypeAlias = int | tuple[Any, ...]
"""How an argument is made: the place among what is given, or a class with the names and forms of its content."""


class OpaqueCall:
    """Equal where the function and the forms are. ``is_pure``: it does nothing but compute."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Form, ...],
        kwargs: tuple[tuple[str, Form], ...],
        name: str,
        is_pure: bool = False,
    ) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.is_pure = is_pure
        self.__name__ = self.__qualname__ = name

    def __call__(self, *given: Any) -> Any:
        args = [_made(form, given) for form in self.args]
        return self.function(*args, **{name: _made(form, given) for name, form in self.kwargs})

    def _key(self) -> tuple[Any, ...]:
        return self.function, self.args, self.kwargs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueCall) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def _made(form: Form, given: tuple[Any, ...]) -> Any:
    if isinstance(form, int):
        return given[form]
    cls, fields = form
    if cls in (list, tuple):
        return cls(_made(part, given) for part in fields)
    if cls is dict:
        return {name: _made(part, given) for name, part in fields}
    made = object.__new__(cls)
    for name, part in fields:
        object.__setattr__(made, name, _made(part, given))
    return made
