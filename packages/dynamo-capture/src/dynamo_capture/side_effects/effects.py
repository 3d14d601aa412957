"""What the traced program did to objects that existed before: replayed, in order, after the graph has run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from dynamo_capture.foundation.break_kinds import DEFINITION_CHANGED, HOOKED_TENSOR, OBJECT_OPERATION
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.runtime.replacement_calls import instance_dict
from dynamo_capture.side_effects.attribute_dicts import AttributeDicts
from dynamo_capture.values.base import Value
from dynamo_capture.values.constant import Const
from dynamo_capture.values.containers.cached_part import CachedPart
from dynamo_capture.values.containers.mapping import DictValue
from dynamo_capture.values.containers.sequences import ListValue
from dynamo_capture.values.containers.sets import SetValue
from dynamo_capture.values.functions import CellValue
from dynamo_capture.values.objects.instances import ObjectValue
from dynamo_capture.values.tensors.hooks import HookHandle
from dynamo_capture.values.tensors.tensor import TensorValue


class Effects:
    """An ordered log. Of several changes to one place, the first gives the position and the last the content.

    ``is_namespace``: whether a dict holds globals that the trace knows by their names. ``attribute_dicts``: ends the
    graph where an object and its dictionary are both known.
    ``touched`` lists every object that is changed, while ``watching``: also those that the trace made, and None for a
    deferred call. ``changes``: the same from the moment on at which somebody has begun it. ``of_caches``: containers
    that a function with a cache has given for sizes that vary. ``late``: what is computed of results of the graph, in
    order, before anything else is done. ``by_data``: what the replacement code makes of what the graph has computed and
    is no tensor of it: numbers that data tell, objects that they choose.
    """

    def __init__(
        self,
        is_namespace: Callable[[Any], bool] = lambda real: False,
        attribute_dicts: AttributeDicts | None = None,
    ) -> None:
        self._is_namespace = is_namespace
        self._attribute_dicts = attribute_dicts
        self.log: dict[Any, tuple[Any, ...]] = {}
        self.watching = False
        self.touched: list[Any] = []
        self.changes: list[Any] | None = None
        self.hooks: list[HookHandle] = []
        self.hooked_copies: dict[int, Any] = {}  # by the id of a memory (semantics/tensors/results)
        self.late: list[Value] = []
        self.by_data: list[str] = []
        self.of_caches: dict[int, tuple[Value, CachedPart]] = {}
        self._count = 0
        self._notes: set[int] = set()
        self._is_drawn_by_another = False

    def __bool__(self) -> bool:
        return bool(self.log)

    def described(self) -> tuple[tuple[str, str], ...]:
        """For people, before the replay: each entry's kind ("note" for calls that are notes), and what happens.

        Attributes that are set to what they are have changed nothing.
        """
        return tuple(
            ("note" if self.is_note(key) else str(entry[0]), _described(entry))
            for key, entry in self.log.items()
            if not _leaves_as_it_was(entry)
        )

    def is_note(self, key: Any) -> bool:
        """Whether an entry is a call that leaves nothing to compute with (``deferred``)."""
        return key[0] == "call" and key[1] in self._notes

    def changed(self) -> list[Value]:
        """The existing objects that were changed."""
        return [entry[1] for entry in self.log.values() if entry[0] in ("content", "attr")]

    def advances(self, iterator: Value) -> None:
        """An iterator gives an item; iterators of before the trace tell the log themselves."""
        self._touch(iterator)

    def draws_from(self, iterator: Any) -> None:
        """An iterator of before the trace is called: for an item, or to find that it has none."""
        self._touch(iterator)
        if not self._is_drawn_by_another:
            iterator.calls += 1
            self.log.setdefault(("iterator", id(iterator)), ("iterator", iterator))

    @contextlib.contextmanager
    def drawn_by_another(self) -> Iterator[None]:
        """What is drawn from inside, the object that draws will draw itself when it is called."""
        before, self._is_drawn_by_another = self._is_drawn_by_another, True
        try:
            yield
        finally:
            self._is_drawn_by_another = before

    @contextlib.contextmanager
    def observed(self) -> Iterator[list[Any]]:
        """What changes inside, also of what the trace has made: complete when the block has ended."""
        watching, first = self.watching, len(self.touched)
        changed: list[Any] = []
        self.watching = True
        try:
            yield changed
        finally:
            self.watching = watching
            changed += self.touched[first:]
            if not watching:
                self.touched.clear()

    def _touch(self, changed: Any) -> None:
        if self.watching:
            self.touched.append(changed)
        if self.changes is not None:
            self.changes.append(changed)

    def has_changed(self, value: Value) -> bool:
        """Whether a container of before the trace was changed."""
        return ("content", id(value)) in self.log

    def mutates(self, value: ListValue | DictValue | SetValue) -> None:
        """A container's content changes; what the trace itself made needs no replay."""
        if id(value) in self.of_caches:
            raise GraphBreak(OBJECT_OPERATION, f"{value.describe()} that a cache has given is changed")
        self._touch(value)
        if value.real is not None:
            if isinstance(value, DictValue) and not self.has_changed(value):
                if any(value.real is hooks for handle in self.hooks for hooks in handle.existing()):
                    raise GraphBreak(HOOKED_TENSOR, "a tensor's hooks change after one was registered")
                if self._is_namespace(value.real):
                    raise GraphBreak(DEFINITION_CHANGED, "globals are changed through their dictionary")
                if self._attribute_dicts is not None:
                    self._attribute_dicts.check_content(value.real)
            self.log.setdefault(("content", id(value)), ("content", value))

    def attribute(self, owner: ObjectValue, name: str) -> None:
        """An attribute of an existing object is set or deleted."""
        self._touch(owner)
        if owner.real is not None:
            if self._attribute_dicts is not None:
                self._attribute_dicts.check_attribute(owner)
            self.log.setdefault(("attr", id(owner), name), ("attr", owner, name))

    def tensor_attribute(self, owner: TensorValue, name: str) -> None:
        """A Python attribute of a tensor is set."""
        self._touch(owner)
        if owner.real is not None and self._attribute_dicts is not None:
            self._attribute_dicts.check_attribute(owner)
        self.log.setdefault(("tensor_attr", id(owner), name), ("tensor_attr", owner, name))

    def cell(self, cell: CellValue) -> None:
        """A closure cell that existed gets another content."""
        self._touch(cell)
        if cell.real is not None:
            self.log.setdefault(("cell", id(cell)), ("cell", cell))

    def global_(self, scope: Any, name: str) -> None:
        """A global is set or deleted."""
        self._touch(None)
        self.log.setdefault(("global", id(scope), name), ("global", scope, name))

    def hooked(self, handle: HookHandle) -> None:
        """A hook is registered on a tensor: after the graph, before all other effects; so not where the dictionary that
        it goes to has changed, and will have its new content afterwards."""
        existing = handle.existing()
        if any(getattr(changed, "real", None) is hooks for changed in self.changed() for hooks in existing):
            raise GraphBreak(HOOKED_TENSOR, "a hook is registered on a tensor whose hooks have changed")
        self._touch(None)
        self.hooks.append(handle)
        self.log["hook", id(handle)] = ("hook", handle)

    def deferred(
        self, function: Any, args: list[Value], kwargs: dict[str, Value], *, is_note: bool = False
    ) -> None:
        """A call whose result is not used and that may as well happen after the graph has run. ``is_note``: nothing is
        computed with what it does: a message, or what a cache keeps."""
        self._touch(None)
        self._count += 1
        self.log["call", self._count] = ("call", function, args, kwargs)
        if is_note:
            self._notes.add(self._count)


def _described(entry: tuple[Any, ...]) -> str:
    match entry:
        case ("content", value):
            return f"the content of a {type(value.real).__name__} changes"
        case ("attr" | "tensor_attr", owner, name):
            return f"the attribute {name} of a {type(owner.real).__name__} is set"
        case ("global", _, name):
            return f"the global {name} is set"
        case ("call", function, *_):
            return f"{getattr(function, '__qualname__', 'a function')} is called"
        case ("cell", _):
            return "a variable of an enclosing function is set"
        case ("hook", _):
            return "a hook is registered on a tensor"
    return "an iterator is advanced"


def _leaves_as_it_was(entry: tuple[Any, ...]) -> bool:
    match entry:
        case ("attr", ObjectValue(real=real) as owner, name):
            value = owner.attrs.get(name)
            if not isinstance(value, Const) or value.varies:
                return False
            held = instance_dict(real)
            return type(held) is dict and name in held and held[name] is value.value
    return False
