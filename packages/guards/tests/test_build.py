"""The native evaluator agrees with the reference twin on random structures under random mutation, check after check."""

from __future__ import annotations

import gc
import itertools
import sys
import types
import weakref
from collections import OrderedDict
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fx_guards
from fx_guards.reference import ReferenceEvaluator
from fx_interface.source import (
    AttrSource,
    BuiltinSource,
    ClosureSource,
    DictKeySource,
    GlobalSource,
    ImportedModuleSource,
    InstanceDictSource,
    ItemSource,
    LocalSource,
    Scope,
    Source,
    TypeSource,
)


class Thing:
    """An object with attributes."""

    shared = 1

    def method(self) -> None: ...


class Other(Thing):
    """Another type with the same layout."""

    shared = 2

    @property
    def computed(self) -> int:
        return len(self.__dict__)


class Slotted:
    __slots__ = ("a",)

    def __init__(self) -> None:
        self.a = 1


def target(x: Any, y: Any) -> None:
    """The function at whose entry the guards are checked."""


SCALARS: list[Any] = [
    0,
    1,
    True,
    False,
    None,
    1.0,
    -0.0,
    0.0,
    float("nan"),
    "a",
    "b",
    b"a",
    (1, "a"),
    2**70,
    1j,
    ...,
]
NAMES = ["a", "b", "c", "shared"]


def make_value(random: Random, depth: int) -> Any:
    """A random value: scalars at the leaves, containers and objects above."""
    if depth == 0 or random.random() < 0.2:
        return random.choice(SCALARS)
    kind = random.randrange(7)
    values = [make_value(random, depth - 1) for _ in range(random.randrange(1, 4))]
    match kind:
        case 0:
            return values
        case 1:
            return tuple(values)
        case 2:
            return dict(zip(NAMES, values, strict=False))
        case 3:
            return OrderedDict(zip(NAMES, values, strict=False))
        case 4:
            return {1: values[0], "k": values[-1], None: 3}
    made = random.choice([Thing, Other])()
    for name, value in zip(NAMES, values, strict=False):
        setattr(made, name, value)
    return made


def sources_below(source: Source, value: Any, depth: int = 4) -> list[tuple[Source, Any]]:
    """Every value that can be reached, with a source that reads it."""
    found = [(source, value)]
    if depth == 0:
        return found
    steps: list[Source] = []
    if isinstance(value, dict):
        steps += [ItemSource(source, key) for key in value]
        steps += [DictKeySource(source, 0)] if value else []
    elif isinstance(value, (list, tuple)):
        steps += [ItemSource(source, index) for index in (*range(len(value)), -1)]
    elif isinstance(value, Thing):
        steps += [AttrSource(source, name) for name in (*vars(value), "shared")]
        steps += [AttrSource(source, "computed")] if isinstance(value, Other) else []
        steps += [InstanceDictSource(source), TypeSource(source)]
    elif isinstance(value, type):
        steps += [AttrSource(source, "shared"), AttrSource(source, "method")]
    elif isinstance(value, types.ModuleType):
        steps += [AttrSource(source, "g"), AttrSource(source, "h")]
        contents = InstanceDictSource(source)
        for name in ("g", "h"):
            found += sources_below(ItemSource(contents, name), vars(value)[name], depth - 1)
    for step in dict.fromkeys(steps):
        found += sources_below(step, step.step(value), depth - 1)
    return found


def guards_on(random: Random, source: Source, value: Any) -> list[Any]:
    """Some guards that ``value`` satisfies."""
    made: list[Any] = [fx_guards.TypeIs(source, type(value))]
    if isinstance(value, (dict, list, tuple)):
        made.append(fx_guards.Length(source, len(value)))
    if isinstance(value, dict):
        made.append(fx_guards.DictKeys(source, tuple(value)))
        made += [fx_guards.KeyPresent(source, key) for key in value] + [fx_guards.KeyAbsent(source, "zz")]
    elif isinstance(value, (types.ModuleType, types.FunctionType)):
        made.append(fx_guards.IsObject(source, value))
    elif isinstance(value, (Thing, type)):
        made += [fx_guards.IsObject(source, value), fx_guards.AttributeAbsent(source, "zz")]
        made.append(fx_guards.AttributePresent(source, "shared"))
    elif not isinstance(value, list):
        made += [fx_guards.EqualsConstant(source, value), fx_guards.Truthiness(source, bool(value))]
    return random.sample(made, random.randrange(len(made) + 1))


class World:
    """The roots, and every mutable object in them, so that mutations can hit anywhere."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.roots = {"x": make_value(random, 3), "y": make_value(random, 2)}
        self.module = types.ModuleType("guards_test_world")
        sys.modules["guards_test_world"] = self.module
        self.globals = vars(self.module)
        self.globals.update(g=make_value(random, 3), h=1)
        self.function = types.FunctionType(target.__code__, self.globals)
        self.undo: list[Any] = []

    @property
    def scope(self) -> Scope:
        return Scope(
            self.roots, self.globals, {}, self.globals.get("__builtins__", vars(sys.modules["builtins"]))
        )

    def guards(self) -> list[Any]:
        """A random subset of the guards that hold now."""
        roots: list[tuple[Source, Any]] = [(LocalSource(n), v) for n, v in self.roots.items()]
        roots.append((GlobalSource("g"), self.globals["g"]))
        roots.append((ImportedModuleSource("guards_test_world"), self.module))
        reached = [pair for source, value in roots for pair in sources_below(source, value)]
        made = [guard for source, value in reached for guard in guards_on(self.random, source, value)]
        chosen = self.random.sample(reached, min(len(reached), 4))
        for (one, a), (two, b) in itertools.pairwise(chosen):
            made.append(fx_guards.SameObject(one, two) if a is b else fx_guards.DistinctObjects(one, (two,)))
        return made

    def mutate(self) -> None:
        """One change somewhere, or the last one undone."""
        if self.undo and self.random.random() < 0.5:
            self.undo.pop()()
            return
        values = [v for s, v in sources_below(LocalSource("x"), self.roots["x"])]
        values += [v for s, v in sources_below(LocalSource("y"), self.roots["y"])]
        values += [v for s, v in sources_below(GlobalSource("g"), self.globals["g"])]
        holders = [v for v in values if isinstance(v, (dict, list, Thing)) and v is not self.globals]
        holders += [self.roots, self.globals, self.globals]
        self.change(self.random.choice(holders))

    def change(self, holder: Any) -> None:
        random = self.random
        new = random.choice([random.choice(SCALARS), make_value(random, 1)])
        if isinstance(holder, list) and holder:
            index = random.randrange(len(holder))
            old = holder[index]
            holder[index] = new
            self.undo.append(lambda: holder.__setitem__(index, old))
        elif isinstance(holder, dict) and holder:
            self.change_dict(holder, new)
        elif isinstance(holder, Thing):
            self.change_object(holder, new)

    def change_dict(self, holder: dict[Any, Any], new: Any) -> None:
        is_scope = holder is self.roots or holder is self.globals
        key = None if is_scope else self.random.choice([*holder, "new"])
        if key is None:
            key = self.random.choice("ghi" if holder is self.globals else "xy")
        if key in holder and not is_scope and self.random.random() < 0.3:
            old = holder.pop(key)
            self.undo.append(lambda: holder.__setitem__(key, old))
        elif key in holder:
            old = holder[key]
            holder[key] = new
            self.undo.append(lambda: holder.__setitem__(key, old))
        else:
            holder[key] = new
            self.undo.append(lambda: holder.pop(key, None))

    def change_object(self, holder: Thing, new: Any) -> None:
        match self.random.randrange(4):
            case 0:
                old_class = type(holder)
                holder.__class__ = Other if old_class is Thing else Thing
                self.undo.append(lambda: setattr(holder, "__class__", old_class))
            case 1:
                old_dict = holder.__dict__
                holder.__dict__ = dict(old_dict)
                self.undo.append(lambda: setattr(holder, "__dict__", old_dict))
            case 2:
                Thing.shared = Thing.shared + 1  # visible through every instance without its own
                self.undo.append(lambda: setattr(Thing, "shared", 1))
            case _:
                self.change_dict(vars(holder), new)


@pytest.fixture(autouse=True)
def _restore_class() -> Any:
    yield
    Thing.shared = 1


@settings(max_examples=250, deadline=None)
@given(st.randoms(use_true_random=False))
def test_native_agrees_with_reference(random: Random) -> None:
    Thing.shared = 1
    world = World(random)
    facts = world.guards()
    names = ("x", "y")
    native = fx_guards.build(facts, varnames=names)
    by_name = fx_guards.build(facts)
    reference = ReferenceEvaluator(facts, names)
    for _ in range(12):
        for _ in range(random.randrange(1, 4)):
            expected = reference.check(world.scope)
            slots = tuple(world.roots[n] for n in names)
            assert native.check_call(world.function, *slots) == expected, fx_guards.first_failure(
                facts, world.scope
            )
            assert by_name.check(world.scope) == expected
            assert (fx_guards.first_failure(facts, world.scope) is None) == expected
        world.mutate()


@settings(max_examples=300, deadline=None)
@given(st.recursive(st.sampled_from(SCALARS), lambda inner: st.tuples(inner, inner)), st.data())
def test_constants_agree(value: Any, data: st.DataObject) -> None:
    from fx_guards import _native
    from fx_guards.kinds.constants import constants_equal

    other = data.draw(st.one_of(st.just(value), st.sampled_from(SCALARS)))
    assert _native.constants_equal(value, other) == constants_equal(value, other)
    assert constants_equal(value, value)


def call(evaluator: Any, *slots: Any) -> bool:
    """Checks often enough that a plan is made and used; the answers must not differ."""
    answers: set[bool] = {evaluator.check_call(target, *slots) for _ in range(4)}
    assert len(answers) == 1
    return answers.pop()


def test_reads_that_raise_fail_and_leave_no_exception() -> None:
    class Raises:
        @property
        def bad(self) -> int:
            raise RuntimeError("no")

    facts = [fx_guards.EqualsConstant(AttrSource(LocalSource("x"), "bad"), 1)]
    evaluator = fx_guards.build(facts, varnames=("x",))
    assert not call(evaluator, Raises())
    assert evaluator.failed == -1
    assert not evaluator.check(Scope({}, {}))
    assert not evaluator.check_call(target)


def test_closure_builtin_and_module_roots() -> None:
    flag = [1]
    cell_user = _closure_of(flag)
    facts = [
        fx_guards.EqualsConstant(ItemSource(ClosureSource("flag"), 0), 1),
        fx_guards.IsObject(BuiltinSource("len"), len),
        fx_guards.IsObject(AttrSource(ImportedModuleSource("sys"), "path"), sys.path),
    ]
    evaluator = fx_guards.build(facts, freevars=cell_user.__code__.co_freevars)
    assert all(evaluator.check_call(cell_user) for _ in range(3))
    flag[0] = 2
    assert not evaluator.check_call(cell_user)
    flag[0] = 1
    assert evaluator.check_call(cell_user)
    assert evaluator.check(Scope({}, {}, {"flag": flag}))


def _closure_of(flag: list[int]) -> Any:
    def inner() -> Any:
        return flag

    return inner


def test_missing_cell_content_fails() -> None:
    def make() -> Any:
        def inner() -> Any:
            return later

        if False:
            later: int = 1
        return inner

    evaluator = fx_guards.build([fx_guards.EqualsConstant(ClosureSource("later"), 1)], freevars=("later",))
    assert not evaluator.check_call(make())


def test_weakly_held_object_dies() -> None:
    thing = Thing()
    guard = fx_guards.IsObject(LocalSource("x"), thing)
    evaluator = fx_guards.build([guard], varnames=("x",))
    assert call(evaluator, thing)
    del thing
    gc.collect()
    assert not guard.alive
    assert not call(evaluator, Thing())
    assert not call(evaluator, None)
    assert not guard.holds(None)


def test_getattr_hook_and_slots_are_read_as_python_does() -> None:
    class Hooked:
        def __getattr__(self, name: str) -> Any:
            return {"a": 1}[name] if name == "a" else (_ for _ in ()).throw(AttributeError(name))

    facts = [fx_guards.EqualsConstant(AttrSource(LocalSource("x"), "a"), 1)]
    evaluator = fx_guards.build(facts, varnames=("x",))
    assert call(evaluator, Hooked())
    slotted = Slotted()
    assert call(evaluator, slotted)
    slotted.a = 2
    assert not call(evaluator, slotted)
    hooked = Hooked()
    hooked.a = 2  # type: ignore[attr-defined]
    assert not call(evaluator, hooked)


def test_unknown_root_source_is_refused() -> None:
    class Strange(Source):
        pass

    with pytest.raises(fx_guards.GuardError) as caught:
        fx_guards.build([fx_guards.TypeIs(Strange(), int)])
    assert caught.value.code == "GRD001"


def test_unknown_derived_source_and_third_party_guard_are_asked_in_python() -> None:
    class Doubled(AttrSource):
        def step(self, value: Any) -> Any:
            return 2 * getattr(value, self.name)

    class Even:
        kind = "even"

        def __init__(self, source: Source) -> None:
            self.source = source

        def holds(self, value: Any) -> bool:
            return bool(value % 4 == 0)

        def explain(self, value: Any) -> str:
            return f"{value} is odd twice"

    facts: list[Any] = [Even(Doubled(LocalSource("x"), "shared"))]
    evaluator = fx_guards.build(facts, varnames=("x",))
    thing = Thing()
    thing.shared = 2
    assert call(evaluator, thing)
    thing.shared = 3
    assert not call(evaluator, thing)


def test_collecting_an_evaluator_in_a_cycle() -> None:
    thing = Thing()
    thing.evaluator = fx_guards.build([fx_guards.IsObject(LocalSource("x"), [thing])], varnames=("x",))  # type: ignore[attr-defined]
    reference = weakref.ref(thing)
    del thing
    gc.collect()
    assert reference() is None


def test_references_are_balanced() -> None:
    thing = Thing()
    thing.table = {"a": [1, 2], "b": (3,)}  # type: ignore[attr-defined]
    table = AttrSource(LocalSource("x"), "table")
    a, b = ItemSource(table, "a"), ItemSource(table, "b")
    facts = [
        fx_guards.Length(a, 2),
        fx_guards.EqualsConstant(b, (3,)),
        fx_guards.SameObject(a, ItemSource(InstanceDictSource(LocalSource("x")), "missing")),
        fx_guards.DistinctObjects(a, (b, table)),
    ]
    holding = fx_guards.build([facts[0], facts[1], facts[3]], varnames=("x",))
    failing = fx_guards.build(facts, varnames=("x",))
    fetcher = fx_guards.build_fetcher([a, b, table])
    watched = [thing, vars(thing), thing.table, thing.table["a"], thing.table["b"], Thing]  # type: ignore[attr-defined]
    counts: list[list[int]] = []
    for _ in range(100):
        assert holding.check_call(target, thing)
        assert not failing.check_call(target, thing)
        fetcher(thing)
        counts.append([sys.getrefcount(value) for value in watched])
    assert counts[-1] == counts[3]
