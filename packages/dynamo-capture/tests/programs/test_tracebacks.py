"""Tracebacks of exceptions that are caught while captured are those of eager."""

from __future__ import annotations

import pytest

START = """\
import torch, traceback, sys, contextlib
def where(e):
    return [(f.name, f.lineno, f.line, f.colno, f.end_colno) for f in traceback.extract_tb(e.__traceback__)]
class Err(Exception):
    def __init__(self, a, b=2): super().__init__(a); self.b = b
def deep(n, x):
    if n == 0:
        raise Err(n)
    return deep(n - 1, x) + 1
KEEP = []
CALLS = [lambda: (torch.arange(6.) + 1,), lambda: (torch.arange(6.) * 2,), lambda: (torch.arange(4.) - 1,)]
"""

PROGRAMS = {
    "kept after the block": START
    + """\
def program(x):
    y = x + 1
    try:
        deep(3, x)
    except Err as e:
        KEEP.append(e)
    return y, where(KEEP[-1])
""",
    "causes and contexts": START
    + """\
def program(x):
    try:
        try:
            deep(1, x)
        except Err as e:
            raise ValueError("v") from e
        finally:
            x = x + 1
    except ValueError as v:
        return x, v, where(v), where(v.__cause__), where(v.__context__)
""",
    "raised on": START
    + """\
def program(x):
    try:
        try:
            deep(1, x)
        except Err:
            raise
    except Err as e:
        return x * 2, where(e), e.__traceback__.tb_next.tb_lineno, e.__traceback__.tb_lineno
""",
    "raised again by name": START
    + """\
def program(x):
    try:
        try:
            deep(1, x)
        except Err as e:
            raise e
    except Err as e:
        return x * 2, where(e)
""",
    "without its traceback": START
    + """\
def program(x):
    try:
        try:
            deep(0, x)
        except Err as e:
            raise e.with_traceback(None)
    except Err as e:
        return x * 2, where(e)
""",
    "traceback taken away": START
    + """\
def program(x):
    try:
        deep(0, x)
    except Err as e:
        e.__traceback__ = None
        r = e.__traceback__ is None
        return x * 2, r, where(e)
""",
    "seen by a context manager": START
    + """\
class C:
    def __enter__(self): return self
    def __exit__(self, t, v, tb):
        self.seen = (t.__name__, str(v), tb is v.__traceback__, tb.tb_lineno, tb.tb_next is None, traceback.extract_tb(tb)[-1].name)
        return True
def program(x):
    c = C()
    with c:
        deep(0, x)
    return x + 1, c.seen
""",
    "seen by a generator-based context manager": START
    + """\
@contextlib.contextmanager
def man(log):
    try:
        yield 1
    except Err as e:
        log.append(where(e))
        raise
def program(x):
    log = []
    try:
        with man(log):
            deep(0, x)
    except Err as e:
        log.append(where(e))
    return x + 1, log
""",
    "from a generator": START
    + """\
def gen(x):
    try:
        yield x
        raise KeyError("k")
    except KeyError as e:
        yield where(e)
        raise Err(3)
def program(x):
    out = []
    try:
        for v in gen(x): out.append(v)
    except Err as e:
        out.append(where(e))
    return out
""",
    "from an operation": START
    + """\
def program(x):
    try:
        x @ torch.ones(77)
    except RuntimeError as e:
        return x + 1, str(e), where(e)[:1]
""",
    "from instructions": START
    + """\
def program(x):
    try:
        [][3]
    except IndexError as e:
        a = where(e)
    try:
        {}["z"]
    except KeyError as e:
        b = where(e)
    try:
        x.nope
    except AttributeError as e:
        c = where(e)
    try:
        1 / 0
    except ZeroDivisionError as e:
        d = where(e)
    try:
        undefined_name
    except NameError as e:
        f = where(e)
    return a, b, c, d, f, x + 1
""",
    "raised with a cause": START
    + """\
def program(x):
    raise Err(1, b=3) from KeyError(2)
""",
    "through finally": START
    + """\
def program(x):
    try:
        deep(2, x)
    finally:
        x.add_(1)
""",
    "with a note": START
    + """\
def program(x):
    try:
        deep(2, x)
    except Err as e:
        e.add_note("hello")
        raise
""",
    "groups": START
    + """\
def program(x):
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
    except* ValueError as g:
        r = g.exceptions
    except* KeyError as g:
        s = g.exceptions
    return x + 1, r, s
""",
    "printed before and after a break": START
    + """\
def program(x):
    try:
        deep(0, x)
    except Err:
        r = traceback.format_exc()
        print(x.sum().item())
        s = traceback.format_exc()
    return x + 1, r, s, sys.exc_info()
""",
    "after a nested break": START
    + """\
def program(x):
    def inner():
        print(x.sum().item())
        raise Err(5)
    try:
        inner()
    except Err as e:
        return where(e), x + 1
""",
    "left after a nested break": START
    + """\
def inner(x):
    y = x + 1
    print(x.sum().item())
    if len(y) > 2:
        raise Err(5)
    return y
def program(x):
    z = x * 2
    r = inner(z) + 1
    return r
""",
    "left while another is handled": START
    + """\
def inner(x):
    y = x + 1
    try:
        raise KeyError("a")
    except KeyError as e:
        print(x.sum().item())
        raise Err(3) from e
def program(x):
    z = x * 2
    r = inner(z) + 1
    return r
""",
    "from a property after a break": START
    + """\
class P:
    @property
    def v(self):
        print("in v")
        raise AttributeError("inside")
def program(x):
    return P().v + x
""",
    "from special methods after a break": START
    + """\
class A:
    def __add__(self, o):
        print("add")
        raise Err(3)
    def __len__(self):
        print("len"); raise Err(4)
    def __init__(self): print("init")
def program(x):
    a = A()
    try:
        a + x
    except Err as e:
        r = where(e)
    try: len(a)
    except Err as e: r += where(e)
    return r, x + 1
""",
    "frames": START
    + """\
def program(x):
    try:
        deep(0, x)
    except Err as e:
        tb = e.__traceback__
        return tb.tb_frame.f_code.co_name, tb.tb_frame.f_lineno, tb.tb_next.tb_frame.f_code is deep.__code__, tb.tb_next.tb_next, isinstance(tb, type(sys.exc_info()[2])), type(tb).__name__, x + 1
""",
    "raised twice": START
    + """\
def program(x):
    try:
        raise Err(3)
    except Err as e:
        k = e
    try:
        raise k
    except Err as e:
        r = where(e)
    return r, x + 1
""",
    "raised from outside": START
    + """\
E0 = Err(7)
def program(x):
    try:
        raise E0
    except Err as e:
        pass
    return x + 1
WATCHED = {"e": [E0]}
""",
    "from builtins": START
    + """\
def program(x):
    try:
        next(iter([]))
    except StopIteration as e:
        a = where(e)
    try:
        max([])
    except ValueError as e: b = where(e)
    try:
        sorted([1, 2], key=lambda v: v.foo)
    except AttributeError as e: c = where(e)
    try:
        list(map(lambda v: v.foo, [1]))
    except AttributeError as e: c += where(e)
    try:
        torch.nn.functional.linear(x, torch.ones(3, 99))
    except RuntimeError as e: c += where(e)[:1]
    return a, b, c, x + 1
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name, as_in_eager):
    as_in_eager(PROGRAMS[name])
