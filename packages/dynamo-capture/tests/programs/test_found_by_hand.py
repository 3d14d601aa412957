"""Programs that were written by hand to cross features that the adversaries did not draw: the smallest that differed."""

from __future__ import annotations

import pytest

START = """\
import collections
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

CHANGED = """
def drained(make, iterate, change, breaks):
    made = make()
    iterator = iterate(made)
    seen = [next(iterator)]
    change(made)
    if breaks:
        brk()
    seen += [caught(list, iterator), caught(next, iterator, "end")]
    change(made)
    return seen, caught(list, iterator), list(made)
"""

DEQUE = """
CHANGES = [
    lambda d: d.append(1), lambda d: d.rotate(1), lambda d: d.rotate(0), lambda d: d.rotate(3), lambda d: d.pop(),
    lambda d: d.clear(), lambda d: d.extend([]), lambda d: d.extend([1]), lambda d: caught(d.insert, 1, 5),
    lambda d: caught(d.remove, 1), lambda d: d.reverse(), lambda d: d.__setitem__(0, 9), lambda d: d.__delitem__(0),
    lambda d: d.__imul__(1), lambda d: d.__imul__(2), lambda d: d.__iadd__([]), lambda d: d.extendleft([]),
    lambda d: (d.append(1), d.pop()), lambda d: d.appendleft(1), lambda d: d.popleft(), lambda d: d.copy(),
]
"""

PROGRAMS = {
    "operators of a container do not ask its __getattribute__": """
def hiding(base):
    class Hides(base):
        def __getattribute__(self, name):
            if name in base.__dict__:
                raise AttributeError(name)
            return base.__getattribute__(self, name)
        def __getattr__(self, name):
            return lambda *args: ("asked", name)
    return Hides
class Own(list):
    pass
MADE = [hiding(tuple)((1, 2)), hiding(list)([1, 2]), hiding(dict)({0: 5}), Own([1, 2])]
MADE[3].__getitem__ = MADE[3].__iter__ = lambda *args: "own"
def program(x):
    uses = (
        lambda o: o[0], lambda o: o[0:1], lambda o: o + o, lambda o: o * 2, list, lambda o: [*o], lambda o: 1 in o,
        lambda o: list(reversed(o)), lambda o: (lambda a, b: (a, b))(*o), len, lambda o: o.__len__(), sorted,
    )
    return x + 1, [caught(use, made) for made in MADE for use in uses]
""",
    "a class whose initializer is given other arguments makes one object": """
class Made:
    def __new__(cls, *args, **kwargs):
        LOG.append("new")
        return super().__new__(cls)
    def __init__(self, a, b):
        LOG.append("init")
def program(x):
    return x + 1, caught(Made, 1), caught(Made, 1, 2, 3), caught(lambda: Made(1, c=2)), type(Made(1, 2)).__name__
""",
    "of equal keys in a display the first stays": """
def program(x):
    return x + 1, {1: "a", True: "b", 1.0: "c"}, {0.0: 1, -0.0: 2}, {False: x, 0: x * 2}
""",
    "an object is asked for its length where a call spreads it": """
class Counted:
    def __len__(self):
        LOG.append("len")
        return 2
    def __getitem__(self, index):
        return [1, 2][index]
def program(x):
    return x + 1, (lambda *args: args)(*Counted())
""",
    "the hash of a tensor by its method": """
def program(x):
    return x + 1, x.__hash__() == id(x), torch.Tensor.__hash__(x) == hash(x), {x: 1}[x]
""",
    "a list is empty while it is sorted": """
def program(x):
    seen, items, more = [], [3, 1, 2], [2, 1]
    items.sort(key=lambda item: (seen.append(len(items)), -item)[1])
    def growing(item):
        more.append(item)
        return item
    return x + 1, seen, items, caught(lambda: more.sort(key=growing)), more
""",
    "a comparison makes the list shorter that is searched": """
class Clears:
    def __init__(self, items):
        self.items = items
    def __eq__(self, other):
        self.items.clear()
        return False
def program(x):
    items = []
    items += [1, Clears(items), 3]
    return x + 1, caught(items.index, 3), items
""",
    "values that no member of an enumeration has": """
import enum
class Level(enum.Enum):
    LOW, HIGH = 1, 2
    @classmethod
    def _missing_(cls, value):
        LOG.append(value)
        return cls.LOW if value == 9 else None
def program(x):
    LOG.append("begins")
    return x + 1, Level(2), Level(9), caught(Level, 7), Level(Level.LOW)
""",
    "a module that is made inside, under hooks of all modules": """
def program(x):
    handle = torch.nn.modules.module.register_module_forward_hook(lambda module, args, out: out * 2)
    try:
        return torch.nn.ReLU()(x)
    finally:
        handle.remove()
""",
    "a number from data in the place of another attribute": """
class Best:
    pass
BEST = Best()
BEST.value = 0.0
WATCHED = {"best": BEST}
def program(x):
    BEST.value = x.sum().item()
    return x + 1
""",
    "a negative number to the power of a tensor": """
def program(x):
    return (-2.0) ** x, (-3) ** x.long(), (-0.0) ** x, (-2) ** x.sum(), 2 ** x, -(2 ** x)
""",
    "a write that is refused outside of inference mode is done all the same": """
def program(x):
    with torch.inference_mode():
        y = x * 3
        v = y[0:2]
    return caught(y.add_, 1), caught(v.mul_, 2), caught(torch._foreach_add_, [y], 5), y.clone(), v.clone()
""",
    "a set that changes while it is iterated": CHANGED
    + """
def program(x):
    seen = []
    for change in (lambda s: s.add(9), lambda s: s.discard(1), lambda s: s.add(1), lambda s: s.clear()):
        for breaks in (False, True):
            seen.append(drained(lambda: {1, 2, 3}, iter, change, breaks))
    return x + 1, seen
""",
    "a deque that changes while it is iterated": CHANGED
    + DEQUE
    + """
def program(x):
    seen = []
    for change in CHANGES:
        for limit in (None, 3):
            seen.append(drained(lambda: collections.deque([0, 1, 2], limit), iter, change, False))
    return x + 1, seen
""",
    "a deque that changes while it is iterated backward": CHANGED
    + DEQUE
    + """
def program(x):
    return x + 1, [drained(lambda: collections.deque([0, 1, 2]), reversed, change, False) for change in CHANGES]
""",
    "iterators over what has changed at a graph break": CHANGED
    + """
def program(x):
    grown = lambda made: made.append(5) if hasattr(made, "append") else made.update({9: 9})
    seen = []
    for make in (lambda: collections.deque([1, 2]), lambda: {1: 2, 3: 4}, lambda: collections.OrderedDict(a=1, b=2)):
        seen += [drained(make, iterate, grown, True) for iterate in (iter, reversed)]
    seen += [drained(lambda: {1: 2, 3: 4}, lambda d: reversed(d.items()), grown, True)]
    return x + 1, seen
""",
    "a list that changes while it is iterated backward": CHANGED
    + """
def program(x):
    seen = []
    for change in (lambda l: l.append(9), lambda l: l.pop(), lambda l: l.clear(), lambda l: l.__setitem__(0, 7)):
        for breaks in (False, True):
            seen.append(drained(lambda: [1, 2, 3, 4], reversed, change, breaks))
    return x + 1, seen
""",
    "a dictionary that changes while it is iterated backward": """
def program(x):
    d, seen = {1: 2, 3: 4, 5: 6}, []
    for key, value in reversed(d.items()):
        seen.append((key, value))
        d[1] = 7
    backward = reversed(d)
    seen.append(next(backward))
    d[9] = 9
    return x + 1, seen, caught(next, backward)
""",
    "an outer iterator over a deque whose item an inner function replaces": """
DEQUE, ITERATOR = collections.deque([1, 2, 3]), []
def replaces(d):
    d[0] = 9
def program(x):
    iterator = iter(DEQUE)
    next(iterator)
    brk()
    ITERATOR.append(iterator)
    return replaces(DEQUE), x + 1
def after(result, x):
    return list(ITERATOR.pop())
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name, as_in_eager):
    as_in_eager(START + PROGRAMS[name])
