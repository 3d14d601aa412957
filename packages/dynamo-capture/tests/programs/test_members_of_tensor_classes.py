"""Members that a class of tensors has under torch's names are the program's, whatever ``__torch_function__`` is."""

from __future__ import annotations

import operator

import pytest
import torch
from torch.overrides import TorchFunctionMode

from dynamo_capture import optimize

LOG: list[str] = []


class Own(torch.Tensor):
    """Nothing is asked of ``__torch_function__``, and much is its own."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @property
    def shape(self):
        LOG.append("shape")
        return super().shape

    @property
    def device(self):
        LOG.append("device")
        return super().device

    def stride(self, *dim):
        LOG.append("stride")
        return super().stride(*dim)

    def add_(self, other):
        LOG.append("add_")
        return super().add_(other)

    def item(self):
        LOG.append("item")
        return 99

    dim = 7

    def __add__(self, other):
        LOG.append("add")
        return super().__add__(other)

    def __len__(self):
        return 77

    def __bool__(self):
        return False

    def __int__(self):
        return 41

    def __float__(self):
        return 4.5

    def __index__(self):
        return 2


class Asked(torch.Tensor):
    """Notes what is asked."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        LOG.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


class OwnAndAsked(Own):
    __torch_function__ = classmethod(torch.Tensor.__torch_function__.__func__)


class Noting(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        LOG.append(func.__name__)
        return func(*args, **(kwargs or {}))


EXPRESSIONS = [
    "x.add_(1)", "torch.add(x, 1, out=y)", "x + 1, x.shape", "[x.dim][0] == 7", "x.stride(), x.device", "len(x)", "bool(x)",
    "1 if x else 2", "int(x)", "float(x)", "[1, 2, 3][x]", "range(5)[x]", "operator.index(x)", "f'{x}', f'{x!r}'",
    "x.as_subclass(Own)", "x.as_subclass(Asked) + 1", "y.as_subclass(Own).shape", "(y + 1).as_subclass(Own)",
    "type((y + 1).as_subclass(Own)).__name__", "x.as_subclass(torch.Tensor)", "isinstance(x, Own)",
]  # fmt: skip


PLAIN = torch.Tensor.as_subclass


def told(result):
    """What a program returned, read past the classes."""
    if isinstance(result, torch.Tensor):
        with torch._C.DisableTorchFunctionSubclass():
            return type(result).__name__, torch.Tensor.tolist(PLAIN(result, torch.Tensor))
    return [told(item) for item in result] if isinstance(result, (list, tuple)) else result


def both(program, cls, dtype=torch.int64):
    """Twice as it is, twice captured, each time on new tensors: what it returns, what is logged, what is left."""
    runs = []
    for function in (program, optimize(lambda graph, inputs: graph.forward)(program)):
        for _ in range(2):
            x, y = torch.ones(1, dtype=dtype).as_subclass(cls), torch.ones(1, dtype=dtype)
            LOG.clear()
            try:
                result = function(x, y)
            except Exception as error:
                result = type(error).__name__, str(error)
            runs.append((list(LOG), told(result), told(x), told(y)))
    assert runs[2] == runs[0] == runs[1] == runs[3]


@pytest.mark.parametrize("cls", [Own, OwnAndAsked, Asked])
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_members_mean_what_the_class_makes_of_them(cls, text):
    space: dict[str, object] = {}
    body = f"    y = y * 2\n    r = {text}\n    return r, y"
    exec(f"def program(x, y):\n{body}", {**globals(), "operator": operator}, space)
    both(space["program"], cls)


def test_a_tensor_as_its_own_class_is_no_operation():
    def program(x, y):
        with Noting():
            z = x.as_subclass(Asked)
        return z.as_subclass(Asked), z is x, y + 1

    both(program, Asked)


def test_a_parameter_with_members_of_its_own():
    class Weight(torch.nn.Parameter):
        @property
        def shape(self):
            LOG.append("shape")
            return super().shape

        def __add__(self, other):
            LOG.append("add")
            return super().__add__(other)

    def program(w, y):
        return (w * y).sum() + (w + 1).sum() + w.shape[0]

    grads = []
    for function in (program, optimize(lambda graph, inputs: graph.forward)(program)):
        LOG.clear()
        weight = Weight(torch.ones(2))
        function(weight, torch.ones(2) * 2).backward()
        grads.append((told(weight.grad), list(LOG)))
    assert grads[0] == grads[1] == (("Tensor", [3.0, 3.0]), ["add", "shape"])
