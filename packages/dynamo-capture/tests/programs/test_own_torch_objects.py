"""What users add to torch: custom operators, tensor subclasses, objects and modes with ``__torch_function__``."""

import torch

X = torch.arange(6.0).reshape(2, 3) + 1


@torch.library.custom_op("capture_programs::triple", mutates_args=())
def triple(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@torch.library.custom_op("capture_programs::bump", mutates_args=("x",))
def bump(x: torch.Tensor) -> None:
    x.add_(1)


def test_custom_operators(same):
    same(lambda x: (triple(x) + torch.ops.capture_programs.triple(x), triple(triple(x))), (X,), (X + 1,))


def test_custom_operator_that_mutates(same):
    def f(x):
        y = x * 2
        bump(y)
        bump(x)
        return y + x

    same(f, (X,), (X + 1,))


class Tagged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs or {})
        if func is torch.add or func is torch.Tensor.add:
            return out * 2
        return out

    def __deepcopy__(self, memo):
        return self.as_subclass(torch.Tensor).clone().as_subclass(Tagged)


def test_tensor_subclass_with_torch_function(same):
    same(lambda x: (x + 1, torch.add(x, 1), x * 2), (X.as_subclass(Tagged),), ((X + 1).as_subclass(Tagged),))


class Wrapped:
    """No tensor, but takes part in torch functions."""

    def __init__(self, t):
        self.t = t

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        plain = [a.t if isinstance(a, Wrapped) else a for a in args]
        return Wrapped(func(*plain, **(kwargs or {})))


def test_object_with_torch_function(same):
    same(lambda x: torch.sin(Wrapped(x)).t + torch.add(Wrapped(x), 1).t, (X,), (X + 1,))


def test_torch_function_mode_outside(same):
    from torch.overrides import TorchFunctionMode

    class Double(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            return out * 2 if func is torch.sin else out

    def f(x):
        with Double():
            return torch.sin(x)

    same(f, (X,), (X,))
