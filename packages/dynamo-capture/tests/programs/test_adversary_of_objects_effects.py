"""Programs about objects that the adversary found: what happens once too often, or is lost, or is another object."""

from __future__ import annotations

import pytest

START = """\
import torch, numpy, dynamo_capture
LOG = []
WATCHED = {"log": LOG}
CALLS = [lambda: (torch.arange(6.) + 1,), lambda: (torch.arange(6.) * 2,), lambda: (torch.arange(4.) - 1,)]
def caught(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error)
"""

WARNING = """
CALLS = [lambda n=n: (torch.ones(4), n) for n in (2, 0, 0, 7, 0)]
"""

PROGRAMS = {
    "a call of an object that answers for its attributes": """
class P:
    def __getattribute__(self, name):
        LOG.append(name)
        return object.__getattribute__(self, name)
    def __hash__(self):
        LOG.append("hash")
        return 1
O = P()
dynamo_capture.allow_in_graph(caught)
def program(x):
    try:
        O(1)
    except TypeError as error:
        return str(error), x + 1
""",
    "what is there where a graph ends is not asked for anything": """
class P:
    def __getattribute__(self, name):
        LOG.append(name)
        return object.__getattribute__(self, name)
class T(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))
    @property
    def shape(self):
        LOG.append("shape")
        return super().shape
    def size(self, *args):
        LOG.append("size")
        return super().size(*args)
    def dim(self):
        LOG.append("dim")
        return super().dim()
CALLS = [lambda n=n: (torch.arange(2. * n).reshape(2, n).as_subclass(T), P()) for n in (2, 3, 4)]
def program(x, o):
    y = torch.ones(2) + 1
    print(end="")
    z = y * 2
    print(end="")
    return x, o, z
""",
    "sizes of what is no integer": """
class I:
    def __index__(self):
        LOG.append("index")
        return 2
class J(int):
    pass
GIVEN = (2.5, None, "a", I(), J(3), True, (), torch.tensor(3), torch.tensor([3]), torch.tensor(2.), numpy.int64(3))
def program(x):
    y = x + 1
    found = [caught(torch.Size, [2, item]) for item in (*GIVEN, y, y.shape[0])]
    return found, caught(torch.Size, [y, y]), caught(torch.Size, 3), torch.Size(i for i in (1, 2)), y
""",
    "a block of a device gives the device": """
CALLS = [lambda n=n: (torch.ones(n), torch.device("cpu"), range(n, n + 1), slice(1)) for n in (1, 2, 3)]
def program(x, device, numbers, part):
    with device as entered:
        x = x[part] + torch.ones(1)
    for number in numbers:
        x = x + number
    other = device.__enter__()
    device.__exit__(None, None, None)
    return entered is device, other is device, numbers, part, device, x
""",
    "numpy warns of an array that is changed": WARNING
    + """
def program(x, n):
    o = torch.ones(2, 2).numpy().T
    t = o
    t //= n
    return t is o, x + n
""",
    "numpy warns of known numbers": WARNING
    + """
def program(x, n):
    o = numpy.ones(2)
    t = o // n
    o //= n
    return x + n, t, o
""",
    "numpy warns of a tensor's numbers": WARNING
    + """
def program(x, n):
    return x + n, x.numpy() // n
""",
    "numpy warns in Python": """
def program(x):
    return x + 1, numpy.mean(numpy.zeros(0)), numpy.ones(2).astype(complex).astype(float)
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name, as_in_eager):
    as_in_eager(START + PROGRAMS[name])
