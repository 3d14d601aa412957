"""No code of a program runs because the compiler looks at an object: while it traces, in guards, when it names it."""

import abc
import collections
import dataclasses
import enum
import functools
import inspect
from typing import NamedTuple

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from dynamo_capture import optimize

RAN = []
X = torch.ones(3)


def _backend(graph_module, example_inputs):
    return graph_module.forward


def _same(program, *makes):
    """``program`` on what each of ``makes`` gives, as it is and captured: what ran in each call, and the results."""
    captured = optimize(_backend)(program)
    for make in makes:
        outcomes = []
        for run in (program, captured):
            arguments = make()
            RAN.clear()
            result = run(*arguments)
            outcomes.append((list(RAN), result))
        (ran, expected), (ran_captured, actual) = outcomes
        assert ran_captured == ran
        torch.testing.assert_close(actual, expected)


def _noting(name, value):
    def asked(self, *args):
        RAN.append(name)
        return value(self, *args)

    return asked


META = {
    "__eq__": lambda cls, other: cls is other,
    "__hash__": lambda cls: 9,
    "__getattribute__": lambda cls, name: type.__getattribute__(cls, name),
}
FACTS = ("__module__", "__name__", "__mro__", "__dict__", "__flags__", "__bases__")


def _class_with(meta_members):
    members = {name: _noting(name, value) for name, value in meta_members.items()}
    if "__eq__" in members:
        members.setdefault("__hash__", type.__hash__)
    meta = type("Meta", (type,), members)
    return meta("Watched", (), {"size": 3})


def _answering(name):
    return property(_noting(name, lambda cls: type.__dict__[name].__get__(cls)))


def _unread(x, o):
    return x * 2


def _identity(x, o):
    y = x + 1
    print(end="")
    return y * 2 if o is not None else y


def _attribute(x, o):
    return x * o.size


@pytest.mark.parametrize("program", [_unread, _identity, _attribute])
@pytest.mark.parametrize("name", META)
def test_metaclasses_that_compare_hash_and_look_up(program, name):
    kind = _class_with({name: META[name]})
    _same(program, *[lambda: (torch.ones(2), kind())] * 2, lambda: (torch.ones(3), kind()))


@pytest.mark.parametrize("program", [_unread, _identity, _attribute])
@pytest.mark.parametrize("name", FACTS)
def test_metaclasses_that_answer_for_what_c_keeps(program, name):
    kind = type("Meta", (type,), {name: _answering(name)})("Watched", (), {"size": 3})
    _same(program, *[lambda: (torch.ones(2), kind())] * 2, lambda: (torch.ones(3), kind()))


def test_what_a_class_has_is_read_past_its_metaclass():
    """A guard on ``B.p`` would ask ``Meta.p``, or ``Meta.__getattr__`` where ``p`` is gone."""

    class Meta(type):
        p = property(_noting("p", lambda cls: 7))
        __getattr__ = _noting("__getattr__", lambda cls, name: 1)

    class B(metaclass=Meta):
        p = 3
        q = 4

    def program(x, o):
        return x + o.p + o.q

    _same(program, *[lambda: (torch.ones(2), B())] * 2)


@pytest.mark.parametrize("base", [object, list, dict, tuple, frozenset, collections.deque, torch.nn.Module])
@pytest.mark.parametrize("name", ["__class__", "__dict__", "__module__", "__len__"])
def test_properties_of_instances(base, name):
    kind = type("Watched", (base,), {"size": 3, name: property(_noting(name, lambda self: {}))})
    for program in (_unread, _identity):
        _same(program, *[lambda: (torch.ones(2), kind())] * 2)


@pytest.mark.parametrize("name", ["__class__", "__dict__"])
def test_properties_that_the_program_asks_for(name):
    kind = type("Watched", (), {"size": 3, name: property(_noting(name, lambda self: {"a": 1}))})

    def program(x, o):
        asked = o.__class__ if name == "__class__" else o.__dict__
        return x * o.size * len(asked)

    _same(program, *[lambda: (torch.ones(2), kind())] * 2)


def test_a_dictionary_below_a_property_is_guarded():
    class Watched:
        __dict__ = property(_noting("__dict__", lambda self: {}))

        def __init__(self, scale):
            self.scale = scale

    def program(x, o):
        return x * o.scale

    _same(program, lambda: (torch.ones(2), Watched(2.0)), lambda: (torch.ones(2), Watched(3.0)))


@pytest.mark.parametrize("name", ["__getattribute__", "__getattr__"])
def test_marks_of_tensors_are_read_below_their_class(name):
    """``isinstance(tensor, torch.nn.Parameter)`` asks the tensor for ``_is_param``."""

    def answer(self, asked):
        RAN.append(asked)
        if name == "__getattr__":
            raise AttributeError(asked)
        return torch.Tensor.__getattribute__(self, asked)

    kind = type("Watched", (torch.Tensor,), {name: answer})
    _same(_unread, *[lambda: (torch.ones(2), torch.ones(2).as_subclass(kind))] * 2)


def test_keys_are_hashed_by_their_class():
    class Watched(collections.OrderedDict):
        def __len__(self):
            return 1

        def __hash__(self):
            RAN.append("__hash__")
            return 7

    def program(x, o):
        table = {o: 1}
        return x * len(table)

    _same(program, *[lambda: (torch.ones(2), Watched(a=1))] * 2)


class _LookingUp(enum.EnumMeta):
    def __getattribute__(cls, name):
        RAN.append(name)
        return super().__getattribute__(name)


class _Width(enum.Enum, metaclass=_LookingUp):
    NARROW = 1
    WIDE = 2


NARROW, WIDE = _Width.NARROW, _Width.WIDE
BOUNDS = {torch.int8: 127, NARROW: 3, WIDE: 7}


@pytest.mark.parametrize("keys", [(torch.int8, torch.int8), (NARROW, WIDE)], ids=["beside", "itself"])
def test_members_of_an_enumeration_whose_class_looks_up_are_keys(keys):
    def program(x, key):
        return x.clamp(max=BOUNDS[key])

    _same(program, *(lambda key=key: (torch.arange(9.0), key) for key in keys))
    optimize(_backend, fullgraph=True)(program)(torch.arange(9.0), keys[0])


def test_a_class_whose_module_is_no_text():
    kind = type("Watched", (torch.Tensor,), {})
    kind.__module__ = property(lambda self: "somewhere")
    _same(_unread, *[lambda: (torch.ones(2), torch.ones(2).as_subclass(kind))] * 2)


def test_functions_of_known_objects_are_known_by_their_class():
    class Meta(type):
        __getattribute__ = _noting("__getattribute__", type.__getattribute__)

    class Watched(list, metaclass=Meta):
        pass

    held = Watched((1, 2))
    count = functools.partial(held.__len__)

    def program(x):
        return x * count()

    _same(program, *[lambda: (torch.ones(2),)] * 2)


def test_classes_are_compared_as_c_does():
    meta = type("Meta", (type,), {"__subclasscheck__": _noting("__subclasscheck__", type.__subclasscheck__)})
    kind = meta("Watched", (), {"__ne__": lambda self, other: True})

    def program(x, o):
        return x + 1 if o != 3 else x

    _same(program, *[lambda: (torch.ones(2), kind())] * 2, lambda: (torch.ones(3), kind()))


def test_explanations_print_no_object():
    class Watched:
        def __repr__(self):
            RAN.append("__repr__")
            return "watched"

    def program(x, objects):
        return x * len(objects)

    _same(program, *[lambda: (torch.ones(2), {Watched()})] * 3)


class _AsksAttributes(int):
    def __getattribute__(self, name):
        RAN.append(f"__getattribute__ {name}")
        return super().__getattribute__(name)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        RAN.append("__torch_function__")
        return 1


class _Compared:
    def __eq__(self, other):
        RAN.append("__eq__")
        return self is other

    def __hash__(self):
        RAN.append("__hash__")
        return 7

    def __call__(self, a, b=1):
        return a


class _MetaEq(type):
    def __eq__(cls, other):
        RAN.append("class __eq__")
        return cls is other

    def __getattr__(cls, name):
        RAN.append(f"class __getattr__ {name}")
        raise AttributeError(name)

    __hash__ = type.__hash__


class _OfMetaEq(tuple, metaclass=_MetaEq):
    pass


_known = functools.lru_cache(lambda key: 1)
_DEFAULT = _OfMetaEq((1, 2))


def _operator(x, o):
    torch.add(x, o)
    return x * 3


def _signature(x, o):
    return x * len(inspect.signature(o).parameters)


def _in_set(x, o=_DEFAULT):
    found = {o}
    return x + len(found)


def _checkpointed(x, o):
    return checkpoint(lambda x, o: x * 2, x, o, use_reentrant=False) + 1


def _cached(x, o):
    return x + _known(o)


@pytest.mark.parametrize(
    ("program", "make"),
    [
        (_operator, _AsksAttributes),
        (_signature, _Compared),
        (_in_set, None),
        (_checkpointed, lambda: _OfMetaEq((1, 2))),
        (_cached, _Compared),
    ],
)
def test_what_reads_arguments_of_calls(program, make):
    shared = None if make is None else make()
    _same(program, *[lambda: (X,) if shared is None else (X, shared)] * 3)


@dataclasses.dataclass(frozen=True)
class _Settings:
    count: int


def test_keys_whose_hash_has_no_effects_stay_in_the_graph():
    graphs = []

    def backend(graph_module, example_inputs):
        graphs.append(graph_module)
        return graph_module.forward

    settings = _Settings(2)
    compiled = optimize(backend, fullgraph=True)(lambda x: (x + 1) * _known(settings))
    assert torch.equal(compiled(X), X + 1)
    assert len(graphs) == 1


class _AnswersEquality:
    def __init__(self, answer):
        self.answer = answer

    def __eq__(self, other):
        RAN.append("eq")
        return self.answer


def test_a_tensor_differs_from_an_object_by_its_equality():
    """``object.__ne__`` asks ``__eq__``."""

    def program(x, one):
        return x != one, one != x, x.sum() > 0

    _same(
        program,
        *[lambda answer=answer: (X, _AnswersEquality(answer)) for answer in (True, None, NotImplemented)],
    )


class Listed(NamedTuple):
    n: int

    def __len__(self):
        ASKED.append("len")
        return 1


class Shown:
    @property
    def __class__(self):
        ASKED.append("class")
        return Shown


class Watching:
    def __getattribute__(self, name):
        ASKED.append(name)
        return super().__getattribute__(name)


ASKED: list[str] = []


@pytest.mark.parametrize(
    "make", [lambda: Listed(1), Shown, Watching, lambda: [(Listed(2),)], lambda: (Shown(), 1)]
)
@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_asks_its_arguments_as_in_eager(make, reentrant):
    """It takes them apart to look for tensors."""

    def program(x, given):
        return checkpoint(lambda y, z: y.sin() + 1, x * 2, given, use_reentrant=reentrant)

    logs = []
    for called in (program, optimize(lambda module, examples: module.forward)(program)):
        given = make()
        for _ in range(2):
            ASKED.clear()
            called(torch.ones(2, requires_grad=True), given)
            logs.append(list(ASKED))
    assert logs[0]
    assert all(one == logs[0] for one in logs)


def _of_kind(meta_base, base=object):
    """A class whose metaclass notes that it is asked for subclasses; another for each program, since answers are kept."""

    def asked(cls, other):
        RAN.append("__subclasscheck__")
        return type.__subclasscheck__(cls, other)

    return type("Meta", (meta_base,), {"__subclasscheck__": asked})("Kind", (base,), {})


def test_an_abstract_class_that_answers_by_a_metaclass_is_asked_once():
    kind = _of_kind(abc.ABCMeta)

    def program(x, other):
        match other:
            case kind():
                x = x + 1
        return x * 2 if isinstance(other, kind) else x, issubclass(list, kind)

    _same(program, lambda: (X, 5), lambda: (X, kind()), lambda: (X, [2]))


def test_super_does_not_ask_a_metaclass():
    kind = _of_kind(abc.ABCMeta, collections.UserDict)

    def program(x, one):
        super(kind, one).__init__()
        return x + len(one)

    _same(program, lambda: (X, kind()), lambda: (X, kind()))


def test_what_is_derived_from_an_abstract_class_is_asked_when_python_asks_it():
    class Abstract(abc.ABC):
        pass

    class Other(abc.ABC):
        pass

    below = [_of_kind(abc.ABCMeta, Abstract), _of_kind(abc.ABCMeta, Other)]

    def program(x, wanted, one):
        return x + 1 if isinstance(one, wanted) else x - 1

    captured = optimize(_backend)(program)
    ran = []
    for run, wanted in ((program, Abstract), (captured, Other), (program, Abstract), (captured, Other)):
        RAN.clear()
        run(X, wanted, 5)
        ran.append(list(RAN))
    assert ran == [["__subclasscheck__"], ["__subclasscheck__"], [], []]
    assert len(below) == 2


class ShapedByProgram(torch.nn.Parameter):
    @property
    def shape(self):
        RAN.append("shape")
        return (2, 3)


@pytest.mark.parametrize("make", [lambda one: [*one], list, tuple, lambda one: [x for x in one]])
def test_a_list_of_a_tensor_asks_for_its_shape_as_its_length(make):
    one = ShapedByProgram(torch.ones(2))

    def program(x, one):
        return [item.detach() + x for item in make(one)]

    _same(program, lambda: (X, one), lambda: (X, one))


def test_an_assertion_asks_for_a_torch_function():
    kind = type("Kind", (), {"__getattr__": _noting("__getattr__", lambda self, name: _missing(name))})

    def program(x, one):
        torch._assert(one, "no")
        return x * 3

    _same(program, lambda: (X, kind()), lambda: (X, kind()))


def _missing(name):
    raise AttributeError(name)


def test_no_class_is_hashed_to_know_what_an_abstract_class_remembers():
    hashing = type("Meta", (type,), {"__hash__": _noting("__hash__", lambda cls: 9)})
    captured = optimize(_backend)(_is_iterable)
    asked, remembered = [], []
    for run in (_is_iterable, _is_iterable, captured):  # the first makes the class remember something
        remembered.append(hashing("Kind", (frozenset,), {}))
        one = remembered[-1]((1,))
        RAN.clear()
        run(X, one)
        asked.append(list(RAN))
    assert asked[1] == asked[2]


def _is_iterable(x, one):
    return x + isinstance(one, collections.abc.Iterable)
