"""Programs with derivatives of their own: ``torch.autograd.Function`` and the gradients it gives."""

import warnings

import pytest
import torch
from torch.autograd import Function

from dynamo_capture import export, optimize

X = torch.arange(6.0).reshape(2, 3) / 6 + 0.5


def given(offset=0.0):
    return (X + offset).requires_grad_()


class Scale(Function):
    """Saves a tensor and a number; the backward is ten times what it should be, so that it shows."""

    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.k * 10 + x, None


def test_a_tensor_and_a_number(whole):
    whole(lambda x, k: Scale.apply(x, k) + x, (given(), 2.0), (given(), 3.0), (given(), 4.0), (X, 2.0))


scale = Scale.apply


def test_the_bound_method_under_another_name(whole):
    whole(lambda x: scale(x, 2) * 2, (given(),), (given(1.0),))


class Plain(Function):
    @staticmethod
    def forward(x, k=2, *, unused=None):
        return x.round() * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, k = inputs
        ctx.save_for_backward(x, output)
        ctx.k = k

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * ctx.k + x + y, None


class Straight(Function):
    @staticmethod
    def forward(x, k=2):
        return x.round() * k

    setup_context = Plain.setup_context
    backward = Plain.backward


def test_the_form_with_setup_context_defaults_and_keywords(whole, same):
    whole(lambda x: Straight.apply(x * 1.3) * 2, (given(),), (given(1.0),))
    same(lambda x: Plain.apply(x), (given(),))


def test_keywords_as_this_version_of_torch_takes_them(whole, same):
    try:
        Straight.apply(given(), k=3)
        keywords = whole
    except TypeError:  # eager raises, and so does what is captured
        keywords = same
    keywords(lambda x: Straight.apply(x * 1.3, k=3) * 2, (given(),), (given(1.0),))


class Several(Function):
    @staticmethod
    def forward(ctx, x, y):
        values, places = (x * y).sort(dim=1)
        ctx.mark_non_differentiable(places)
        ctx.save_for_backward(x, y, places)
        return values, places, None, "text", x.sum()

    @staticmethod
    def backward(ctx, first, second, third, fourth, last):
        assert third is None
        assert fourth is None
        x, y, places = ctx.saved_tensors
        grad = torch.zeros_like(x).scatter(1, places, first) + second.sum()
        return grad * y + last, grad * x


def test_several_results_of_several_kinds(whole):
    def f(x, y):
        values, places, nothing, text, total = Several.apply(x, y)
        return values * places, places, nothing, text, total

    whole(f, (given(), given(1.0)), (given(), X), (X, given()), (X, X))


def test_results_that_are_not_used(whole):
    whole(lambda x, y: Several.apply(x, y)[4] * 2, (given(), given(1.0)))
    whole(lambda x, y: (Several.apply(x, y), x * 2)[1], (given(), given(1.0)))


class Wanted(Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x @ w + b

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        gx = gw = gb = None
        if ctx.needs_input_grad[0]:
            gx = grad @ w.t()
        if ctx.needs_input_grad[1]:
            gw = x.t() @ grad
        if ctx.needs_input_grad[2]:
            gb = grad.sum(0)
        return gx, gw, gb


@pytest.mark.parametrize("which", [(0,), (1,), (0, 2), (0, 1, 2), ()])
def test_gradients_where_they_are_needed(whole, which):
    tensors = [torch.randn(2, 3), torch.randn(3, 3), torch.randn(3)]
    for index in which:
        tensors[index].requires_grad_()
    whole(lambda x, w, b: Wanted.apply(x, w, b).exp(), tuple(tensors))


def test_needs_change_between_calls(whole):
    w, b = torch.randn(3, 3), torch.randn(3)
    whole(
        lambda x, w, b: Wanted.apply(x, w, b), (given(), w, b), (X, w, b), (X, w.clone().requires_grad_(), b)
    )


class Hinge(Function):
    """As in the tutorials: the gradient is cloned and written to."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        grad_input = grad.clone()
        grad_input[x < 0.8] = 0
        return grad_input


def test_the_backward_writes_to_what_it_made(whole):
    whole(lambda x: Hinge.apply(x) * x, (given(),), (given(-1.0),))


def test_two_calls_share_nothing(whole):
    whole(lambda x: Hinge.apply(Hinge.apply(x) - 0.1) + Scale.apply(x, 3), (given(),))


class Unused(Function):
    @staticmethod
    def forward(ctx, x, like):
        ctx.shape = like.shape
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, torch.ones(ctx.shape)


def test_a_gradient_for_an_argument_that_the_forward_does_not_read(whole):
    whole(lambda x, y: Unused.apply(x, y), (given(), given(1.0)))


def test_without_gradients_the_forward_is_inlined():
    def f(x):
        with torch.no_grad():
            return Scale.apply(x, 2) + 1

    exported = export(f)(given())
    assert not exported.graph_module.graph.find_nodes(op="get_attr")


def make_closing():
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 3)

    class Closes(Function):
        weight = torch.full((3,), 2.0)
        calls = 0

        @staticmethod
        def forward(ctx, x, module, names):
            ctx.module, ctx.names, ctx.hidden = module, {"of": names}, x.tanh()
            Closes.weight = Closes.weight + 1
            return module(x) * Closes.weight * ctx.hidden

        @staticmethod
        def backward(ctx, grad):
            assert ctx.names["of"][1] == "b"
            return grad * ctx.module.weight.sum(0) * ctx.hidden, None, None

    return lambda x: (Closes.apply(x, net, ["a", "b"]), Closes.weight)


def test_modules_containers_and_class_attributes(same):
    same.made(make_closing, (given(),), (given(1.0),))


class Options(Function):
    factor = 2.0

    @staticmethod
    def forward(ctx, x):
        return x * Options.factor

    @staticmethod
    def backward(ctx, grad):
        return grad * Options.factor * 10


def test_a_class_attribute_that_changes(whole):
    def f(x):
        return Options.apply(x)

    def make():
        return f

    fast = optimize(lambda graph_module, _: graph_module.forward, fullgraph=True)(f)
    for factor in (2.0, 3.0, 2.0, 5.0):
        Options.factor = factor
        results = []
        for run in (f, fast):
            x = given()
            y = run(x)
            y.sum().backward()
            results.append((y, x.grad))
        assert torch.equal(results[0][0], results[1][0])
        assert torch.equal(results[0][1], results[1][1])


def test_a_method_that_is_replaced():
    class Changing(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    def f(x):
        return Changing.apply(x)

    fast = optimize(lambda graph_module, _: graph_module.forward)(f)
    for factor in (2, 7):
        Changing.backward = staticmethod(lambda ctx, grad, factor=factor: grad * factor)
        x = given()
        fast(x).sum().backward()
        assert x.grad.unique().tolist() == [factor]


class NoZeros(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(places := x.argmax(1))
        return x * 2, places

    @staticmethod
    def backward(ctx, grad, none):
        assert none is None
        if grad is None:
            return None
        return grad * 5


def test_gradients_that_are_not_materialized(whole):
    whole(lambda x: NoZeros.apply(x)[0] + 1, (given(),))


class NoZerosOfSeveral(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, one, two):
        return one * 2 if two is None else two * 7


def test_a_backward_that_asks_which_gradients_there_are(same):
    same(lambda x: NoZerosOfSeveral.apply(x)[0], (given(),))
    same(lambda x: NoZerosOfSeveral.apply(x)[1], (given(),))


def test_sizes_that_differ(whole):
    class Mean(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.n = x.shape[0]
            return x * x.shape[0]

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.n * 10

    apply = Mean.apply
    whole(lambda x: apply(x) * 2, *[(torch.randn(n, 3, requires_grad=True),) for n in (2, 4, 5, 7)])


def test_gradients_that_are_expanded(whole):
    class Flat(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return (grad if grad.is_contiguous() else grad.contiguous()).view(-1).view(2, 3) * 3

    apply = Flat.apply
    whole(lambda x: apply(x).sum() + apply(x).t().exp().sum(), (given(),))


def test_in_a_module_under_autocast_with_random_numbers(whole):
    class Dropped(Function):
        @staticmethod
        def forward(ctx, x, p):
            mask = torch.rand_like(x) > p
            ctx.save_for_backward(mask)
            return x * mask

        @staticmethod
        def backward(ctx, grad):
            (mask,) = ctx.saved_tensors
            return grad * mask, None

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return Dropped.apply(self.linear(x), 0.5)

    torch.manual_seed(0)
    net = Net()
    whole(lambda x: net(x), (given(),), (given(),))


def test_the_context_is_asked_what_it_has(whole):
    class Asks(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.a = 2
            ctx.b = 3
            del ctx.b
            return x * getattr(ctx, "missing", 5)

        @staticmethod
        def backward(ctx, grad):
            return grad * (ctx.a if hasattr(ctx, "a") else 1) * (7 if hasattr(ctx, "b") else 11)

    apply = Asks.apply
    whole(lambda x: apply(x), (given(),))


class Named(Function):
    """``name`` is a method of every context's class, and no data descriptor: an instance may have its own."""

    @staticmethod
    def forward(ctx, x, name):
        ctx.name = name
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * len(ctx.name), None


def test_an_attribute_of_the_context_over_a_method(whole):
    whole(lambda x: Named.apply(x, "abc") + x, (given(),), (given(1.0),))


class SavesBoth(Function):
    """A product; of what it saves the backward may use one tensor only."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * b, grad * a


def test_what_is_saved_and_not_used_must_not_be_overwritten():
    def program(x, y):
        product = SavesBoth.apply(x, y)
        with torch.no_grad():
            x[0].add_(1)
        return product

    for function in (program, optimize(lambda graph_module, _: graph_module.forward)(program)):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            function(given(), X).sum().backward()


def test_nodes_have_the_name_of_the_function():
    class Undefined(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            return gradient * float("nan")

    class Kept(Function):
        @staticmethod
        def forward(ctx, x):
            return x.view(-1)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, gradient):
            return gradient.view(2, 3)

    def program(x):
        return Undefined.apply(x), Kept.apply(x)

    for function in (program, optimize(lambda graph, inputs: graph)(program)):
        undefined, kept = function(torch.ones(2, 3, requires_grad=True))
        assert "grad_fn=<UndefinedBackward>" in repr(undefined)
        assert kept.grad_fn.name() == "KeptBackward"
        with pytest.raises(RuntimeError, match=r"Output 0 of Kept(Backward)? is a view"):
            kept.mul_(2)
        with warnings.catch_warnings(), torch.autograd.set_detect_anomaly(True):
            warnings.simplefilter("ignore")
            undefined, _ = function(torch.ones(2, 3, requires_grad=True))
            with pytest.raises(RuntimeError, match="'UndefinedBackward' returned nan"):
                undefined.sum().backward()
