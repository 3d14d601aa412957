"""Side effects, exceptions and graph breaks in a ``torch.autograd.Function``."""

import pytest
import torch
from torch.autograd import Function

from dynamo_capture import CaptureError, optimize
from dynamo_capture.semantics.regions import autograd_function

X = torch.arange(6.0).reshape(2, 3) / 6 + 0.5


def given(offset=0.0):
    return (X + offset).requires_grad_()


class Effects(Function):
    @staticmethod
    def forward(ctx, x, seen):
        seen.append("forward")
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 3, None


def test_effects_of_the_forward_happen_once(whole):
    def f(x, seen):
        y = Effects.apply(x, seen)
        seen.append("after")
        return y

    whole(f, (given(), []), (given(), ["before"]))


class Counts(Function):
    @staticmethod
    def forward(ctx, x, seen):
        ctx.seen = seen
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        ctx.seen.append("backward")
        return grad * 3, None


def test_effects_of_the_backward_are_left_to_eager(same):
    def make():
        seen = []

        def f(x):
            return Counts.apply(x, seen) * 2, len(seen)

        return f

    same.made(make, (given(),), (given(1.0),), (given(2.0),))


def test_a_list_that_the_program_makes_is_changed_by_the_backward(same):
    def f(x):
        seen = []
        return Counts.apply(x, seen) * 2, seen

    same(f, (given(),), (given(1.0),))


class Prints(Function):
    @staticmethod
    def forward(ctx, x):
        print("forward")
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        print("backward")
        return grad * 3


def test_a_backward_that_prints_is_left_to_eager(same):
    same(lambda x: Prints.apply(x) * 2, (given(),))


class Remembers(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.seen = []
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        ctx.seen.append(1)
        return grad * len(ctx.seen)


def test_a_backward_that_changes_its_context_is_left_to_eager():
    def f(x):
        return Remembers.apply(x) * 2

    fast = optimize(lambda graph_module, _: graph_module.forward)(f)
    for run in (f, fast):
        x = given()
        y = run(x).sum()
        y.backward(retain_graph=True)
        y.backward()
        assert x.grad.unique().tolist() == [6.0]


def test_an_intermediate_leaves_by_an_attribute(same):
    class Keeps(Function):
        @staticmethod
        def forward(ctx, x, kept):
            kept.append(x.exp())
            return kept[-1] * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 3, None

    apply = Keeps.apply

    def f(x, kept):
        return apply(x, kept) + 1

    same(f, (given(), []), (given(), []))


class Raises(Function):
    @staticmethod
    def forward(ctx, x, n):
        y = x * 2
        if n:
            raise ValueError("forward", n)
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def test_exceptions_of_the_forward(whole):
    def f(x, n):
        try:
            return Raises.apply(x, n)
        except ValueError as error:
            return x + 1, error.args

    whole(f, (given(), 0), (given(), 2), ignore={"grad version"})


def test_an_exception_that_leaves_the_program(same):
    same(lambda x, n: Raises.apply(x, n), (given(), 3))


class RaisesLater(Raises):
    @staticmethod
    def backward(ctx, grad):
        raise ValueError("backward")


class TooFew(Raises):
    @staticmethod
    def backward(ctx, grad):
        return grad


@pytest.mark.parametrize("cls", [RaisesLater, TooFew])
def test_errors_of_the_backward_come_when_it_runs(cls):
    def f(x):
        return cls.apply(x, 0) * 2

    errors = []
    for run in (f, optimize(lambda graph_module, _: graph_module.forward)(f)):
        y = run(given())
        with pytest.raises((ValueError, RuntimeError)) as caught:
            y.sum().backward()
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


class Reads(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.total = int(x.detach().sum()) if x.detach().sum() > 0 else 0
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * (3 if ctx.total else 4)


def test_a_break_inside_is_a_break_at_the_call(same):
    same(lambda x: Reads.apply(x * 2) + 1, (given(),), (given(-9.0),))
    assert "Reads.forward" in str(same.capture.report.replacements[0][1].stopped)


class Differentiates(Function):
    """Recomputes in its backward, as checkpoints written by hand do."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            y = x.detach().requires_grad_()
            return torch.autograd.grad(y.sin(), y, grad)[0]


def test_a_backward_that_runs_autograd(same):
    same(lambda x: Differentiates.apply(x) * 2, (given(),))


def test_a_context_that_lacks_what_the_backward_reads():
    class Lacks(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.missing

    def f(x):
        return Lacks.apply(x)

    fast = optimize(lambda graph_module, _: graph_module.forward)(f)
    for run in (f, fast):
        y = run(given())
        with pytest.raises(AttributeError, match="object has no attribute 'missing'"):
            y.sum().backward()


def test_a_backward_that_cannot_run_yet(same):
    """It raises where it runs, if it does: not where the function is called."""

    class Later(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, held):
            ctx.held = held
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.held["scale"], None

    def program(x, log):
        held = {}
        try:
            y = Later.apply(x, held)
        except KeyError as error:
            return log.append(repr(error))
        held["scale"] = 3
        y.sum().backward()
        z = Later.apply(x, {})
        try:
            z.sum().backward()
        except KeyError as error:
            log.append(repr(error))
        return x.grad

    same(program, (torch.ones(2, requires_grad=True), []))


class Doubled(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def test_a_loop_of_very_many_calls_runs_in_python(monkeypatch):
    monkeypatch.setattr(autograd_function, "_MOST_IN_A_GRAPH", 3)

    def program(x, count):
        for _ in range(count):
            x = Doubled.apply(x)
        return x * 2

    run = optimize(lambda graph_module, _: graph_module.forward)(program)
    for count in (3, 20):
        x = torch.ones(2, requires_grad=True)
        run(x, count).sum().backward()
        assert x.grad.tolist() == [2.0 * 2**count] * 2
    (_, why), *others = run.__fxstack_capture__.report.eager
    assert "CAP243" in str(why)
    assert not others
    whole = optimize(lambda graph_module, _: graph_module.forward, fullgraph=True)(program)
    with pytest.raises(CaptureError, match="CAP243"):
        whole(torch.ones(2, requires_grad=True), 20)
