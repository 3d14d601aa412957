"""Classes of tensors and modes that take over torch's functions are asked as often, and about the same, as in eager."""

from __future__ import annotations

import pytest
import torch

START = """\
import torch, functools
LOG = []
class T(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        LOG.append(func.__self__.__name__ if hasattr(func, "__self__") and hasattr(func.__self__, "__name__") else func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})
class A(torch.Tensor):
    "Answers for attributes and some methods."
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        n = getattr(func, "__name__", "")
        if n == "__get__": return 42
        if n in ("size", "dim", "numel", "__len__", "stride", "is_floating_point", "element_size", "get_device", "is_contiguous"): return 43
        return super().__torch_function__(func, types, args, kwargs or {})
class W:
    def __init__(self, t): self.t = t
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        f = lambda a: a.t if isinstance(a, W) else a
        r = func(*[f(a) for a in args], **{k: f(v) for k, v in (kwargs or {}).items()})
        return W(r) if isinstance(r, torch.Tensor) else r
def t(n=3): return torch.arange(2.*n).reshape(2, n).as_subclass(T)
def a(n=3): return torch.arange(2.*n).reshape(2, n).as_subclass(A)
WATCHED = {"log": LOG}
CALLS = [lambda: (t(),), lambda: (t(4),), lambda: (t(5),)]
class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        n = getattr(func, "__name__", "")
        LOG.append(n)
        if n == "__get__": return 42
        if n == "dim" or func is len or n == "__len__": return 7
        return func(*args, **(kwargs or {}))
"""

PROGRAMS = {
    "every attribute": START
    + """\
def program(x):
    return x.ndim, x.shape, x.dtype, x.device, x.requires_grad, x.grad, x.T, x.data, x.is_leaf, len(x), x.grad_fn, x.layout, x.is_cuda, x._version, x.itemsize, x.nbytes, x.mT, x.H, x.real, x.is_sparse
""",
    "attributes of a result": START
    + """\
def program(x):
    y = x * 2
    return y.ndim, y.shape, y.dtype, y.device, y.requires_grad, y.grad, y.T, y.data, y.is_leaf, len(y), y.grad_fn
""",
    "getters called as functions": START
    + """\
def program(x):
    return torch.Tensor.ndim.__get__(x), torch.Tensor.shape.__get__(x), torch.Tensor.dtype.__get__(x), torch.Tensor.T.__get__(x), torch.Tensor.data.__get__(x), torch.Tensor.__len__(x), torch.Tensor.is_leaf.__get__(x)
CALLS = [lambda: (a(),), lambda: (a(4),), lambda: (a(5),)]
""",
    "attributes that the class answers": START
    + """\
def program(x):
    return x.ndim, x.shape, len(x), x.size(), x.dim(), x.numel(), x.stride(), x.is_floating_point(), x.is_contiguous(), x.grad, x.data
CALLS = [lambda: (a(),), lambda: (a(4),), lambda: (a(5),)]
""",
    "attributes of a result that the class answers": START
    + """\
def program(x):
    y = x + 1
    return y.ndim, y.shape, len(y), y.size(), y.dim(), y.numel(), y.T, y.is_leaf, y.grad, y.data
CALLS = [lambda: (a(),), lambda: (a(4),), lambda: (a(5),)]
""",
    "wrapper that is no tensor": START
    + """\
def program(x):
    w = W(x)
    return torch.add(w, 1).t, torch.sum(w).t, torch.Tensor.ndim.__get__(w), torch.Tensor.dim(w), torch.Tensor.__len__(w)
CALLS = [lambda: (torch.ones(2,3),), lambda: (torch.ones(2,4),)]
""",
    "mode that answers for attributes": START
    + """\
def program(x):
    with Mode():
        r = x.ndim, x.shape, x.dtype, x.device, x.requires_grad, x.grad, x.T, x.data, x.is_leaf, x.dim()
    return r
CALLS = [lambda: (torch.ones(2,3),), lambda: (torch.ones(2,4),)]
""",
    "len under a mode": START
    + """\
def program(x):
    with Mode():
        r = len(x)
    return r, x.sin()
CALLS = [lambda: (torch.ones(2,3),), lambda: (torch.ones(2,4),)]
""",
    "switched off inside": START
    + """\
def program(x):
    with torch._C.DisableTorchFunctionSubclass():
        r = x.ndim, x.shape, x.dtype, x.data, x.T, len(x), x.dim(), x + 1, x.sin()
    return r
""",
    "another function for one": START
    + """\
class R(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        LOG.append(func.__name__)
        if func is torch.sin:
            return torch.cos(*args)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))
def program(x):
    return torch.sin(x), torch.cos(x)
CALLS = [lambda: (torch.ones(3).as_subclass(R),), lambda: (torch.ones(4).as_subclass(R),)]
""",
    "redispatch on plain tensors": START
    + """\
class R(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        LOG.append(func.__name__)
        plain = [v.as_subclass(torch.Tensor) if isinstance(v, R) else v for v in args]
        return func(*plain, **(kwargs or {}))
def program(x):
    return torch.sin(x), x + 1, x[0]
CALLS = [lambda: (torch.ones(3).as_subclass(R),), lambda: (torch.ones(4).as_subclass(R),)]
""",
    "redispatch without end": START
    + """\
class R(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        LOG.append(func.__name__)
        return func(*args, **(kwargs or {}))
def program(x):
    try:
        return torch.sin(x)
    except RecursionError as e:
        return "recursion", x.__class__ is R
CALLS = [lambda: (torch.ones(3).as_subclass(R),), lambda: (torch.ones(4).as_subclass(R),)]
WATCHED = {}
""",
    "nothing takes the operation": START
    + """\
class R(torch.Tensor):
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented
    __torch_function__ = classmethod(__torch_function__)
def program(x):
    try:
        return torch.sin(x)
    except TypeError as e:
        return str(e)
CALLS = [lambda: (torch.ones(3).as_subclass(R),), lambda: (torch.ones(4).as_subclass(R),)]
""",
    "attributes that are set": START
    + """\
def program(x):
    x.foo = 3
    x.requires_grad_(True)
    x.requires_grad = False
    return x.foo, hasattr(x, "bar"), x.sum()
""",
    "classes of results": START
    + """\
def program(x):
    return isinstance(x, T), type(x) is T, type(x + 1).__name__, type(x.data).__name__, type(x[0]).__name__, [type(i).__name__ for i in x], type(x.view(-1)).__name__, type(torch.stack([x, x])).__name__
""",
    "functions of torch": START
    + """\
def program(x):
    return F.relu(x), F.linear(x, x), torch.nn.functional.softmax(x, -1), torch.split(x, 1), x.split(1), x.unbind(), x.norm(), torch.einsum("ij->ji", x)
import torch.nn.functional as F
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name, as_in_eager):
    as_in_eager(PROGRAMS[name])


def test_methods_of_torch_through_super(same):
    class Own(torch.Tensor):
        def sum(self, dim=None, keepdim=False):
            return super().sum(dim=dim, keepdim=keepdim).as_subclass(Own) * 2

        def split(self, size):
            return [part + 1 for part in super().split(size, 1)]

        def register_hook(self, hook):
            return super().register_hook(lambda grad: hook(grad) * 3)

    def program(x):
        y = (x * 2).as_subclass(Own)
        y.register_hook(lambda grad: grad * 5)
        total = y.sum(dim=1)
        return (
            total.as_subclass(torch.Tensor),
            type(total) is Own,
            [p.as_subclass(torch.Tensor) for p in y.split(1)],
        )

    x = torch.arange(6.0).reshape(2, 3)
    same(program, (x,), (x + 1,), (x.clone().requires_grad_(),))


def test_reserved_words_as_names_of_arguments(same):
    def program(x, args, kwargs):
        torch.manual_seed(3)
        y = x.clone().uniform_(*args, **kwargs)
        return y + 1, x.clone().random_(**{"from": 3, "to": 4})

    x = torch.zeros(2, 3)
    same(program, (x, [], {"from": -10, "to": 10}), (x, [-10], {"to": 10}), (x, [-10, 10], {}))


def test_a_graph_ends_where_classes_are_not_asked(same):
    class Scaled(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            made = super().__torch_function__(func, types, args, kwargs or {})
            return made * 3 if func is torch.add else made

    def program(x, n):
        x = x.as_subclass(Scaled)
        found = [torch.add(x, 1)]
        for _ in range(n):
            with torch._C.DisableTorchFunctionSubclass():
                y = torch.add(x, 1)
                torch._dynamo.graph_break()
                found.append(torch.add(y, x))
            found.append(torch.add(x, 2))
        try:
            with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
                torch._dynamo.graph_break()
                found.append(torch.add(x, 3))
                raise ValueError
        except ValueError:
            found.append(torch.add(x, 4))
        return [one.as_subclass(torch.Tensor) for one in found]

    x = torch.arange(6.0)
    same(program, (x, 1), (x + 1, 2), (x.clone().requires_grad_(), 1))


def test_a_graph_ends_where_gradients_are_off(same):
    """The tensor of a class is handed over with its history."""

    class Plain(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    def program(x):
        x = x.as_subclass(Plain)
        with torch.no_grad():
            torch._dynamo.graph_break()
            y = torch.add(x, 3)
        return torch.add(x, 4).as_subclass(torch.Tensor), y.as_subclass(torch.Tensor)

    x = torch.arange(6.0)
    same(program, (x.clone().requires_grad_(),), (x,), (x.clone().requires_grad_(),))
