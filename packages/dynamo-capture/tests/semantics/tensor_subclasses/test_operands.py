"""Operands that torch asks for ``__torch_function__``: as often as in eager, and of the operand, not of its class."""

import pytest
import torch
from torch.nn import functional as F

from dynamo_capture import optimize

RAN = []


def _backend(graph_module, example_inputs):
    return graph_module.forward


def _shown(result):
    if isinstance(result, torch.Tensor):
        return type(result).__name__, result.as_subclass(torch.Tensor).tolist()
    return type(result).__name__, result if type(result) in (int, bool, str, float) else None


def _ran(use, make, run):
    def program(x, s):
        y = x * 1
        try:
            return use(y, s)
        except Exception as error:
            return type(error).__name__

    found = []
    program = run(program)
    for _ in range(2):
        given = make()
        RAN.clear()
        result = program(torch.ones(2), given)
        ran = list(RAN)
        with torch._C.DisableTorchFunction():
            found.append((ran, _shown(result)))
    return found


def _same(use, make):
    assert _ran(use, make, optimize(_backend)) == _ran(use, make, lambda program: program)


def _answers(cls, function, types, args=(), kwargs=None):
    RAN.append(function.__name__)
    return 11


def _raises(name):
    def read(self, *args):
        RAN.append(name)
        raise AttributeError(name)

    return read


class Answering:
    __torch_function__ = classmethod(_answers)


class AnsweringByItself:
    def __init__(self):
        self.__torch_function__ = lambda *args: _answers(None, *args)


class Refusing:
    __torch_function__ = property(_raises("property"))


class OfMeta(metaclass=type("Meta", (type,), {"__torch_function__": property(_raises("class"))})):
    __torch_function__ = classmethod(_answers)


class Missing:
    __getattr__ = _raises("__getattr__")


class Reading:
    def __getattribute__(self, name):
        RAN.append(name)
        return super().__getattribute__(name)


class AnsweringTuple(tuple):
    __torch_function__ = classmethod(_answers)


class AnsweringInteger(int):
    __torch_function__ = classmethod(_answers)


class ClassOfMissing(metaclass=type("Meta", (type,), {"__getattr__": _raises("__getattr__")})):
    pass


OBJECTS = [
    Answering,
    AnsweringByItself,
    Refusing,
    OfMeta,
    Missing,
    Reading,
    lambda: AnsweringTuple((1, 2)),
    lambda: AnsweringInteger(1),
    lambda: ClassOfMissing,
]
USES = {
    "add": lambda x, s: torch.add(x, s),
    "plus": lambda x, s: x + s,
    "equal": lambda x, s: x == s,
    "to": lambda x, s: x.to(s),
    "has": lambda x, s: torch.overrides.has_torch_function((s,)),
    "relu": lambda x, s: F.relu(s),
    "item": lambda x, s: x[s],
    "sum": lambda x, s: x.sum(s),
    "assert": lambda x, s: torch._assert(s, "no"),
    "like": lambda x, s: torch.overrides.is_tensor_like(s),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("make", OBJECTS)
def test_objects_are_asked_themselves(make, use):
    _same(use, make)


class AnsweringTensor(torch.Tensor):
    __torch_function__ = classmethod(_answers)


class NotingTensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        RAN.append(function.__name__)
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **(kwargs or {}))


OF_TENSORS = {
    "a step of a function in Python": lambda x, s: F.dropout(x, s),
    "another step": lambda x, s: x.split(s),
    "contained": lambda x, s: s in x,
    "spread": lambda x, s: len([*s]),
    "a float": lambda x, s: float(s),
    "a size": lambda x, s: x.view(s),
    "sizes in a tuple": lambda x, s: F.pad(x, (s, s)),
    "like a tensor": lambda x, s: torch.overrides.is_tensor_like(s),
}


@pytest.mark.parametrize("use", OF_TENSORS.values(), ids=OF_TENSORS)
@pytest.mark.parametrize("cls", [AnsweringTensor, NotingTensor])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_tensors_are_asked_about_each_step(cls, shape, use):
    _same(use, lambda: torch.ones(shape, dtype=torch.long).as_subclass(cls))


def test_a_classmethod_is_read_from_the_class():
    meta = type("Meta", (type(torch.Tensor),), {"__torch_function__": property(_raises("class"))})
    kind = meta("Kind", (torch.Tensor,), {"__torch_function__": classmethod(_answers)})
    _same(USES["like"], lambda: torch.ones(2).as_subclass(kind))
    _same(USES["add"], lambda: torch.ones(2).as_subclass(kind))


@pytest.mark.parametrize("base", [torch.nn.Module, torch.nn.Parameter])
def test_a_dictionary_below_a_property_is_read(base):
    """Capture looks for attributes in what an object keeps, whatever its class says about ``__dict__``."""

    def read(self):
        RAN.append("__dict__")
        return {}

    kind = type("Kind", (base,), {"__dict__": property(read)})
    _same(lambda x, s: torch.overrides.is_tensor_like(s) or s.none, kind)
