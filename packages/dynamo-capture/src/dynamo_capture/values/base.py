"""What every value on the symbolic stack can be asked.

A value stands for one Python object of the traced program. Methods take the ``Context`` that is running; they raise
``UserRaise`` where the program would raise, and ``GraphBreak`` where the translator cannot follow.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeAlias, TypeVar

from dynamo_capture.context.tracing import Tracing
from dynamo_capture.foundation.break_kinds import (
    NOT_IN_PYTHON,
    NOT_RECONSTRUCTIBLE,
    OBJECT_OPERATION,
    UNKNOWN_ARGUMENT,
)
from dynamo_capture.foundation.class_members import has_member, member, module_of, name_of
from dynamo_capture.foundation.errors import GraphBreak, NotConstant
from dynamo_capture.foundation.type_names import has_sequence_slots, message_name
from fx_interface.source import Source
from fx_interface.symbols import Expr

T = TypeVar("T")

_IN_PLACE_OF = {"__iter__": ("__getitem__",), "__contains__": ("__iter__", "__getitem__")}


class IdentityKey:
    """The dictionary key that stands for an object hashed by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(id(self.value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.value is self.value


class Value:
    """Base of all values. ``source`` says where an existing object is read, None for what the trace made."""

    __slots__ = ()
    python_class: ClassVar[type]
    """``type(x)``, where it is the same for all values of the class."""
    source: Source | None = None
    is_mutable: ClassVar[bool] = False
    """Whether two paths to such an object could turn out to lead to one."""
    is_read_again: ClassVar[bool] = False
    """Whether each path that leads to it has a value, while nobody asks whether it is one object."""

    is_open: bool = False
    """Whether it is a float that is known only when the code runs, and that nothing has asked for."""
    varies: bool = False
    """Whether it is a number that is not fixed."""

    expr: Expr | None = None
    """The expression of sizes that it is, if it is a symbolic integer."""
    base: Value | None = None
    """What an object of a class made from a container holds as one."""

    def stands_for(self, known: object) -> bool:
        """Whether it is known to be that object."""
        return False

    def known_as(self, *kinds: type[T]) -> T | None:
        """The object that it is known to be, if that is of exactly one of the classes."""
        return None

    def known_class(self) -> type | None:
        """The class that it is known to be; None for what is no class."""
        return None

    def number(self) -> Any:
        """The number that it is: an expression of sizes, or a constant; None where it is none."""
        return None

    def python_type(self) -> type:
        """The class that ``type(x)`` gives."""
        return self.python_class

    def class_name(self, tx: Context) -> str:
        """The name of the class, as an exception tells it: another class is another version."""
        return message_name(self.python_type())

    @property
    def is_existing(self) -> bool:
        """Whether the object existed before the trace, so that it is read rather than made."""
        return self.source is not None

    def children(self, tx: Context) -> list[Value]:
        """What must be made before it, where it is made anew; a graph break where Python cannot make it."""
        raise GraphBreak(NOT_RECONSTRUCTIBLE, f"{self.describe()} outlives the captured code")

    def parts(self, tx: Context) -> list[Value] | None:
        """The values in a structure, which is a tuple, list or dict; None for anything else."""
        return None

    def mapped(self, tx: Context, change: Callable[[Value], Value]) -> Value:
        """A structure, or slice, of what ``change`` makes of each value in it; anything else is as it is."""
        return self

    def rebuilt(self, tx: Context, change: Callable[[Value], Any]) -> Any:
        """The Python object that torch is given for a structure or slice: of what ``change`` makes of each value."""
        raise self.no_argument()

    def fake(self, tx: Context, fakes: dict[int, Any]) -> Any:
        """What stands for it in a run of an operation without data; ``fakes`` has the tensors so far."""
        return self.rebuilt(tx, lambda part: part.fake(tx, fakes))

    def argument(self, tx: Context) -> Any:
        """What a node of the graph has for it."""
        return self.rebuilt(tx, lambda part: part.argument(tx))

    def frozen(self, tx: Context, tensors: list[Any]) -> Any:
        """All that the outcome of an operation depends on, hashable; the tensors in it are added to ``tensors``."""
        raise self.no_argument()

    def no_argument(self) -> GraphBreak:
        """The graph break where a function of torch is called with it."""
        return GraphBreak(UNKNOWN_ARGUMENT, f"{self.describe()} is passed to a torch function")

    def as_constant(self) -> Any:
        """The object itself, where it is known and immutable; NotConstant otherwise."""
        raise NotConstant(self)

    def python_object(self, tx: Context) -> Any:
        """A Python object equal to it, if its parts are all known; containers are copied. NotConstant otherwise."""
        return self.as_constant()

    def identity(self) -> object:
        """Two values are the same object (``is``) exactly where their identities are one Python object."""
        return self

    def get_attr(self, tx: Context, name: str) -> Value:
        """``x.name``: by Python's own order, over what the class has and what ``own_attribute`` gives."""
        return tx.attributes.of_builtin_object(self, name)

    def own_attribute(self, tx: Context, name: str) -> Value | None:
        """What the object itself keeps under ``name``, in a slot or in its ``__dict__``; None: nothing."""
        return None

    def set_attr(self, tx: Context, name: str, value: Value) -> None:
        """``x.name = value``."""
        if name == "__class__":
            raise self.unsupported("changing the class")
        raise self._fixed_attribute(tx, name, "setting", "can't set attribute")

    def del_attr(self, tx: Context, name: str) -> None:
        """``del x.name``."""
        raise self._fixed_attribute(tx, name, "deleting", "can't delete attribute")

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """``x(*args, **kwargs)``."""
        raise self._lacking(tx, "__call__", "calling", "{name!r} object is not callable")

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """``x.name(*args, **kwargs)``."""
        found = self.get_attr(tx, name)
        if getattr(found, "receiver", None) is self and getattr(found, "name", None) == name:
            return tx.calls.call_builtin_method(self, name, args, kwargs)
        return found.call(tx, args, kwargs)

    def get_item(self, tx: Context, key: Value) -> Value:
        """``x[key]``. A class Python asks for ``__class_getitem__``, and refuses in other words."""
        if issubclass(self.python_type(), type):
            raise self.unsupported("indexing")
        raise self._lacking(tx, "__getitem__", "indexing", "{name!r} object is not subscriptable")

    def set_item(self, tx: Context, key: Value, value: Value) -> None:
        """``x[key] = value``."""
        if has_member(self.python_type(), "__delitem__"):  # which has a slot for both
            raise self.unsupported("assigning an item")
        raise self._lacking(
            tx, "__setitem__", "assigning an item", "{name!r} object does not support item assignment"
        )

    def del_item(self, tx: Context, key: Value) -> None:
        """``del x[key]``."""
        is_index = has_sequence_slots(self.python_type()) and has_member(key.python_type(), "__index__")
        refuses = "doesn't" if is_index else "does not"
        raise self._lacking(
            tx, "__delitem__", "deleting an item", f"{{name!r}} object {refuses} support item deletion"
        )

    def contains(self, tx: Context, item: Value) -> bool:
        """``item in x``."""
        raise self._lacking(
            tx, "__contains__", "testing membership", "argument of type {name!r} is not iterable"
        )

    def length(self, tx: Context) -> int:
        """``len(x)``."""
        raise self._lacking(tx, "__len__", "taking the length", "object of type {name!r} has no len()")

    def concatenated(self, tx: Context, other: Value, *, in_place: bool) -> Value | None:
        """``x + other`` of containers, ``x += other``; None where Python's class has none for these."""
        return None

    requires_grad: bool = False
    """Whether it is a tensor that autograd follows."""

    def own_key(self, tx: Context) -> Any:
        """What stands for it as a key of a dictionary; None where that is the object itself."""
        return None

    def identity_key(self, tx: Context) -> IdentityKey:
        """What stands for it as a key by which object it is."""
        tx.keyed[id(self)] = self
        return IdentityKey(self)

    def holds_tensor(self, tx: Context) -> bool:
        """Whether it is a tensor, or a list, tuple or dict with one in it."""
        return False

    def is_callable(self, tx: Context) -> bool:
        """``callable(x)``."""
        return has_member(self.python_type(), "__call__")

    def index_width(self) -> Any:
        """How many dimensions of a tensor it takes as an index; ``...`` for the rest, None for what is no usual one."""
        return None

    def copied(self, tx: Context) -> Value:
        """``copy.copy(x)``."""
        raise GraphBreak(NOT_IN_PYTHON, f"copy.copy() of {self.describe()}")

    def index(self, tx: Context) -> Any:
        """The constant that it is as an index: an integer, a slice; a symbolic one is fixed."""
        return tx.constant(self)

    def truth(self, tx: Context) -> bool:
        """``bool(x)``: an object is true unless its class says what it is."""
        cls = self.python_type()
        if hasattr(cls, "__bool__") or hasattr(cls, "__len__"):
            raise self.unsupported("testing the truth")
        return True

    def iterate(self, tx: Context) -> IteratorValue:
        """``iter(x)``."""
        raise self._lacking(tx, "__iter__", "iterating", "{name!r} object is not iterable")

    def items_for_list(self, tx: Context) -> list[Value]:
        """The items, for a list or a tuple made of them: objects of the program are asked how many there are."""
        return self.unpack(tx)

    def unpack(self, tx: Context) -> list[Value]:
        """Every item, as ``[*x]``."""
        return self.iterate(tx).drain(tx)

    def one_by_one(self, tx: Context, hinted: bool = False) -> Iterator[Value]:
        """The items as they come, for a container that takes each in before the next is asked for: the program may
        look at it meanwhile, or raise. ``hinted``: objects of the program are asked how many there are."""
        return iter(self.items_for_list(tx) if hinted else self.unpack(tx))

    def _lacking(self, tx: Context, special: str, what: str, text: str) -> Exception:
        """TypeError where the class has no such special method, nor what Python uses in its place, as Python words it;
        else a graph break."""
        cls = self.python_type()
        if not any(has_member(cls, name) for name in (special, *_IN_PLACE_OF.get(special, ()))):
            return tx.raises(TypeError, text.format(name=self.class_name(tx)))
        return self.unsupported(what)

    def _fixed_attribute(self, tx: Context, name: str, what: str, refused: str) -> Exception:
        """AttributeError where instances of the class have no attributes of their own; else a graph break."""
        cls = self.python_type()
        if module_of(cls) == "builtins" and cls.__dictoffset__ == 0:
            found = next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), None)
            if isinstance(found, types.MemberDescriptorType):
                return tx.raises(AttributeError, "readonly attribute")
            text = f"has no attribute {name!r}" if found is None else f"attribute {name!r} is read-only"
            return tx.raises(AttributeError, f"{message_name(cls)!r} object {text}")
        if name in member(cls, "_fields", ()):
            return tx.raises(AttributeError, refused)
        return self.unsupported(f"{what} the attribute {name!r}")

    def unsupported(self, what: str) -> GraphBreak:
        """The graph break for an operation that this kind of value does not have."""
        return GraphBreak(OBJECT_OPERATION, f"{what} of {self.describe()} is not supported")

    def describe(self) -> str:
        """A few words for messages."""
        try:
            name = name_of(self.python_type())
        except NotImplementedError:
            name = type(self).__name__
        source = getattr(self, "source", None)
        return f"{name} {source}" if source is not None else f"a {name}"


class IteratorStop(Exception):
    """Inside: an iterator is exhausted. ``value`` is what a generator returned."""

    def __init__(self, value: Value | None = None) -> None:
        self.value = value

    def raised(self, tx: Context) -> Exception:
        """The StopIteration that Python raises: with an argument only where a generator returned something."""
        is_empty = self.value is None or tx.force(self.value).stands_for(None)
        return tx.raises(StopIteration, *([] if is_empty else [self.value]))


class IteratorValue(Value):
    """An iterator that the trace made."""

    __slots__ = ()

    def next(self, tx: Context) -> Value:
        """The next item; IteratorStop at the end."""
        raise NotImplementedError

    def iterate(self, tx: Context) -> IteratorValue:
        return self

    def drain(self, tx: Context) -> list[Value]:
        """All remaining items."""
        items = []
        tx.effects.advances(self)
        while True:
            try:
                items.append(self.next(tx))
            except IteratorStop:
                return items

    def one_by_one(self, tx: Context, hinted: bool = False) -> Iterator[Value]:
        tx.effects.advances(self)
        while True:
            try:
                item = self.next(tx)
            except IteratorStop:
                return
            yield item

    def contains(self, tx: Context, item: Value) -> bool:
        """``item in iterator``: takes items up to the one that it is."""
        tx.effects.advances(self)
        while True:
            try:
                if tx.operators.equal_or_same(self.next(tx), item):
                    return True
            except IteratorStop:
                return False

    def truth(self, tx: Context) -> bool:
        return True

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name in ("__iter__", "__next__") and (args or kwargs):
            raise GraphBreak(NOT_IN_PYTHON, f"{self.describe()}.{name} gets arguments that it does not take")
        if name == "__iter__":
            return self
        if name == "__next__":
            tx.effects.advances(self)
            try:
                return self.next(tx)
            except IteratorStop as stop:
                raise stop.raised(tx) from None
        return super().call_method(tx, name, args, kwargs)


class Lazy(Value):
    """An item of an existing container that nobody has looked at yet; ``force`` in ``Context`` gives its value."""

    __slots__ = ("real", "source", "value")

    def __init__(self, real: Any, source: Source | None) -> None:
        self.real = real
        self.source = source
        self.value: Value | None = None

    def python_type(self) -> type:
        return type(self.real)

    def rebuilt(self, tx: Context, change: Callable[[Value], Any]) -> Any:
        return change(tx.force(self))

    def frozen(self, tx: Context, tensors: list[Any]) -> Any:
        return tx.force(self).frozen(tx, tensors)

    @property
    def is_existing(self) -> bool:
        return True


class NullValue(Value):
    """The NULL that calls push."""

    __slots__ = ()


NULL = NullValue()

Context: TypeAlias = "Tracing[Value]"
"""The running trace, as values, opcodes and handlers see it."""
