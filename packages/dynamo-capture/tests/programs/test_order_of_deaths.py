"""At the end of a frame, what it holds dies in the order of its variables, wherever the graph ended in between: what the
program has told about a death (finalizers, callbacks of weak references, ``finally`` in generators) comes as in eager."""

from __future__ import annotations

import contextlib
import gc
import weakref

import pytest
import torch

from dynamo_capture import optimize

LOG: list[object] = []
REFERENCES: list[object] = []


class Box:
    def __init__(self, n=0):
        self.n = n


class Own(Exception):
    pass


def broken(value=None):
    print(end="")
    return value


def told(n):
    """An object with a finalizer."""
    box = Box(n)
    weakref.finalize(box, LOG.append, ("dies", n))
    return box


def known(n):
    """An object that a weak reference with a callback knows."""
    box = Box(n)
    REFERENCES.append(weakref.ref(box, lambda dead: LOG.append(("gone", n))))
    return box


def rounds(n):
    try:
        while True:
            yield n
    finally:
        LOG.append(("ends", n if isinstance(n, str) else "of a tensor"))


def begun(n):
    it = rounds(n)
    next(it)
    return it


@contextlib.contextmanager
def block(n):
    LOG.append(("in", n))
    try:
        yield told(n)
    finally:
        LOG.append(("out", n))


def own_reference_in_a_loop(x):
    for _ in range(2):
        b = Box(3)
        r = weakref.ref(b, lambda dead: LOG.append("gone"))
        LOG.append(r() is None)


def own_reference_after_a_handler(x):
    b = Box(len(x))
    r = weakref.ref(b, lambda dead: LOG.append("gone"))
    n = 3
    try:
        raise Own(x.shape[0])
    except Own:
        if broken(3) % 2:
            del n
    try:
        LOG.append(n)
    except UnboundLocalError:
        pass
    LOG.append(r() is None)


def own_reference_beside_a_comprehension(x):
    b = Box(int(x.max().item()))
    r = weakref.ref(b, lambda dead: LOG.append("gone"))
    n = {p: broken(p) for p in [1, 2, 3]}
    n = len(n)
    LOG.append(r() is None)


def of_three_kinds(make):
    """Variables whose places come in another order than their values."""

    def program(x):
        x = x * 1.5
        if x.sum() > 100:
            a = b = c = None
        c = make("c")
        broken()
        a = make("a")
        broken()
        b = make("b")
        broken()
        return x + 1

    program.__name__ = f"variables_{make.__name__}"
    return program


def left_by_an_exception(x):
    x = x * 1.5
    if x.sum() > 100:
        a = b = c = None
    c = told("c")
    broken()
    a = told("a")
    broken()
    b = told("b")
    broken()
    raise Own("left")


def in_a_loop(x):
    for i in range(2):
        if i:
            early = told("early")
        broken()
        late = told(("late", i))
        broken()
    return x * 2


def unset_before(x):
    x = x * 1.5
    if x.sum() > 100:
        a = 1
    z = told("z")
    broken()
    if x.sum() < 100:
        a = told("a")
    broken()
    return x + 1


def in_blocks(x):
    x = x * 1.5
    with block(1) as a:
        broken()
        with block(2) as b:
            broken()
            c = told("c")
    LOG.append("after")
    broken()
    return x


def shared_variables(x):
    x = x * 1.5
    a, b, c = told("a"), told("b"), told("c")
    f = lambda: (a, b, c)
    broken()
    y = x + 1
    broken()
    return y


def shared_variables_and_an_exception(x):
    x = x * 1.5
    a, b, c = told("a"), told("b"), told("c")
    f = lambda: (a, b, c)
    broken()
    raise Own("left")


def callee(x, p, q):
    x = x * 1.5
    a, b = told("a"), told("b")
    broken()
    LOG.append("back")
    return x + 1


def arguments_of_a_call(x):
    o = told("o")
    y = callee(x, told("p"), told("q"))
    LOG.append("after")
    broken()
    return y


def swaps(x, p, q):
    broken()
    p, q = q, p
    broken()
    LOG.append("swapped")
    return x * 2


def swapped_arguments(x):
    x = x * 1.5
    return swaps(x, told("p"), told("q"))


def takes_any(x, *args, **kwargs):
    broken()
    LOG.append(len(args))
    return x + 1


def stars(x):
    x = x * 1.5
    return takes_any(x, told(1), told(2), k=told(3), other=told(4))


def three_frames(x):
    def inner(p):
        i = told("i")
        broken()
        k = begun("k")
        broken()
        return 1

    def middle(p, q):
        m = told("m")
        r = inner(p)
        LOG.append("middle")
        return r

    o = told("o")
    y = x * 1.5 + middle(told("p"), told("q"))
    LOG.append("after")
    return y


def generator_in_front(x, o):
    it = begun(x)
    broken()
    o = told("o")
    broken()
    other = begun(x)
    return x + 1


def generator_behind(x, o):
    x = x * 1.5
    broken()
    it = rounds(x)
    next(it)
    return x + 1


def generator_over_a_break(x, o):
    it = rounds(x)
    next(it)
    broken()
    return x + 1


def in_a_call(function):
    def program(x):
        x = x * 1.5
        y = function(x, told("given"))
        LOG.append("after")
        return y

    program.__name__ = function.__name__
    return program


def raises(x, p, q):
    x = x * 1.5
    a = told("a")
    broken()
    b = told("b")
    raise Own(1)


def handled_by_the_caller(x):
    x = x * 1.5
    o = told("o")
    try:
        raises(x, told("p"), told("q"))
    except Own:
        LOG.append("handled")
        broken()
    LOG.append("after")
    broken()
    return x


def raised_through_the_caller(x):
    x = x * 1.5
    o = told("o")
    raises(x, told("p"), told("q"))


class Machine:
    def __init__(self):
        weakref.finalize(self, LOG.append, "machine")

    def run(self, x, o):
        z = told("z")
        broken()
        LOG.append("ran")
        return x


def of_a_class_with_init(x):
    x = x * 1.5
    machine = Machine()
    y = machine.run(x, told("given"))
    LOG.append("back")
    return y


def gives_a_list(x):
    x = x * 1.5
    a, b = told("a"), told("b")
    broken()
    found = [b]
    broken()
    LOG.append("made")
    return found


PROGRAMS = [
    own_reference_in_a_loop,
    own_reference_after_a_handler,
    own_reference_beside_a_comprehension,
    *map(of_three_kinds, (told, known, begun)),
    left_by_an_exception,
    in_a_loop,
    unset_before,
    in_blocks,
    shared_variables,
    shared_variables_and_an_exception,
    arguments_of_a_call,
    swapped_arguments,
    stars,
    three_frames,
    *map(in_a_call, (generator_in_front, generator_behind, generator_over_a_break)),
    handled_by_the_caller,
    raised_through_the_caller,
    of_a_class_with_init,
    gives_a_list,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_variables_die_in_their_order(program):
    seen = []
    for called in (program, optimize(lambda module, examples: module.forward)(program)):
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                LOG.clear()
                REFERENCES.clear()
                _call(called)
                seen.append(list(LOG))
        finally:
            gc.enable()
    assert any(type(one) is tuple or one == "gone" for one in seen[0])
    assert all(one == seen[0] for one in seen)


def _call(called):
    try:
        result = called(torch.ones(3))
    except Own as error:
        LOG.append(type(error).__name__)
        del error
    else:
        LOG.append("returned")
        del result
    LOG.append("let go")
