"""Classes of tensors that note when their code runs: what reads of attributes, operators and functions ask them for."""

import operator
import types
import weakref

import pytest
import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from dynamo_capture import optimize

RAN = []


def _backend(graph_module, example_inputs):
    return graph_module.forward


def _ran(program, make, calls=3):
    """What ran in each call, and what came of it."""
    found = []
    for _ in range(calls):
        given = make()
        RAN.clear()
        try:
            result = program(torch.ones(2), given)
        except Exception as error:
            result = type(error).__name__
        found.append((list(RAN), str(result)))
    return found


def _same(program, make):
    assert _ran(optimize(_backend)(program), make) == _ran(program, make)


def _reading(self, name):
    RAN.append(name)
    return super(torch.Tensor, self).__getattribute__(name)


def _told_class(self):
    RAN.append("__class__")
    return torch.Tensor


WATCHING = {"__getattribute__": _reading, "meth": lambda self: 4}
TELLING = {"__class__": property(_told_class)}


def _meth(x, s):
    return x * s.meth()


def _missing(x, s):
    return x * getattr(s, "none", 2)


def _stored(x, s):
    s.new = x
    return x * 3, s


def _compared(x, s):
    return x * 3, s == 3, operator.ne(s, 3)


def _given(x, s):
    return x * 3, F.relu(s), torch.stack([x, s]), x.to(s)


def _passed_on(x, s):
    return x * 3, s


def _a_size(x, s):
    return x.view(s)


def _in_place(x, s):
    s += 1
    return x * 3


def _told_apart(x, s):
    match s:
        case int() | str():
            return x + 1
    return x * 3, isinstance(s, torch.nn.Module)


PROGRAMS = [_meth, _missing, _stored, _compared, _given, _passed_on, _a_size, _in_place, _told_apart]


@pytest.mark.parametrize("members", [WATCHING, TELLING], ids=["reads", "class"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_tensors_that_watch_what_is_read(program, members):
    kind = type("Watched", (torch.Tensor,), members)
    _same(program, lambda: torch.ones(2).as_subclass(kind))


@pytest.mark.parametrize("program", PROGRAMS)
def test_parameters_that_watch_what_is_read(program):
    kind = type("Watched", (torch.nn.Parameter,), WATCHING)
    _same(program, lambda: kind(torch.ones(2)))


def test_tensors_that_are_made_to_watch():
    kind = type("Watched", (torch.Tensor,), WATCHING)

    def program(x, s):
        made = (x + 1).as_subclass(kind)
        return made.meth()

    _same(program, lambda: None)


def _noting(name, value):
    def asked(self, *args):
        RAN.append(name)
        return value

    return asked


OWN_METHODS = {
    "a key": (lambda x, s: x * len({s: 1, 3: 2}), {"__hash__": _noting("__hash__", 7)}),
    "an item": (lambda x, s: x * len({s}), {"__hash__": _noting("__hash__", 7)}),
    "contained": (lambda x, s: x * (1 in s), {"__contains__": _noting("__contains__", True)}),
}


@pytest.mark.parametrize(("program", "members"), OWN_METHODS.values(), ids=OWN_METHODS)
def test_special_methods_of_tensor_classes(program, members):
    kind = type("Own", (torch.Tensor,), members)
    _same(program, lambda: torch.ones(2).as_subclass(kind))


@pytest.mark.parametrize("function", [torch.add, lambda x, s: torch.stack([x, s]), lambda x, s: F.relu(s)])
def test_results_with_a_finalizer_die_where_eager_drops_them(function):
    kind = type("Own", (torch.Tensor,), {"__del__": _noting("__del__", None)})

    def program(x, s):
        function(x, s)
        RAN.append("dropped")
        return x * 3, s

    _same(program, lambda: torch.ones(2).as_subclass(kind))


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("trained", [False, True])
def test_a_checkpoint_asks_for_the_device(reentrant, trained):
    kind = type("Own", (torch.Tensor,), {"device": property(_noting("device", torch.device("cpu")))})

    def program(x, s):
        x.requires_grad_(trained)
        return checkpoint(lambda q, z: q + 1, x, s, use_reentrant=reentrant) * 2

    _same(program, lambda: torch.ones(2).as_subclass(kind))


def test_messages_print_no_module():
    class Named(types.ModuleType):
        @property
        def __name__(self):
            RAN.append("__name__")
            return "named"

    def program(x, s):
        weakref.ref(s)
        return x * 3

    _same(program, lambda: Named("m"))
