"""What a trace can do with values: attributes, calls, operators, tensors, numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Protocol, TypeVar

import torch

from fx_interface.source import Source

V = TypeVar("V")
"""Values: ``values.base.Value``."""


class Attributes(Protocol[V]):
    """Attributes, by Python's order of lookup."""

    compared: tuple[V, str] | None
    """The object and the attribute that is being read to be compared with None, and for nothing else."""

    def class_source(self, cls: type) -> Source:
        """A class is read by reference: a name that leads to it may be given to another class."""

    def delete_generic(self, obj: Any, name: str) -> None:
        """``object.__delattr__(obj, name)``."""

    def delete_object(self, obj: Any, name: str) -> None:
        """``del obj.name``."""

    def guard_bases(self, cls: type) -> None:
        """What ``cls`` inherits from has been relied on."""

    def guard_type(self, value: Any) -> None:
        """An existing object's class has been relied on."""

    def has(self, value: V, name: str) -> bool:
        """``hasattr(value, name)``."""

    def has_special(self, value: V, name: str) -> bool:
        """Whether the value's class defines a special method; one that is None is there, and cannot be called."""

    relied_on: set[Any]
    """Functions of libraries that the graph calls, and names that they read, which are guarded."""

    def in_class(self, cls: type, name: str) -> Any:
        """What the classes of the method resolution order have under ``name``, undescribed; a sentinel if nothing."""

    def is_computed(self, cls: type, name: str) -> bool:
        """Whether the class has a data descriptor with a getter under the name, and not the slot that is written."""

    def of_builtin_object(self, owner: V, name: str) -> V:
        """An attribute of an object of a class that is not the program's: a container, a method, an iterator."""

    def of_exception(self, obj: Any, name: str) -> V:
        """What every exception has in a place of its own."""

    def of_known(self, owner: Any, name: str) -> V:
        """An attribute of a constant, function, class or module."""

    def of_new_function(self, function: Any, name: str) -> V | None:
        """What a function that the trace made has itself; None: no more than any function."""

    def set_of_new_function(self, function: Any, name: str, value: V) -> None:
        """``function.name = value`` of a function that the trace made."""

    def of_class_of(self, obj: Any, name: str) -> V:
        """What the class has under a name, bound to the object, as Python looks up special methods."""

    def of_object(self, obj: Any, name: str) -> V:
        """``obj.name``."""

    def of_super(self, owner: Any, name: str) -> V:
        """``super().name``."""

    def overrides(self, value: Any, name: str) -> bool:
        """Whether the class has a special method of its own, not that of ``object``."""

    def set_generic(self, obj: Any, name: str, value: V) -> None:
        """``object.__setattr__(obj, name, value)``."""

    def set_known(self, owner: Any, name: str, value: V) -> None:
        """An attribute of a known function, class or module is set."""

    def set_object(self, obj: Any, name: str, value: V) -> None:
        """``obj.name = value``."""

    def withdraws(self, value: V, name: str) -> bool:
        """Whether the value's class says by None that its instances lack what a base class or a protocol would give."""

    def of_known_plainly(self, owner: Any, name: str, function: Any) -> V:
        """``function(owner, name)``, a ``__getattribute__`` in C, which asks no other and no ``__getattr__``."""

    def without_getattr(self, obj: Any, name: str) -> V:
        """``object.__getattribute__(obj, name)``."""


class Calls(Protocol[V]):
    """Calls of known functions, and methods of what is known."""

    asked: dict[FunctionType, Any]
    """Who is asked about a call of a function in Python."""

    equal: Any
    """Calls of equal modules, which are repeated."""

    def call_folded(self, function: Any, args: list[V], kwargs: dict[str, V]) -> V:
        """A pure function that is run for real on known arguments."""

    def as_set(self, value: V, cls: type = ...) -> Any:
        """The members of any iterable; a set's in the order of its table."""

    def bound_special(self, owner: V, name: str) -> V:
        """A special method bound to its object."""

    def call_builtin_method(self, owner: V, name: str, args: list[V], kwargs: dict[str, V]) -> V:
        """A method of a list, tuple, dict or set value."""

    def call_known(self, owner: Any, args: list[V], kwargs: dict[str, V]) -> V:
        """Call a known object."""

    def by_substitute(self, owner: Any, substitute: Any, args: list[V], kwargs: dict[str, V]) -> V:
        """Call a function in C by the traceable function that stands for it."""

    def call_method_of_known(self, owner: Any, name: str, args: list[V], kwargs: dict[str, V]) -> V:
        """``constant.name(...)``."""

    def call_method_of_object(self, owner: Any, name: str, args: list[V], kwargs: dict[str, V]) -> V:
        """``obj.name(...)``."""

    def call_method_in_c(self, owner: Any, function: Any, args: list[V], kwargs: dict[str, V]) -> V:
        """A method descriptor or a slot's wrapper, called with an object of a class of the program."""

    def call_object(self, owner: Any, args: list[V], kwargs: dict[str, V]) -> V:
        """``obj(...)``: modules without hooks go straight to ``forward``."""

    def copy_dict(self, owner: Any) -> V:
        """A shallow copy."""

    def from_python(self, result: Any) -> V:
        """A fresh Python object, made by a pure function, as a value of the trace."""

    def is_pure(self, function: Any) -> bool:
        """Whether the function may be run for real on known arguments."""

    def item_of_known(self, owner: Any, key: V) -> V:
        """``constant[key]``."""

    def python_object(self, value: V) -> Any:
        """A Python object equal to a value whose parts are all known; containers are copied. NotConstant otherwise."""

    def set_of(self, items: list[V], cls: type = ...) -> V:
        """A new set."""

    def special(self, owner: V, name: str, args: list[V]) -> V:
        """A special method, looked up on the class only."""


class Operators(Protocol[V]):
    """Python's operators."""

    def binary(self, symbol: str, lhs: V, rhs: V) -> V:
        """``lhs symbol rhs``; a symbol ending in ``=`` is the augmented operator."""

    def compare(self, symbol: str, lhs: V, rhs: V) -> V:
        """``lhs symbol rhs`` for ``<``, ``==`` and so on."""

    def equal_or_same(self, lhs: V, rhs: V) -> bool:
        """``lhs is rhs or lhs == rhs``, as containers compare; tuples that are one are equal, too."""

    def same(self, lhs: V, rhs: V) -> bool:
        """``lhs is rhs``."""

    def unary(self, symbol: str, value: V) -> V:
        """``-x``, ``+x``, ``~x``."""


class Tensors(Protocol[V]):
    """Operations on tensors."""

    journal: Any
    """What notes operations, while a call is recorded."""

    inputs: list[Any]
    """The tensors that the trace was given."""

    disabled: Any
    """Which classes' ``__torch_function__`` the program has switched off."""

    skips_one: bool
    """Whether the next question to a class's ``__torch_function__`` is left out."""

    below: Any
    """The modes of ``__torch_dispatch__`` that are at work."""

    ragged: Any
    """What stands for ragged sizes and nested tensors in torch's functions."""

    has_nested: bool
    """Whether the trace has met a nested tensor."""

    duals: Any
    """The level of dual tensors that the program has entered."""

    stretch: Any
    """The operations so far that autograd follows through classes that dispatch."""

    chooses: bool
    """Whether there are objects that data choose."""

    stand_ins: list[Any]
    """Copies of what data choose, which may be read only."""

    replaced: dict[int, Any]
    """The tensors whose data the program has set, by id."""

    leaves: list[tuple[str, Any]]
    """The leaves that are made before the graph runs: the variable of each, and what makes it."""

    def of_chosen(self, chosen: Any) -> Any:
        """A tensor equal to one that data choose, at this point."""

    def chosen_attribute(self, chosen: Any, name: str) -> V:
        """An attribute of an object that data choose."""

    def chosen_method(self, chosen: Any, name: str, args: list[V], kwargs: dict[str, V]) -> V:
        """A call of a method of an object that data choose."""

    def as_class(self, owner: Any, cls: type, *, followed: bool = ...) -> Any:
        """Another tensor, of that class, with the same memory and history."""

    def becomes(self, tensor: Any, meta: Any) -> None:
        """What autograd knows of a tensor has changed, and so of its base and the base's views."""

    def by_override(self, function: Callable[..., Any], args: list[V]) -> V | None:
        """What a mode or a class of the program makes of a builtin function on tensors; None: torch does not ask."""

    def call_function(self, function: Callable[..., Any], args: Sequence[V], kwargs: dict[str, V]) -> V:
        """A call of a torch function or operator."""

    def call_method(self, owner: Any, name: str, args: list[V], kwargs: dict[str, V]) -> V:
        """``tensor.name(...)``."""

    def check_special(self, value: V, *names: str) -> None:
        """Python asks the class of a tensor first what an operator or a builtin function means."""

    def describe_result(self, result: Any, fakes: list[Any], found: list[bool]) -> Any:
        """What a result without data is: new tensors, arguments, containers of them."""

    def failure(self, function: Callable[..., Any], error: Exception, args: Sequence[V] = ...) -> Exception:
        """What the failure of a run on tensors without data means: a break, or an exception of the program."""

    @property
    def followed(self) -> Any:
        """Tensors whose content is followed."""

    def get_attr(self, owner: Any, name: str) -> V:
        """``tensor.name``."""

    def get_item(self, owner: Any, key: V) -> V:
        """``tensor[key]``."""

    def input(self, real: torch.Tensor, source: Source) -> Any:
        """An existing tensor as an input of the graph."""

    def operation(
        self, op: str, target: Any, function: Callable[..., Any], args: list[V], kwargs: dict[str, V]
    ) -> V:
        """One operation: what the first that takes it makes of it."""

    def plain(self, call: Any) -> V:
        """An operation that torch's own kernels carry out."""

    def plain_method(self, owner: Any, name: str, args: list[V], kwargs: dict[str, V]) -> V:
        """``tensor.name(...)``, of which neither class nor mode is asked."""

    @property
    def modes(self) -> Any:
        """The modes of ``__torch_function__`` that are at work."""

    def number(self, tensor: Any, what: str, code: str = ...) -> V:
        """The only element of a tensor; its class has to be asked for that of one that dispatches."""

    def overriding(self, values: list[V]) -> list[type]:
        """The classes that take over an operation, in torch's order: subclasses before their bases."""

    def result_of(self, node: Any, described: Any, tensors: list[Any]) -> V:
        """The value of a node's result, as ``describe_result`` has it."""

    def set_attr(self, owner: Any, name: str, value: V) -> None:
        """``tensor.name = value``."""

    def set_item(self, owner: Any, key: V, value: V) -> None:
        """``tensor[key] = value``."""

    def spec_tree(self, described: Any, tensors: list[Any]) -> Any:
        """The specs of a described result."""

    @property
    def state(self) -> Any:
        """The gradient mode and what else holds for operations now."""

    def torchs_method(self, owner: Any, name: str, args: list[V], kwargs: dict[str, V]) -> V:
        """A method that torch gives each tensor, whatever the class has under that name."""

    def torchs_attribute(self, owner: Any, name: str) -> V:
        """What torch gives each tensor under a name, or what the class makes of that being read."""

    emptied: bool

    @property
    def trained(self) -> set[Any]:
        """Nodes of tensors that the program asks gradients of."""


class Numbers(Protocol[V]):
    """Numbers that are computed when the code runs."""

    def call(self, function: Any, args: Sequence[V]) -> V | None:
        """A call of a function of numbers; None where it is none, or what it is called with must be known."""

    def compare(self, symbol: str, lhs: V, rhs: V) -> bool | None:
        """``lhs symbol rhs`` of two numbers; from now on the trace depends on the answer. None for anything else."""

    def compute(self, name: str, values: Sequence[V]) -> V | None:
        """The number that Python computes when the code runs; None where not all of it is there before the graph."""

    def formula(self, value: V) -> Any:
        """How a number follows from what the program reads; None for what is no number, or not known so far."""

    def method(self, name: str, owner: V, args: list[V], kwargs: dict[str, V]) -> V | None:
        """A method of a number, by the name that its class gives it; None as for ``call``."""

    def tensor(self, function: str, dtype: torch.dtype, values: Sequence[V]) -> Any:
        """A tensor with one dimension that torch makes of numbers before the graph runs; None as for ``compute``."""

    def value(self, made: Any) -> V:
        """The value of the trace for what is computed."""


class Arrays(Protocol[V]):
    """Arrays of numpy."""

    def binary(self, symbol: str, function: Any, lhs: V, rhs: V) -> V:
        """``lhs symbol rhs``."""

    def call_function(self, function: Any, args: list[V], kwargs: dict[str, V]) -> V:
        """A call of a pure function or operator with arrays among its arguments, or numbers."""

    def call_method(self, owner: Any, name: str, args: list[V], kwargs: dict[str, V]) -> V:
        """``array.name(...)``."""

    def get_attr(self, owner: Any, name: str) -> V:
        """``array.name``."""

    def get_item(self, owner: Any, key: V) -> V:
        """``array[key]``."""

    def iterate(self, owner: Any, is_reversed: bool = False) -> Any:
        """``iter(array)``, or ``reversed(array)``."""

    def set_item(self, owner: Any, key: V, value: V) -> None:
        """``array[key] = value``."""
