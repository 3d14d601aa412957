"""Trained tensors that dispatch in Python and whose gradients are such tensors too: one graph, with torch's gradients."""

import logging

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import return_and_correct_aliasing

from dynamo_capture import optimize

X = torch.arange(6.0).reshape(2, 3) + 1
Y = X.flip(1) - 2


class Two(torch.Tensor):
    """Two tensors of one form; what is done to it is done to both."""

    @staticmethod
    def __new__(cls, a, b):
        return torch.Tensor._make_wrapper_subclass(
            cls, a.size(), strides=a.stride(), dtype=a.dtype, device=a.device, requires_grad=a.requires_grad
        )

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __repr__(self):
        return f"Two({self.a}, {self.b})"

    def __tensor_flatten__(self):
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Two(inner["a"], inner["b"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs):
        first, second = (
            func(
                *pytree.tree_map_only(cls, lambda two, side=side: getattr(two, side), args),
                **pytree.tree_map_only(cls, lambda two, side=side: getattr(two, side), kwargs or {}),
            )
            for side in ("a", "b")
        )
        leaves, spec = pytree.tree_flatten(first)
        others = pytree.tree_leaves(second)
        made = [
            cls(one, two) if isinstance(one, torch.Tensor) else one
            for one, two in zip(leaves, others, strict=True)
        ]
        return return_and_correct_aliasing(func, args, kwargs, pytree.tree_unflatten(made, spec))


class Tagged(Two):
    """Its results count how far they are from the first."""

    def __init__(self, a, b, tag=0):
        super().__init__(a, b)
        self.tag = tag

    @staticmethod
    def __new__(cls, a, b, tag=0):
        return Two.__new__(cls, a, b)

    def __tensor_flatten__(self):
        return ["a", "b"], self.tag

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Tagged(inner["a"], inner["b"], context)

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs):
        made = super().__torch_dispatch__(func, types, args, kwargs)
        tags = [value.tag for value in pytree.tree_leaves(args) if isinstance(value, Tagged)]
        for value in pytree.tree_leaves(made):
            if isinstance(value, Tagged):
                value.tag = max(tags, default=0) + 1
        return made


def two(tensor=X, cls=Two, trained=True):
    return cls(tensor.clone(), tensor * 2 - 1).requires_grad_(trained)


def train(model, run, optimizer):
    """Some steps, and all that can be seen of them."""
    seen = []
    for number in range(3):
        optimizer.zero_grad()
        loss = run(X + number)
        loss.backward()
        seen.append([loss.detach(), *[p.grad.detach() for p in model.parameters()]])
        optimizer.step()
    return pytree.tree_map_only(Two, lambda value: [type(value), value.a.clone(), value.b.clone()], seen)


def perceptron():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.LayerNorm(4), nn.Linear(4, 2))
    for layer in model:
        for name, parameter in list(layer.named_parameters()):
            held = parameter.detach()
            setattr(layer, name, nn.Parameter(Two(held.clone(), held * 2)))
    return model


@pytest.mark.parametrize("make", [lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), torch.optim.AdamW])
def test_training_of_modules(make):
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    plain, fast = perceptron(), perceptron()
    expected = train(plain, lambda x: plain(x).square().mean(), make(plain.parameters()))
    run = optimize(backend, fullgraph=True)(lambda x: fast(x).square().mean())
    actual = train(fast, run, make(fast.parameters()))
    assert len(graphs) == 1
    flat, other = pytree.tree_leaves(expected), pytree.tree_leaves(actual)
    assert len(flat) == len(other)
    for one, two_ in zip(flat, other, strict=True):
        assert one is two_ or torch.equal(one, two_)


def sums_and_products(w, x):
    return (w * w + x * w).sum()


def several_results(w, x):
    return (w * x).sin(), (w * w).cos(), w.detach() * 2


def in_place(w, x):
    y = w * 2
    y.add_(1).mul_(w)
    y[0] = 3
    return y.sum(), y


def views(w, x):
    y = (w * 2).view(-1)[1:]
    return y, (w * 3).view(-1).unflatten(0, (1, 6)).t(), torch.mm(x, w.t())


def parts(w, x):
    first, second, third = w.unbind(1)
    most, places = w.max(1)
    return (torch.stack([first, second * 2]) * most).sum(), places, torch.cat([second, third])


def inner_tensors(w, x):
    y = w * 2
    return y.a + 1, y.sum(), type(y) is Two, y.requires_grad, y.is_leaf, y.shape


def without_gradients(w, x):
    with torch.no_grad():
        scale = w.mean()
    return (w * scale).sum(), scale, (w * 2).detach()


def held_twice(w, x):
    y = w * 2
    return y, [y], {"y": y}, w


PROGRAMS = [
    sums_and_products,
    several_results,
    in_place,
    views,
    parts,
    inner_tensors,
    without_gradients,
    held_twice,
]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("cls", [Two, Tagged])
def test_gradients_that_are_wrappers(whole, program, cls):
    calls = (two(X, cls), Y), (two(X + 1, cls), X)
    whole(program, *calls, graphs=1, ignore={"own version"} if program is in_place else ())


def test_wrappers_in_wrappers(whole):
    def nested(tensor):
        return Two(two(tensor, trained=False), two(tensor + 1, trained=False)).requires_grad_()

    whole(sums_and_products, (nested(X), Y), (nested(X + 1), X), graphs=1)


def test_sizes_that_vary(whole):
    calls = [(two(X[0]), torch.rand(n, 3)) for n in (2, 4, 5)]
    whole(lambda w, x: (w * x).sum(), *calls, graphs=2)


def test_a_context_that_changes_is_another_program(whole):
    def program(w, x):
        return (w * 2).tag, (w * x).sum()

    calls = [(Tagged(X.clone(), X.clone(), tag).requires_grad_(), Y) for tag in (0, 3, 0)]
    whole(program, *calls, graphs=2)


def test_plain_tensors_that_are_trained_beside_them(whole):
    whole(lambda w, x: (w * x).sum(), *[(two(), Y.clone().requires_grad_()) for _ in range(2)], graphs=1)


def test_effects(whole):
    def make():
        class Holder:
            pass

        holder = Holder()

        def program(w):
            holder.y = w * 2
            holder.more = [holder.y * 3]
            return holder.y.sum(), holder

        return program

    whole.made(make, (two(),), (two(),), graphs=1)


def gradients_of(program, *grads, tensors=(X,)):
    """How a captured program and the program itself are differentiated, by what ``grads`` do with its result."""
    found = []
    for captured in (False, True):
        run = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(program) if captured else program
        given = [two(tensor) for tensor in tensors]
        result = run(*given)
        try:
            seen = [step(result, *given) for step in grads]
        except RuntimeError as error:
            seen = [type(error)]
        seen += [w.grad for w in given]
        found.append(pytree.tree_map_only(Two, lambda t: ["two", t.a.tolist(), t.b.tolist()], seen))
    return found


def backward_by(make):
    return lambda y, *_: y.backward(make())


def second(y, w):
    (grad,) = torch.autograd.grad(y, w, create_graph=True)
    grad.sum().backward()
    return grad.detach()


@pytest.mark.parametrize(
    ("program", "grads"),
    [
        (lambda w: w.sin() * 2, [backward_by(lambda: two(X, trained=False))]),
        (lambda w: w.sin() * 2, [backward_by(lambda: Y.clone())]),
        (lambda w: (w**3).sum(), [second]),
        (lambda w: (w**3).sum(), [lambda y, w: y.backward(retain_graph=True), lambda y, w: y.backward()]),
        (
            lambda w: (w.sin(), w.cos()),
            [lambda y, w: y[0].sum().backward(), lambda y, w: y[1].sum().backward()],
        ),
        (lambda w: (w**3).sum(), [lambda y, w: w.detach().add_(1), lambda y, w: y.backward()]),
        (lambda w: (w * 3).sum(), [lambda y, w: w.detach().add_(1), lambda y, w: y.backward()]),
        (lambda w: w.exp(), [lambda y, w: y.detach().add_(1), lambda y, w: y.sum().backward()]),
        (lambda w: w * 3, [lambda y, w: y.detach().add_(1), lambda y, w: y.sum().backward()]),
    ],
    ids=[
        "wrapper",
        "plain",
        "second",
        "twice",
        "results",
        "changed",
        "not-kept",
        "result",
        "result-not-kept",
    ],
)
def test_whatever_is_done_to_the_results(program, grads):
    expected, actual = gradients_of(program, *grads)
    for one, other in zip(pytree.tree_leaves(expected), pytree.tree_leaves(actual), strict=True):
        assert one == pytest.approx(other) if isinstance(one, float) else one == other or one is other


def test_one_of_independent_results():
    program = lambda w, v: ((w * 2).sum(), (v * 3).sum())
    steps = [lambda y, w, v: y[0].backward(), lambda y, w, v: v.grad, lambda y, w, v: y[1].backward()]
    expected, actual = gradients_of(program, *steps, tensors=(X, X + 1))
    assert expected == actual


class Unwrapping(Two):
    """A sum is a plain tensor; so is its gradient, before it is broadcast."""

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs):
        if func is torch.ops.aten.sum.default:
            return func(args[0].a) + func(args[0].b)
        return super().__torch_dispatch__(func, types, args, kwargs)


def sums_between(w, x):
    return ((w * x).sum() * 3).sin() + w.sum()


def a_sum_as_a_factor(w, x):
    return w * w.sum() + x


@pytest.mark.parametrize("program", [sums_between, a_sum_as_a_factor])
def test_results_that_are_plain_between(whole, program):
    calls = (two(X, Unwrapping), Y), (two(X + 1, Unwrapping), X)
    whole(program, *calls, graphs=1, ignore={"grad version"})


class Counting(Two):
    told = []

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs):
        cls.told.append(str(func))
        return super().__torch_dispatch__(func, types, args, kwargs)


def of_a_computed_tensor(w, x):
    return (w * x.sin()).sum()


def a_tensor_that_is_written_to(w, x):
    y = w + x
    x.add_(1)
    return (y * 2).sum()


def saved_and_written_to(w, x):
    y = w.exp()
    y.add_(1)
    return y.sum()


def random_numbers(w, x):
    return F.dropout(w * 2, 0.5).sum()


def under_autocast(w, x):
    with torch.autocast("cpu", torch.bfloat16):
        return torch.mm(x, w.t()).sum()


def backward_inside(w, x):
    y = (w * x).sum()
    y.backward()
    return w.grad * 2


def written_without_gradients_before(w, x):
    with torch.no_grad():
        w.add_(1)
    return w * x


def written_without_gradients_after(w, x):
    y = w * x
    with torch.no_grad():
        w.add_(1)
    return y


def a_view_of_an_argument(w, x):
    return w.view(-1)


def a_result_and_a_view_of_it(w, x):
    y = w * 2
    return y, y.view(-1)


LEFT_TO_EAGER = [
    a_view_of_an_argument,
    a_result_and_a_view_of_it,
    written_without_gradients_before,
    written_without_gradients_after,
    of_a_computed_tensor,
    a_tensor_that_is_written_to,
    random_numbers,
    under_autocast,
    backward_inside,
]


@pytest.mark.parametrize("program", LEFT_TO_EAGER)
@pytest.mark.parametrize("cls", [Two, Counting])
def test_what_breaks_the_graph(same, program, cls):
    trained = program is of_a_computed_tensor
    Counting.told.clear()
    same(program, *[(two(X, cls), Y.clone().requires_grad_(trained)) for _ in range(2)])


def test_effects_of_a_class_in_the_backward_are_left_to_eager(same):
    told = []
    for captured in (False, True):
        Counting.told.clear()
        run = (
            optimize(lambda graph, inputs: graph.forward)(sums_and_products)
            if captured
            else sums_and_products
        )
        w = two(X, Counting)
        run(w, Y).backward()
        told.append([*Counting.told, w.grad.a.tolist()])
    assert told[0] == told[1]


def test_what_torch_keeps_and_is_written_to(caplog):
    def of(run):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            run(two(), Y).backward()

    of(saved_and_written_to)
    with caplog.at_level(logging.ERROR):
        of(optimize(lambda graph, inputs: graph.forward)(saved_and_written_to))
    assert not caplog.records


def test_what_is_written_to_views_outside():
    found = []
    for captured in (False, True):
        compiled = optimize(lambda graph, inputs: graph.forward)
        w = two()
        view = (compiled(a_view_of_an_argument) if captured else a_view_of_an_argument)(w, Y)
        assert view._base is w
        with pytest.raises(RuntimeError, match="view of a leaf"):
            view.mul_(2)
        y, view = (compiled(a_result_and_a_view_of_it) if captured else a_result_and_a_view_of_it)(w, Y)
        view.mul_(3)
        y.sum().backward()
        found.append([w.grad.a.tolist(), w.grad.b.tolist()])
    assert found[0] == found[1]
