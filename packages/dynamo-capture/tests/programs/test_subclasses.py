"""Tensor subclasses and other objects with ``__torch_function__``."""

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

X = torch.arange(6.0).reshape(2, 3) + 1


def given(shift=0.0):
    return (X + shift).requires_grad_()


class Plain(torch.Tensor):
    """Leaves everything as torch has it: results are of this class."""


class Passing(torch.Tensor):
    scale = 2

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})

    def twice(self):
        return self * self.scale

    @property
    def half(self):
        return self / 2

    @classmethod
    def named(cls):
        return cls.__name__

    @staticmethod
    def constant():
        return 3


class Swapping(torch.Tensor):
    """Addition is subtraction."""

    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in (torch.add, torch.Tensor.add):
            func = torch.sub
        return super().__torch_function__(func, types, args, kwargs or {})


class Tagged(torch.Tensor):
    """Results carry the tag of the first argument that has one."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        tags = [arg.tag for arg in args if isinstance(arg, Tagged) and hasattr(arg, "tag")]
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            result = result.as_subclass(cls)
            result.tag = tags[0] if tags else None
        return result


class Wrapped:
    """No tensor."""

    def __init__(self, tensor):
        self.tensor = tensor

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        args = [arg.tensor if isinstance(arg, Wrapped) else arg for arg in args]
        return Wrapped(func(*args, **(kwargs or {})))


def holding(cls, program, trained=False):
    """A program with a tensor of a class from outside as its first argument."""

    def make():
        held = X.clone().requires_grad_(trained).as_subclass(cls)
        return lambda x: program(held, x)

    return make


def plain(*tensors):
    return [tensor.as_subclass(torch.Tensor) for tensor in tensors]


def test_results_are_of_the_class(whole):
    def f(held, x):
        y = held * 2 + x
        return y, type(y) is Plain, isinstance(y, Plain), isinstance(y, torch.Tensor), x * held

    whole.made(holding(Plain, f), (X,), (given(),))


def test_as_subclass(whole):
    def f(x):
        y = x.as_subclass(Passing)
        return y.twice(), type(y), y.as_subclass(torch.Tensor), torch.relu(y)

    whole(f, (X,), (given(),))


def test_methods_properties_and_class_attributes(whole):
    def f(held, x):
        return held.twice(), held.half, held.scale, held.named(), held.constant(), held.twice().half + x

    whole.made(holding(Passing, f), (X,), (given(),))


def test_metadata_and_views(whole):
    def f(held, x):
        return (
            held.shape,
            held.dtype,
            held.size(0),
            held.dim(),
            held[0],
            held.T,
            held.view(-1),
            held.detach(),
            x.device,
        )

    whole.made(holding(Passing, f), (X,))


def test_an_operation_is_replaced(whole):
    def f(held, x):
        return torch.add(held, 1), held + x, held.add(1), held * 2, x + held, torch.cat([x, held])

    whole.made(holding(Swapping, f), (X,), (X + 1,))


def test_attributes_of_results(whole):
    def make():
        held = X.clone().as_subclass(Tagged)
        held.tag = "a"

        def f(x, tag):
            held.tag = tag
            y = held * 2 + x
            return y.tag, y.as_subclass(torch.Tensor), hasattr(y, "other")

        return f

    whole.made(make, (X, "a"), (X, "b"))


def test_gradients_through_subclasses(whole):
    def f(x):
        y = (x.as_subclass(Passing) * 3).sin()
        return y.sum().as_subclass(torch.Tensor)

    whole(f, (given(),), (given(1),))


class Weight(nn.Parameter):
    """A parameter without behaviour of its own."""


class Watched(nn.Parameter):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


def test_parameters_of_subclasses(whole):
    def make(cls):
        def made():
            torch.manual_seed(0)
            layer = nn.Linear(3, 3)
            layer.weight = cls(layer.weight.detach().clone())
            return layer

        return made

    for cls in (Weight, Watched):
        whole.made(make(cls), (given(),), (given(1),))


def test_subclasses_of_subclasses_go_first(whole):
    class Outer(Passing):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is torch.mul:
                return "outer", len(types)
            return super().__torch_function__(func, types, args, kwargs or {})

    def f(x):
        a, b = x.as_subclass(Passing), x.as_subclass(Outer)
        return torch.mul(a, b), torch.mul(b, a), torch.mul(a, a).as_subclass(torch.Tensor)

    whole(f, (X,))


def test_objects_that_are_no_tensors(whole):
    def f(x):
        wrapped = Wrapped(x)
        both = torch.add(wrapped, x).tensor, torch.add(x, wrapped).tensor
        return both, torch.nn.functional.relu(wrapped).tensor, torch.cat([wrapped.tensor, x])

    whole(f, (X,), (given(),))


def test_an_object_from_outside(whole):
    def make():
        held = Wrapped(X.clone())
        return lambda x: torch.mul(held, x).tensor

    whole.made(make, (X,), (given(),))


def test_what_an_override_does_is_done(same):
    class Logging(torch.Tensor):
        log = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            print(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    def g(x):
        return (x.as_subclass(Logging) * 2 + 1).as_subclass(torch.Tensor)

    same(g, (X,), (X + 1,))


def test_an_override_that_is_changed_is_seen():
    from dynamo_capture import optimize

    class Changing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return 1

    held = X.clone().as_subclass(Changing)
    fast = optimize(lambda gm, ex: gm.forward)(lambda x: torch.add(held, x))
    assert fast(X) == 1
    Changing.__torch_function__ = classmethod(lambda cls, func, types, args=(), kwargs=None: 2)
    assert fast(X) == 2


def test_another_class_is_seen(same):
    def make():
        state = {"held": X.clone().as_subclass(Passing)}

        def f(x, swap):
            if swap:
                state["held"] = X.clone().as_subclass(Swapping)
            return (state["held"] + x).as_subclass(torch.Tensor)

        return f

    same.made(make, (X, False), (X, True), (X, False))


def test_function_modes_inside(same):
    class Subtracting(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return (torch.sub if func is torch.add else func)(*args, **(kwargs or {}))

    def f(x):
        with Subtracting():
            y = torch.add(x, 1)
        return y, torch.add(x, 1)

    same(f, (X,), (given(),))


def test_a_break_in_an_override(same):
    class Reading(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            result = super().__torch_function__(func, types, args, kwargs or {})
            if func is torch.add:
                with torch._C.DisableTorchFunctionSubclass():
                    return result.sum().item()
            return result

    same(lambda x: torch.add(x.as_subclass(Reading), 1), (X,), (X + 1,))


class Redispatching(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args, kwargs=None):
        SEEN.append(func.__name__)
        return torch.overrides.redispatch_function(func, types, args, kwargs or {})


SEEN = []


def overridable(a, b):
    if torch.overrides.has_torch_function((a, b)):
        return torch.overrides.handle_torch_function(overridable, (a, b), a, b)
    return a * b + 1


def test_a_class_that_redispatches_is_asked_as_often_as_in_eager(whole):
    x = torch.tensor([3.0]).as_subclass(Redispatching)

    def f(y):
        SEEN.clear()
        return overridable(x, y).as_subclass(torch.Tensor), list(SEEN)

    whole(f, (torch.tensor([4.0]),), (torch.tensor([5.0]),))


class Declining(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args, kwargs=None):
        if func is overridable:
            return NotImplemented
        return super().__torch_function__(func, types, args, kwargs or {})


def test_functions_of_the_program_ask_classes(whole):
    class Scaling(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args, kwargs=None):
            if func is overridable:
                plain = [arg.as_subclass(torch.Tensor) for arg in args]
                return func(*plain) * 10, [kind.__name__ for kind in types]
            return super().__torch_function__(func, types, args, kwargs or {})

    def f(y):
        x = y.as_subclass(Scaling)
        return overridable(x, y), overridable(y, x), overridable(y, y)

    whole(f, (torch.tensor([4.0]),), (torch.tensor([5.0]),))


def test_no_class_takes_a_function_of_the_program(same):
    def f(y):
        try:
            return overridable(y.as_subclass(Declining), y)
        except TypeError as error:
            return y + 1, "overridable" in str(error)

    same(f, (torch.tensor([4.0]),), (torch.tensor([5.0]),))
