"""Objects of ``weakref.proxy``, and weak references to tensors that are computed."""

from __future__ import annotations

import weakref

import pytest
import torch

from dynamo_capture import optimize

START = """\
import weakref
import torch
class Trainer:
    kind = "class"
    def __init__(self, x):
        self.foo, self.calls = x, 0
    def step(self, x):
        self.calls += 1
        return x * self.calls
    @property
    def double(self):
        return self.foo * 2
    def __len__(self):
        return 3
    def __getitem__(self, index):
        return self.foo + index
    def __add__(self, other):
        return self.foo + other
    def __eq__(self, other):
        return "equal"
    def __hash__(self):
        return 7
    def __call__(self, x):
        return x + 5
class Model:
    pass
KEPT = []
def made(n):
    trainer = Trainer(torch.ones(n))
    KEPT.append(trainer)
    model = Model()
    model.trainer, model.own = weakref.proxy(trainer), trainer
    return model
CALLS = [lambda: (torch.ones(2), made(2)), lambda: (torch.ones(2), made(2)), lambda: (torch.ones(3), made(3))]
WATCHED = {"kept": KEPT}
def caught(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error)
"""

PROGRAMS = {
    "attributes and methods": """
def program(x, model):
    t = model.trainer
    t.extra = x + 1
    del t.foo
    t.foo = t.extra * 2
    return t.foo, t.step(x), t.double, t.kind, hasattr(t, "nothing"), getattr(t, "calls"), model.own.extra
""",
    "what it is": """
def program(x, model):
    t = model.trainer
    return (isinstance(t, Trainer), isinstance(t, Model), isinstance(t, weakref.ProxyTypes), type(t) is Trainer, t is model.own,
        t.__class__ is Trainer, x + 1)
""",
    "as an object of its class": """
def program(x, model):
    t = model.trainer
    return len(t), t[1], t + x, t == 3, bool(t), callable(t), t(x), caught(hash, t)
""",
    "passed on": """
def use(t, x):
    return t.step(x)
def program(x, model):
    t = model.trainer
    model.again = t
    return [t], use(t, x), model.again is t
""",
    "across a graph break": """
def program(x, model):
    model.trainer.seen = x + 1
    print(x.sum().item())
    return model.trainer.seen + model.trainer.step(x)
""",
    "in a loop": """
def program(x, model):
    for _ in range(3):
        x = model.trainer.step(x)
    return x
""",
    "a reference to a computed tensor": """
def program(x, model):
    y = x * 2
    reference = weakref.ref(y)
    return reference, y, reference() is y
""",
    "a reference to a tensor that dies": """
def program(x, model):
    y = x * 2
    reference = weakref.ref(y)
    y = y + 1
    return reference() is None, y
""",
    "a reference that a tensor's owner keeps": """
def program(x, model):
    model.value = x * 2
    model.reference = weakref.ref(model.value)
    print(x.sum().item())
    return model.reference() is model.value, x + 1
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name, as_in_eager):
    as_in_eager(START + PROGRAMS[name])


class Owner:
    def __init__(self, value):
        self.value = value


def test_what_a_proxy_stands_for_changes_and_dies(forward):
    def program(x, holder):
        return x + holder[0].value

    fast = optimize(forward)(program)
    for value in (1.0, 2.0):
        owner = Owner(torch.full((2,), value))
        assert torch.equal(fast(torch.ones(2), [weakref.proxy(owner)]), torch.full((2,), value + 1))
    holder = [weakref.proxy(owner)]
    assert torch.equal(fast(torch.ones(2), holder), torch.full((2,), 3.0))
    del owner
    for run in (program, fast):
        with pytest.raises(ReferenceError):
            run(torch.ones(2), holder)


def test_what_is_missing_is_missing_in_what_a_proxy_stands_for(forward):
    def f(x, proxy):
        x = x + 1
        try:
            return proxy.missing, x
        except AttributeError as error:
            return error.name, type(error.obj).__name__, str(error), x

    owner = Owner(1)
    fast = optimize(forward, fullgraph=True)(f)
    assert fast(torch.ones(2), weakref.proxy(owner))[:2] == ("missing", "Owner")


def test_an_object_with_a_proxy_that_the_function_deletes(same):
    class Kept:
        def __getattr__(self, name):
            raise AttributeError(name)

    def f(x):
        kept = Kept()
        kept.value = x
        proxy = weakref.proxy(kept)
        made = proxy.value + 1
        del kept
        try:
            return made, proxy.value
        except ReferenceError as error:
            return made, str(error)

    same(f, (torch.ones(2),), (torch.ones(2),), (torch.ones(3),))
