"""What replacement code calls while it runs: making objects, filling containers, changing modes."""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

import fx_guards
from dynamo_capture.foundation.class_members import is_immutable
from dynamo_capture.hook.frame_hook import RegionFunction, region
from fx_interface.symbols import Expr, Symbol, evaluate
from fx_interface.torch_internals.modes import SWITCHES, autocast_kept

_MISSING: Any = object()
C_SLOTS = (types.MemberDescriptorType, types.GetSetDescriptorType)
"""What reads and writes a place that an object has beside its ``__dict__``."""


def builtin_base(cls: type) -> type:
    """The first class of the method resolution order that is not written in Python."""
    return next(base for base in cls.__mro__ if is_immutable(base))


BY_PERCENT = 4
"""The conversion of what is written by the operator ``%``."""


def formatted(value: Any, conversion: int, spec: str) -> str:
    """A part of a text: as ``format`` writes the value (0), its ``str`` (1), ``repr`` (2) or ``ascii`` (3); or as
    ``spec % value`` does."""
    if conversion == BY_PERCENT:
        return spec % (value,)
    return format((value if not conversion else (str, repr, ascii)[conversion - 1](value)), spec)


def joined(*parts: Any) -> str:
    """A text of pieces: each a value, its conversion (None: a string as it is) and specification."""
    pieces = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return "".join(
        [
            value if conversion is None else formatted(value, conversion, spec)
            for value, conversion, spec in pieces
        ]
    )


def new_object(cls: type) -> Any:
    """An empty instance, without running the class's own ``__new__`` or ``__init__``."""
    base: Any = builtin_base(cls)
    return base.__new__(cls)


def new_tuple(cls: type, items: tuple[Any, ...]) -> Any:
    """An instance of a subclass of tuple."""
    return tuple.__new__(cls, items)


def new_partial(cls: type, plain: functools.partial[Any]) -> Any:
    """An instance of a subclass of ``functools.partial`` that holds what ``plain`` does."""
    made: Any = functools.partial.__new__(cls, plain.func)
    state = (plain.func, plain.args, plain.keywords, None)
    functools.partial.__setstate__(made, state)  # type: ignore[attr-defined]
    return made


def fill_object(made: Any, content: Any, attributes: Mapping[str, Any]) -> None:
    """Give a new instance its container content and its attributes."""
    base: Any = builtin_base(type(made))  # ``isinstance`` would ask the object for its ``__class__``
    is_dict = issubclass(base, dict)
    if is_dict and content:
        for key, value in content.items():
            base.__setitem__(made, key, value)
    elif content is not None and not is_dict:
        (base.extend if issubclass(base, list) else base.update)(made, content)
    for name, value in attributes.items():
        set_attribute(made, name, value)


def partial_with(function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """A ``functools.partial`` that holds this very dict."""
    made = functools.partial(function)
    made.__setstate__(  # type: ignore[attr-defined]
        (function, args, keywords, None)
    )
    return made


def with_attributes(made: Any, attributes: Mapping[str, Any]) -> Any:
    """A new object that has these attributes too."""
    made.__dict__.update(attributes)
    return made


def cached_part(
    function: Callable[..., Any], steps: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What a function with a cache gives, or what that has inside."""
    found = function(*args, **kwargs)
    for step in steps:
        found = found[step]
    return found


def instance_dict(owner: Any) -> Any:
    """``owner.__dict__``, past what the class makes of it; None if there is none. That of this thread, of an
    object that has one for each."""
    try:
        return fx_guards.instance_dict(owner)
    except AttributeError:
        return owner.__dict__ if type(owner) is threading.local else None


def set_attribute(owner: Any, name: str, value: Any) -> None:
    """``object.__setattr__``, past what the class defines; instance dictionaries take any name."""
    space = instance_dict(owner)
    found = next((base.__dict__[name] for base in type(owner).__mro__ if name in base.__dict__), None)
    if isinstance(space, dict) and not isinstance(found, C_SLOTS):
        space[name] = value
        return
    try:
        object.__setattr__(owner, name, value)
    except TypeError:
        setattr(owner, name, value)


def delete_attribute(owner: Any, name: str) -> None:
    """``object.__delattr__``; nothing where the trace has set the attribute itself before, so that it is not there."""
    space = instance_dict(owner)
    if isinstance(space, dict) and name in space:
        del space[name]
        return
    with contextlib.suppress(AttributeError, TypeError):
        object.__delattr__(owner, name)


def unless_gone(change: Callable[..., None], owner: Any, *args: Any) -> None:
    """Change what a weak reference refers to; nothing where that is gone."""
    if owner is not None:
        change(owner, *args)


def replace_list(target: Any, items: Iterable[Any]) -> None:
    """The target holds exactly these items."""
    if isinstance(target, list):
        list.__setitem__(target, slice(None), list(items))
        return
    target.clear()
    target.extend(items)


def replace_items(target: Any, items: list[Any]) -> None:
    """The places of the target, a list or deque, hold these items. Iterators over it stay valid."""
    for position, item in enumerate(items):
        target[position] = item


def extend_list(target: list[Any], items: list[Any]) -> None:
    """The target holds these items too, after what it held."""
    list.extend(target, items)


def replace_dict(target: dict[Any, Any], content: Mapping[Any, Any]) -> None:
    """The target holds exactly these entries, in this order. Where the keys stay, iterators over it stay valid."""
    base: Any = builtin_base(type(target))
    if len(target) != len(content) or any(
        a is not b for a, b in zip(base.keys(target), content, strict=True)
    ):
        base.clear(target)
    for key, value in content.items():
        base.__setitem__(target, key, value)


def update_dict(target: dict[Any, Any], content: list[tuple[Any, Any]]) -> None:
    """The target holds these entries too; those with new keys come last."""
    base: Any = builtin_base(type(target))
    for key, value in content:
        base.__setitem__(target, key, value)


def list_iterator(items: list[Any], position: int) -> Iterator[Any]:
    """``iter(items)`` after ``position`` steps, past what a class made from ``list`` defines."""
    made: Any = list.__iter__(items)
    made.__setstate__(position)
    return made  # type: ignore[no-any-return]


def new_generator(function: Callable[..., Iterator[Any]], *args: Any) -> Iterator[Any]:
    """A generator that has not started."""
    return function(*args)


def suspended_generator(function: Callable[..., Iterator[Any]], *args: Any) -> Iterator[Any]:
    """A generator that is brought to where another one was suspended."""
    made = function(*args)
    next(made)
    return made


def finished_generator() -> Iterator[Any]:
    """A generator that has no more items."""
    nothing: tuple[Any, ...] = ()
    made = (item for item in nothing)
    made.close()
    return made


def named_generator(made: types.GeneratorType[Any, Any, Any], name: str, qualname: str) -> Iterator[Any]:
    """A generator with names that are not those of its code."""
    made.__name__, made.__qualname__ = name, qualname
    return made


def dict_iterator(view: Iterable[Any], position: int) -> Iterator[Any]:
    """``iter(view)`` after ``position`` steps."""
    made = iter(view)
    for _ in range(position):
        next(made, None)
    return made


def drawing_from(iterator: Any) -> Iterator[Any]:
    """The items of an object with ``__next__``, without a call of its ``__iter__``."""
    return map(type(iterator).__next__, itertools.repeat(iterator))


def advance(iterator: Iterator[Any], calls: int) -> None:
    """Draw so many items; the last call may find that there is none."""
    for _ in range(calls):
        next(iterator, None)


def make_cell(content: Any = _MISSING) -> types.CellType:
    """A closure cell; empty without an argument."""
    return types.CellType() if content is _MISSING else types.CellType(content)


def make_function(
    code: types.CodeType,
    namespace: dict[str, Any],
    defaults: tuple[Any, ...],
    keyword_defaults: dict[str, Any],
    closure: tuple[types.CellType, ...],
    attributes: dict[str | tuple[str], Any],
) -> types.FunctionType:
    """A function as ``def`` makes it. What only its dictionary holds has a tuple of the name as its key."""
    made = types.FunctionType(code, namespace, code.co_name, defaults or None, closure or None)
    if keyword_defaults:
        made.__kwdefaults__ = keyword_defaults
    made.__qualname__ = code.co_qualname
    for name, value in attributes.items():
        if isinstance(name, tuple):
            made.__dict__[name[0]] = value
        else:
            setattr(made, name, value)
    return made


def entered_grad_mode(cls: Any, enabled: bool, previous: bool) -> Any:
    """A gradient-mode manager as it is after ``__enter__``."""
    if cls is torch.set_grad_enabled:
        made = object.__new__(cls)
        made.mode = enabled
    elif cls in (torch.no_grad, torch.enable_grad):
        made = object.__new__(
            cls
        )  # __init__ would be a frame, in which an interrupt leaves the mode as it is
    else:
        made = cls()
    made.prev = previous
    return made


def grad_mode_to_decorate_with(enabled: bool) -> Any:
    """``set_grad_enabled`` that has taken no effect, and as a decorator, which restores what was before, has none."""
    return entered_grad_mode(torch.set_grad_enabled, enabled, torch.is_grad_enabled())


def enter_block(manager: Any) -> None:
    """Enter a context manager that a graph has left where it ended."""
    manager.__enter__()


def drawing(
    method: str | Callable[..., Any],
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
    symbols: Sequence[Symbol],
) -> Callable[[Any, Sequence[int]], Any]:
    """What draws from a generator, by a method of it or by a function that is given it. Among the arguments there may
    be sizes; it is called with the numbers that stand for ``symbols``."""

    def draw(generator: Any, numbers: Sequence[int]) -> Any:
        known = dict(zip(symbols, numbers, strict=True))
        given = [_sized(argument, known) for argument in arguments]
        named = {name: _sized(argument, known) for name, argument in keywords.items()}
        if isinstance(method, str):
            return getattr(generator, method)(*given, **named)
        return method(*given, generator=generator, **named)

    return RegionFunction(draw, None)


def _sized(argument: Any, known: Mapping[Symbol, int]) -> Any:
    if isinstance(argument, tuple):
        return tuple(_sized(part, known) for part in argument)
    return evaluate(argument, known) if isinstance(argument, Expr) else argument


def call_restoring_modes(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """A graph that changes modes: they are put back if it raises."""

    def run(*inputs: Any) -> Any:
        before = [(setter, reader()) for setter, reader in SWITCHES.items()]
        autocast = autocast_kept()
        try:
            return compiled(*inputs)
        except BaseException as error:
            _leave_blocks(error)
            for setter, value in before:
                setter(value)
            autocast()
            raise

    return run


def _leave_blocks(error: BaseException) -> None:
    """Leave the blocks of modes that a graph's own frames entered, innermost first: each puts back what it found."""
    for frame in reversed([frame for frame, _ in traceback.walk_tb(error.__traceback__)]):
        if not frame.f_code.co_filename.startswith(_GENERATED):
            continue
        for value in reversed(list(frame.f_locals.values())):
            if isinstance(value, (torch._C._InferenceMode, torch.autocast)):
                value.__exit__(None, None, None)
    traceback.clear_frames(error.__traceback__)


_GENERATED = "<eval_with_key>"
"""How the names of files begin in which ``torch.fx`` puts the code of graphs."""


def compared_by(function: Any, *item: Any) -> Any:
    """What ``functools.cmp_to_key`` makes of a function, or that of an item."""
    made = functools.cmp_to_key(function)
    return made(*item) if item else made


def call_outside(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a function of the stack, of which nothing is captured."""
    with region(None):
        return function(*args, **kwargs)


def choose(condition: Any, yes: Any, no: Any) -> Any:
    """The one that ``max`` or ``min`` of tensors has kept."""
    return yes if condition else no


def followed(function: Callable[..., Any], *operands: Any) -> Any:
    """What a function gives where autograd follows it, as it did where the program has called it."""
    with torch.inference_mode(False), torch.enable_grad():
        return function(*operands)


def new_cache(function: Any, maxsize: int | None, typed: bool, attributes: Mapping[str, Any]) -> Any:
    """A function under ``functools.lru_cache``, without entries."""
    wrapper: Any = functools._lru_cache_wrapper
    made = wrapper(function, maxsize, typed, functools._CacheInfo)
    vars(made).update(attributes)
    return made
