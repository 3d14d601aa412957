"""Programs that were written by hand, second part: what is asked about tensors, of whom, and how often."""

from __future__ import annotations

import pytest

START = """\
import torch
LOG = []
WATCHED = {"log": LOG}
CALLS = [lambda: (torch.arange(6.) - 2,), lambda: (torch.arange(6.) * 2,), lambda: (torch.arange(4.) - 1,)]
def caught(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error)
def brk():
    print(end="")
"""

MODE = """
class Noting(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        LOG.append(getattr(function, "__name__", str(function)))
        return function(*args, **(kwargs or {}))
class Noted(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        LOG.append(getattr(function, "__name__", str(function)))
        return super().__torch_function__(function, types, args, kwargs or {})
def under(use, x):
    with Noting():
        return caught(use, x)
NUMBERS = [lambda: (torch.tensor(2),), lambda: (torch.tensor(3),)]
"""

PROGRAMS = {
    "numbers of views that share memory": """
def program(x):
    one, two = x[0], x[1]
    brk()
    return one.item() > 2, 1 if two else 0, f"{one:.1f}", x + 1
""",
    "numbers of a tensor under two names": """
WEIGHT = torch.nn.Parameter(torch.tensor(2.0))
def program(x):
    other = WEIGHT.detach()
    brk()
    return WEIGHT.item() > 1, other.item() > 2, x + 1
""",
    "a list that grows by a tensor under a mode": MODE
    + """
def program(x):
    items = [1]
    with Noting():
        items += x
        LOG.append("then")
        items.extend(x)
    return items, list(x)
""",
    "containers that grow by a tensor": """
import collections
def program(x):
    items = same = [1]
    items += x
    queue = collections.deque([1], maxlen=3)
    queue += x
    def refuses(made, tensor):
        made += tensor
    return (
        items, same is items, queue, caught(refuses, (1,), x), caught(refuses, "a", x), caught(refuses, [1], x[0]),
        caught(refuses, {1}, x),
    )
""",
    "a copy of a tensor of a class where classes are not asked": """
import copy
class Plain(torch.Tensor):
    pass
CALLS = [lambda: (torch.arange(3.0).as_subclass(Plain),)]
def program(x):
    with torch._C.DisableTorchFunctionSubclass():
        return copy.copy(x), x + 1
""",
    "a list that grows by a tensor of a class": MODE
    + """
CALLS = [lambda: (torch.arange(3.0).as_subclass(Noted),), lambda: (torch.arange(4.0).as_subclass(Noted),)]
def program(x):
    items = [1]
    items += x
    LOG.append("then")
    return items, [*x], list(x), tuple(x)
""",
    "containers and texts beside tensors under a mode": MODE
    + """
CALLS = NUMBERS
USES = [
    lambda x: [1] * x, lambda x: x * (1, 2), lambda x: "ab" * x, lambda x: [5, 6][x - x], lambda x: f"{x}",
    lambda x: "%s" % x, lambda x: [1] + x, lambda x: x == [2], lambda x: x != "a", lambda x: x in [2, 3],
    lambda x: [1, 2, 3][:x], lambda x: range(x), lambda x: x // "a", lambda x: {1: 2} == x, lambda x: [*x[None], 1],
]
def program(x):
    return [under(use, x) for use in USES]
""",
    "copies of tensors under a mode": MODE
    + """
import copy
CALLS = NUMBERS
def program(x):
    return under(copy.copy, x), under(copy.deepcopy, x)
""",
    "a deep copy that the class of a tensor refuses is asked for once": MODE
    + """
import copy
CALLS = [lambda: (torch.arange(3.0).as_subclass(Noted),)]
def program(x):
    return caught(copy.deepcopy, x)
""",
    "arrays of tensors under a mode": MODE
    + """
import numpy as np
USES = [
    lambda x: x.numpy().sum(), lambda x: np.asarray(x).max(), lambda x: x.__array__().shape, lambda x: np.abs(x.numpy()),
    lambda x: x.numpy()[1:] * 2, lambda x: np.linalg.norm(x.numpy()),
]
def program(x):
    return [under(use, x) for use in USES]
""",
    "functions of a class of tensors are asked about as one": MODE
    + """
CALLS = [lambda: (torch.arange(3.0).as_subclass(Noted),), lambda: (torch.arange(4.0).as_subclass(Noted),)]
def program(x):
    LOG.append("begins")
    other = x + 0
    return (
        x.numpy().sum(), torch.allclose(x, other), torch.equal(x, other), x.allclose(other), x.equal(other),
        torch.func.vmap(torch.sin)(x),
    )
""",
    "gradients of a class of tensors are of the class": MODE
    + """
class Plain(torch.Tensor):
    pass
CALLS = [lambda cls=cls: (torch.arange(3.0).as_subclass(cls).requires_grad_(),) for cls in (Plain, Noted)]
def program(x):
    return torch.autograd.grad((x * 2).sum(), x)
""",
    "a class of tensors is asked for its length where a list is made": """
class Sized(torch.Tensor):
    def __len__(self):
        LOG.append("len")
        return super().__len__()
CALLS = [lambda: (torch.arange(3.0).as_subclass(Sized),), lambda: (torch.arange(4.0).as_subclass(Sized),)]
def program(x):
    return [*x], len(list(x)), len(tuple(x)), max(x)
""",
    "reversed is asked how many items are left": """
class Numbers:
    def __init__(self, count, error=None):
        self.left, self.count, self.error = 2, count, error
    def __len__(self):
        LOG.append("len")
        self.left -= 1
        if self.error and not self.left:
            raise self.error
        return self.count
    def __getitem__(self, index):
        LOG.append(index)
        return [0, 1, 2, 3][index]
def program(x):
    whole = reversed(Numbers(3))
    return (
        x + 1, list(reversed(Numbers(x.shape[0] - 3))), [*reversed(Numbers(2))], tuple(reversed(Numbers(0))),
        max(reversed(Numbers(3))), list(iter(Numbers(2))), list(whole), list(whole),
        caught(lambda: list(reversed(Numbers(2, TypeError("no"))))),
        caught(lambda: list(reversed(Numbers(2, ValueError("no"))))),
    )
""",
    "answers of __index__ that are no integers": """
class Answers:
    def __init__(self, answer):
        self.answer = answer
    def __index__(self):
        return self.answer
def program(x):
    uses = (
        lambda o: [1, 2, 3][o], lambda o: (1, 2)[o], lambda o: "abc"[o], lambda o: [1, 2][:o], lambda o: [0] * o,
        lambda o: range(o), lambda o: [1, 2].pop(o), lambda o: hex(o),
    )
    return x + 1, [caught(use, Answers(answer)) for answer in ("a", 1.5, None, [1], True) for use in uses]
""",
    "windows that are pooled and not used": """
def program(x):
    torch.max_pool1d(x.long()[None], 2)
    return x + 1
""",
    "windows that are pooled where nothing is": """
CALLS = [lambda: (torch.zeros(0, 3),), lambda: (torch.zeros(2, 0),), lambda: (torch.zeros(2, 3),)]
def program(x):
    return x + 1, caught(torch.max_pool1d, x[None], 2), caught(torch.max_pool1d, x.long()[None], 2)
""",
    "variances of tensors without elements": """
CALLS = [lambda: (torch.zeros(0, 3),), lambda: (torch.zeros(2, 0),), lambda: (torch.zeros(2, 3),)]
def program(x):
    return x + 1, x.var(0), x.std(1)
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name, as_in_eager):
    as_in_eager(START + PROGRAMS[name])
