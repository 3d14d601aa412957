"""``dataclass`` for the stack's own records: what ``dataclasses.dataclass`` makes, in a fifteenth of the time.

The standard library writes the methods of each class as text and compiles it, which takes half a millisecond a class:
a third of importing the stack. Here the text depends on how many fields there are and of which kind, and is compiled
once; a class gets a copy of that code with the names of its own fields in it:

    def __eq__(self, other): ... (self.f0, self.f1) == (other.f0, other.f1)  # compiled once, for two fields
    code.replace(co_names=("__class__", "low", "high", "NotImplemented"))  # for each class that has two

``dataclasses.fields``, ``replace`` and ``is_dataclass`` work as for any other dataclass: what they read is made when it
is first read. A class that asks for what is not written here is given to the standard library.
"""

from __future__ import annotations

import dataclasses
import functools
import reprlib
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError
from types import CellType, CodeType, FunctionType, MemberDescriptorType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # a type checker knows its rules
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True):
        """``dataclasses.dataclass`` with the parameters that the stack uses."""
        if cls is None:
            return functools.partial(_made, frozen=frozen, slots=slots, eq=eq)
        return _made(cls, frozen=frozen, slots=slots, eq=eq)


Fields = dict[str, "dataclasses.Field[Any]"]

_UNSET: Any = type("_Unset", (), {"__slots__": (), "__repr__": lambda self: "<factory>"})()
"""The default of a parameter whose field has a factory."""
_ELSEWHERE = ("ClassVar", "InitVar", "KW_ONLY")
"""What annotations may name that makes something other than a field."""


class _FieldsView:
    """``__dataclass_fields__`` of a class: as the standard library marks fields, from when it is first read."""

    __slots__ = ("cls", "name")

    def __init__(self, cls: type, name: str) -> None:
        self.cls = cls
        self.name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        value = self._made()
        setattr(self.cls, self.name, value)
        return value

    def _made(self) -> Any:
        fields: Fields = vars(self.cls)["__record_fields__"]
        for one in fields.values():
            one.kw_only = one.kw_only is True
            one._field_type = dataclasses._FIELD  # type: ignore[attr-defined]
        return fields


class _ParametersView(_FieldsView):
    """``__dataclass_params__`` of a class: those of one that the standard library makes alike."""

    __slots__ = ("parameters",)

    def __init__(self, cls: type, name: str, parameters: dict[str, Any]) -> None:
        super().__init__(cls, name)
        self.parameters = parameters

    def _made(self) -> Any:
        return vars(dataclasses.make_dataclass("Alike", (), **self.parameters))[self.name]


class _MethodView:
    """A method that is made when it is first looked up: of the classes that are loaded few are used in a program."""

    __slots__ = ("arguments", "cls", "make", "name")

    def __init__(self, cls: type, name: str, make: Callable[..., FunctionType], *arguments: Any) -> None:
        self.cls = cls
        self.name = name
        self.make = make
        self.arguments = arguments

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if vars(self.cls).get(self.name) is self:
            setattr(self.cls, self.name, self.make(self.cls, *self.arguments))
        return vars(self.cls)[self.name].__get__(instance, owner)


def _made(cls: type, *, frozen: bool, slots: bool, eq: bool) -> type:
    fields = _fields_of(cls, frozen)
    if fields is None:
        return dataclasses.dataclass(frozen=frozen, slots=slots, eq=eq)(cls)
    if slots:
        cls = _with_slots(cls, fields)
    names = vars(cls)
    added: dict[str, Any] = {
        "__record_fields__": fields,
        "__match_args__": tuple(
            [name for name, one in fields.items() if one.init and one.kw_only is not True]
        ),
        "__repr__": _repr,
    }
    parameters: dict[str, Any] = {"frozen": frozen, "eq": eq}
    added["__dataclass_fields__"] = _FieldsView(cls, "__dataclass_fields__")
    added["__dataclass_params__"] = _ParametersView(cls, "__dataclass_params__", parameters)
    if "__init__" not in names:
        added["__init__"] = _MethodView(cls, "__init__", _init_of, fields, frozen)
    if eq:
        compared = tuple([name for name, one in fields.items() if one.compare])
        added["__eq__"] = _MethodView(cls, "__eq__", _eq_of, compared)
        hashed = names.get("__hash__")
        if hashed is None:
            added["__hash__"] = None
            if frozen:
                chosen = [
                    name for name, one in fields.items() if (one.compare if one.hash is None else one.hash)
                ]
                added["__hash__"] = _MethodView(cls, "__hash__", _hash_of, tuple(chosen))
    if frozen and slots:
        added |= {"__getstate__": _getstate, "__setstate__": _setstate}
    for name, value in added.items():
        if name not in names or (name == "__hash__" and names[name] is None):
            setattr(cls, name, value)
    if frozen:
        cls.__setattr__, cls.__delattr__ = _setattr, _delattr  # type: ignore[assignment]
    return cls


def _fields_of(cls: type, frozen: bool) -> Fields | None:
    """All fields, inherited ones first. None: the class has something that only the standard library knows, or that it
    is to refuse."""
    fields: Fields = {}
    for base in cls.__mro__[-1:0:-1]:
        inherited = vars(base).get("__record_fields__")
        if inherited is not None:
            if (vars(base).get("__setattr__") is _setattr) is not frozen:
                return None
            fields.update(inherited)
        elif "__dataclass_fields__" in vars(base):
            return None
    names = vars(cls)
    changed: Any = cls.__setattr__
    own = "__setattr__" in names or "__delattr__" in names
    if frozen and (own or changed not in (object.__setattr__, _setattr)):
        return None
    for name, annotation in names.get("__annotations__", {}).items():
        if not isinstance(annotation, str) or name == "self":
            return None
        if any(word in annotation for word in _ELSEWHERE):
            if "ClassVar[" in annotation:
                continue
            return None
        given = names.get(name, MISSING)
        one = given if isinstance(given, dataclasses.Field) else dataclasses.field(default=given)
        default = one.default
        if default is not MISSING and default.__class__.__hash__ is None:
            return None
        one.name, one.type = name, annotation
        fields[name] = one
    optional = False
    for one in fields.values():
        if one.init and one.kw_only is not True:
            has_default = one.default is not MISSING or one.default_factory is not MISSING
            if optional and not has_default:
                return None
            optional = has_default
    return fields


def _with_slots(cls: type, fields: Fields) -> type:
    """The class once more, with slots for the fields that no base has one for."""
    names = dict(vars(cls))
    if "__slots__" in names:
        raise TypeError(f"{cls.__name__} already specifies __slots__")
    inherited = {slot for base in cls.__mro__[1:] for slot in vars(base).get("__slots__", ())}
    names["__slots__"] = tuple([name for name in fields if name not in inherited])
    for name in fields:
        names.pop(name, None)
    names.pop("__dict__", None)
    names.pop("__weakref__", None)
    made = type(cls)(cls.__name__, cls.__bases__, names)
    made.__qualname__ = cls.__qualname__
    return made


def _init_of(cls: type, fields: Fields, frozen: bool) -> FunctionType:
    kinds = []
    cells: dict[str, Any] = {}
    defaults: list[Any] = []
    named: dict[str, Any] = {}
    for position, (name, one) in enumerate(fields.items()):
        factory = one.default_factory is not MISSING
        if one.init:
            by_name = one.kw_only is True
            kinds.append(("named " if by_name else "") + ("factory" if factory else "value"))
            default = _UNSET if factory else one.default
            if default is not MISSING and by_name:
                named[name] = default
            elif default is not MISSING:
                defaults.append(default)
        elif factory or one.default is not MISSING:
            kinds.append("made" if factory else "constant")
            cells[f"_default_{position}"] = one.default
        else:
            kinds.append("none")
        cells[f"_factory_{position}"] = one.default_factory
        if frozen:
            cells[f"_set_{position}"] = _setter(cls, name)
    code = _init_code(tuple(kinds), frozen, hasattr(cls, "__post_init__"))
    made = _renamed(code, tuple(fields), cells, tuple(defaults))
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__kwdefaults__ = named or None
    made.__annotations__ = {name: one.type for name, one in fields.items() if one.init} | {"return": None}
    _made_natively(cls, made, fields)
    return made


Maker = Callable[[type, Callable[..., None], tuple[tuple[str, Any, int, Any], ...]], None]
"""Given a class, its ``__init__``, and of each field its name, its slot, how it is given and its default or
what makes one: has calls of the class make instances without that ``__init__``."""

_BY_POSITION, _BY_NAME, _HAS_VALUE, _HAS_FACTORY = 1, 2, 4, 8
_maker: list[Maker] = []
_before_maker: list[tuple[type, FunctionType, Fields]] = []


def use_maker(maker: Maker) -> None:
    """Have instances of classes that have slots only be made by ``maker``, of classes too that are there already."""
    _maker[:] = [maker]
    for cls, init, fields in _before_maker:
        _made_natively(cls, init, fields)
    _before_maker.clear()


def _made_natively(cls: type, init: FunctionType, fields: Fields) -> None:
    slots = [getattr(cls, name, None) for name in fields]
    if not all(isinstance(slot, MemberDescriptorType) for slot in slots):
        return
    if _maker:
        named = zip(fields.items(), slots, strict=True)
        _maker[0](cls, init, tuple([(name, slot, *_way_of(one)) for (name, one), slot in named]))
    else:
        _before_maker.append((cls, init, fields))


def _way_of(one: dataclasses.Field[Any]) -> tuple[int, Any]:
    """How a field is given, and its default or what makes one."""
    way = 0 if not one.init else _BY_NAME if one.kw_only is True else _BY_POSITION
    if one.default_factory is not MISSING:
        return way | _HAS_VALUE | _HAS_FACTORY, one.default_factory
    if one.default is not MISSING:
        return way | _HAS_VALUE, one.default
    return way, None


def _setter(cls: type, name: str) -> Callable[[Any, Any], None]:
    member = getattr(cls, name, None)
    if isinstance(member, MemberDescriptorType):
        return member.__set__
    return lambda instance, value: object.__setattr__(instance, name, value)


_VALUE, _FACTORY = "f{0}", "_factory_{0}() if f{0} is _UNSET else f{0}"
_VALUES = {
    "value": _VALUE,
    "factory": _FACTORY,
    "named value": _VALUE,
    "named factory": _FACTORY,
    "made": "_factory_{0}()",
    "constant": "_default_{0}",
}


@functools.cache
def _init_code(kinds: tuple[str, ...], frozen: bool, post_init: bool) -> CodeType:
    numbered = list(enumerate(kinds))
    parameters = ["self", *(f"f{i}" for i, kind in numbered if kind in ("value", "factory"))]
    named = [f"f{i}" for i, kind in numbered if kind in ("named value", "named factory")]
    if named:
        parameters += ["*", *named]
    stores = "_set_{0}(self, {1})" if frozen else "self.f{0} = {1}"
    body = [stores.format(i, _VALUES[kind].format(i)) for i, kind in numbered if kind in _VALUES]
    if post_init:
        body.append("self.__post_init__()")
    text = "".join(f"  {line}\n" for line in body or ["pass"])
    cells = [f"_set_{i}" for i, kind in numbered if frozen and kind in _VALUES]
    cells += [f"_factory_{i}" for i, kind in numbered if kind.endswith("factory") or kind == "made"]
    cells += [f"_default_{i}" for i, kind in numbered if kind == "constant"]
    return _compiled(f"def __init__({', '.join(parameters)}):\n{text}", cells)


def _eq_of(cls: type, compared: tuple[str, ...]) -> FunctionType:
    return _renamed(_eq_code(len(compared)), compared)


def _hash_of(cls: type, chosen: tuple[str, ...]) -> FunctionType:
    return _renamed(_hash_code(len(chosen)), chosen)


@functools.cache
def _eq_code(count: int) -> CodeType:
    mine = "".join(f"self.f{i}, " for i in range(count))
    theirs = "".join(f"other.f{i}, " for i in range(count))
    return _compiled(
        "def __eq__(self, other):\n"
        "  if other.__class__ is self.__class__:\n"
        f"    return ({mine}) == ({theirs})\n"
        "  return NotImplemented\n"
    )


@functools.cache
def _hash_code(count: int) -> CodeType:
    return _compiled(
        f"def __hash__(self):\n  return hash(({''.join(f'self.f{i}, ' for i in range(count))}))\n"
    )


def _compiled(text: str, cells: list[str] | None = None) -> CodeType:
    """The code of the function that the text defines, with free variables of those names."""
    indented = "".join(f"  {line}\n" for line in text.splitlines())
    outer = compile(f"def outer({', '.join(cells or ())}):\n{indented}", "<dataclass>", "exec").co_consts[0]
    found: CodeType = next(const for const in outer.co_consts if isinstance(const, CodeType))
    return found


def _renamed(
    code: CodeType,
    fields: tuple[str, ...],
    cells: dict[str, Any] | None = None,
    defaults: tuple[Any, ...] = (),
) -> FunctionType:
    """A function of that code, in which the i-th of the fields stands for ``f<i>``."""
    new = {f"f{position}": name for position, name in enumerate(fields)}
    own = code.replace(
        co_names=tuple([new.get(name, name) for name in code.co_names]),
        co_varnames=tuple([new.get(name, name) for name in code.co_varnames]),
    )
    closure = tuple([CellType(cells[name]) for name in code.co_freevars]) if cells else ()
    return FunctionType(own, globals(), code.co_name, defaults, closure)


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    shown = [f"{name}={getattr(self, name)!r}" for name, one in self.__record_fields__.items() if one.repr]
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _setattr(self: Any, name: str, value: Any) -> None:
    if _is_frozen(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delattr(self: Any, name: str) -> None:
    if _is_frozen(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_frozen(self: Any, name: str) -> bool:
    """A class that only inherits from a frozen one may have attributes of its own."""
    return "__record_fields__" in vars(type(self)) or name in self.__record_fields__


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__record_fields__]


def _setstate(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__record_fields__, state, strict=True):
        object.__setattr__(self, name, value)
