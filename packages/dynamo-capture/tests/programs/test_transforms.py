"""``torch.func``: gradients, ``vmap`` and their compositions are parts of one graph."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import forward_ad
from torch.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
    vmap,
)

from dynamo_capture import optimize
from fx_interface.regions import gradient, mapped, pushed

X = torch.arange(6.0).reshape(2, 3) + 1
W = torch.linspace(0, 1, 3).requires_grad_()


@pytest.fixture(autouse=True, scope="module")
def forward_derivatives_have_been_taken():
    """Torch warns at the first of a process."""
    with warnings.catch_warnings(record=True):
        jvp(torch.sin, (X,), (X,))


def given(shift=0.0):
    return (X + shift).requires_grad_()


def loss(x, factor=2.0):
    return (x * factor).sin().sum()


OUTSIDE = grad(loss)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a = nn.Linear(3, 4)
        self.b = nn.Linear(4, 1)

    def forward(self, x):
        return self.b(torch.tanh(self.a(x))).squeeze(-1)


def params(seed=0):
    torch.manual_seed(seed)
    return {name: torch.rand_like(value) for name, value in Net().named_parameters()}


def test_grad(whole):
    whole(lambda x: grad(loss)(x), (X,), (given(),), (given(1),), graphs=2)


def test_grad_made_outside(whole):
    whole(lambda x: OUTSIDE(x) + OUTSIDE(x, 3.0), (X,), (given(),))


def test_grad_and_value(whole):
    whole(lambda x: grad_and_value(loss)(x, 3.0), (X,), (given(),))


def test_grad_of_closures(whole):
    whole(lambda x: grad(lambda y: (y * x * W).sum() ** 2)(x), (X,), (given(),))


def test_grad_of_several_arguments_and_structures(whole):
    def f(x, y):
        both = grad(lambda a, b: (a * b.sin()).sum(), argnums=(0, 1))(x, y)
        inside = grad(lambda d: (d["x"] * d["y"][0]).sum())({"x": x, "y": [y]})
        return both, inside, grad(lambda a, b: b.exp().sum(), argnums=-1)(x, y)

    whole(f, (X, X + 1), (given(), X))


def test_grad_with_aux(whole):
    def f(x):
        gradient, aux = grad(lambda y: (loss(y), {"twice": y * 2}), has_aux=True)(x)
        more, (value, other) = grad_and_value(lambda y: (loss(y), (y, y + 1)), has_aux=True)(x)
        return gradient, aux["twice"], more, value, other

    whole(f, (X,), (given(),))


def test_grad_of_what_does_not_depend_on_it(whole):
    whole(lambda x, y: grad(lambda a, b: b.sum())(x, y), (X, X + 1), (X, given()))


def test_grad_of_grad(whole):
    whole(lambda x: grad(lambda y: grad(loss)(y).pow(2).sum())(x), (X,), (given(),))


def test_grad_under_other_modes(whole):
    def f(x):
        with torch.no_grad():
            quiet = grad(loss)(x)
        inner = grad(lambda y: (y.detach() * y).sum())(x)

        def partly(y):
            with torch.no_grad():
                z = y * 2
            return (z * y).sum()

        return quiet, inner, grad(partly)(x), torch.is_grad_enabled()

    whole(f, (X,), (given(),))


def test_grad_of_a_module(whole):
    def make():
        net = Net()

        def f(p, x, target):
            def error(p):
                return F.mse_loss(functional_call(net, p, (x,)), target)

            return grad(error)(p), net(x)

        return f

    whole.made(make, (params(), X, torch.ones(2)), (params(1), given(), torch.zeros(2)))


def test_gradients_for_each_sample(whole):
    def make():
        net = Net()

        def error(p, x, target):
            return F.mse_loss(functional_call(net, p, (x.unsqueeze(0),)), target.unsqueeze(0))

        return lambda p, x, target: vmap(grad(error), in_dims=(None, 0, 0))(p, x, target)

    whole.made(make, (params(), X, torch.ones(2)), (params(1), X + 1, torch.zeros(2)))


def test_vmap(whole):
    whole(lambda x: vmap(lambda row: row * 2 + row.sum())(x), (X,), (given(),), graphs=2)


def test_vmap_over_other_dimensions(whole):
    def f(x):
        a, b = vmap(lambda c: (c.sin(), c.shape[0] * c), in_dims=1, out_dims=(1, 0))(x)
        return (
            a,
            b,
            vmap(torch.dot)(x, x),
            vmap(lambda d: d["x"] + d["y"], in_dims=({"x": 0, "y": None},))({"x": x, "y": x[0]}),
        )

    whole(f, (X,), (given(),))


def test_vmap_nests_and_closes_over_tensors(whole):
    def f(x):
        outer = vmap(vmap(lambda a, b: a * b + W.sum(), in_dims=(0, None)), in_dims=(0, 0))
        return outer(x, x[:, 0]), vmap(lambda row: (row[:, None] * x.T).sum(0))(x)

    whole(f, (X,), (given(),))


def test_vmap_of_layers(whole):
    def f(x, w):
        ensemble = vmap(lambda w, x: torch.relu(x @ w).sum(-1), in_dims=(0, None))
        return (
            ensemble(w, x),
            vmap(F.linear, in_dims=(0, None))(x, w[0]),
            vmap(lambda r: F.layer_norm(r, (3,)))(x),
        )

    whole(f, (X, torch.rand(4, 3, 3)), (given(), torch.rand(4, 3, 3).requires_grad_()))


def test_vmap_and_random_numbers(same):
    def f(x, how):
        try:
            return vmap(lambda row: row + torch.rand(3), randomness=how)(x)
        except RuntimeError as error:
            return str(error)[:40]

    same(f, (X, "different"), (X, "same"), (X, "error"))


def test_vjp(whole):
    def f(x):
        value, pull = vjp(lambda y: y.sin() * W, x)
        both, pull_both = vjp(lambda a, b: (a * b, a + b), x, x + 1)
        return value, pull(torch.ones_like(value)), both, pull_both((x, x))

    whole(f, (X,), (given(),))


def test_jacrev(whole):
    whole(lambda x: jacrev(lambda y: y.sin() * y.sum())(x), (X,), (given(),))


def test_effects_inside_break(same):
    def f(x):
        log = []

        def noting(row):
            log.append(1)
            return row * 2

        return vmap(noting)(x), log

    same(f, (X,), (given(),))


def test_content_that_decides_inside_breaks(same):
    def f(x):
        def deciding(y):
            return y.sum() if y.sum() > 5 else y.prod()

        return grad(deciding)(x)

    same(f, (X,), (X - 9,))


def test_writing_to_an_argument_inside(same):
    def f(x):
        def writing(row):
            row.add_(1)
            return row * 2

        return vmap(writing)(x), x

    same(f, (X,))


def test_errors_of_the_transforms_are_torchs(same):
    def f(x, kind):
        try:
            if kind == 0:
                return grad(lambda y: y * 2)(x)
            if kind == 1:
                return grad(lambda y: (y.sum(), 3), has_aux=True)(x)
            return vmap(lambda a, b: a)(x, x[:, 0:1].T)
        except (RuntimeError, ValueError, TypeError) as error:
            return type(error).__name__

    same(f, (X, 0), (X, 1), (X, 2))


def test_state_that_a_transform_reads_is_guarded(whole):
    def make():
        state = {"factor": 2.0}

        def f(x, factor):
            state["factor"] = factor
            return grad(lambda y: loss(y, state["factor"]))(x)

        return f

    whole.made(make, (X, 2.0), (X, 3.0), (given(), 3.0))


def test_the_graph_holds_regions():
    from dynamo_capture import optimize

    seen = []
    fast = optimize(lambda gm, ex: (seen.append(gm), gm.forward)[1], fullgraph=True)(
        lambda x: vmap(grad(lambda r: r.sin().sum()))(x)
    )
    assert torch.equal(fast(X), vmap(grad(lambda r: r.sin().sum()))(X))
    (outer,) = [node for node in seen[0].graph.nodes if node.op == "call_function" and node.target is mapped]
    body = getattr(seen[0], outer.args[0].target)
    assert any(node.target is gradient for node in body.graph.nodes)


def shifted(x):
    return (x.sin() * W).sum(0)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: jvp(shifted, (x,), (torch.ones_like(x),)),
        lambda x: jvp(lambda a, b: (a * b, {"s": a.sum()}), (x, W), (x * 2, W + 1)),
        lambda x: jvp(lambda a: (a.sin() * W, a.cos()), (x,), (x,), has_aux=True),
        lambda x: jvp(lambda a: (W * 2).expand_as(a), (x,), (x,)),
        lambda x: jvp(lambda a: a.t().clone().view(-1), (x,), (x.t().contiguous().t(),)),
        lambda x: jacfwd(shifted)(x),
        lambda x: jacfwd(lambda a, b: a * b, argnums=(0, 1))(x, W),
        lambda x: jacfwd(lambda a, b: a * b, argnums=1)(x, W),
        lambda x: jacfwd(lambda a: (a.sin(), a.cos()), has_aux=True)(x),
        lambda x: hessian(lambda a: (a.sin() * W).sum())(x),
        lambda x: jacrev(jacfwd(lambda a: (a.sin() * W).sum()))(x),
        lambda x: jacfwd(jacfwd(lambda a: (a.sin() * W).sum()))(x),
        lambda x: jvp(grad(lambda a: (a**3 * W).sum()), (x,), (torch.ones_like(x),))[1],
        lambda x: vmap(lambda row: jvp(torch.tanh, (row,), (row,))[1])(x),
        lambda x: vmap(hessian(lambda row: NET(row)))(x),
        lambda x: torch.no_grad()(lambda a: jvp(shifted, (a,), (a,)))(x),
    ],
)
def test_forward_derivatives(whole, program):
    whole(program, (X,), (given(),), (given(1),))


NET = Net()


def test_forward_derivatives_of_sizes_that_differ(whole):
    whole(lambda x: jacfwd(shifted)(x), (X,), (torch.ones(4, 3),), (torch.ones(5, 3),))


def test_forward_derivatives_are_one_node(whole):
    targets = []

    def backend(graph, inputs):
        targets.extend(node.target for node in graph.graph.nodes)
        return graph.forward

    optimize(backend, fullgraph=True)(lambda x: jvp(shifted, (x,), (x,)))(X)
    assert targets.count(pushed) == 1


def test_linearize(whole):
    def f(x):
        value, change = linearize(lambda a: a.sin() * 2, x)
        return value, change(x), change(x + 1)

    whole(
        f, (X,), (X + 1,), ignore={"warnings", "all warnings"}
    )  # of the graph that torch makes of `f` in eager


def test_vjp_with_more_results(whole):
    def f(x):
        value, pull, more = vjp(lambda a: (a.sin() * W, {"twice": a * 2}), x, has_aux=True)
        return value, pull(torch.ones_like(value))[0], more

    whole(f, (X,), (given(),))


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_vmap_in_chunks(whole, size):
    def f(x):
        rows = vmap(lambda row: row.sin() * W, chunk_size=size)(x)
        both = vmap(
            lambda column, w: {"a": column * w, "b": column.sum()},
            in_dims=(1, 0),
            out_dims={"a": 1, "b": 0},
            chunk_size=size,
        )(x, W)
        return rows, both, jacrev(shifted, chunk_size=size)(x)

    whole(f, (X,), (given(),))


def test_random_numbers_of_slices(whole):
    def f(x):
        different = vmap(lambda row: F.dropout(row, 0.5), randomness="different")(x)
        return different, vmap(lambda row: F.dropout(row, 0.5), randomness="same")(x)

    whole(f, (X,))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.autograd.functional.jvp(lambda a: a.sin(), x, x)[1],
        lambda x: vmap(lambda row: F.dropout(row, 0.5), randomness="same", chunk_size=1)(x),
        lambda x: linearize(lambda a: a.sin(), x)[1](x),
    ],
)
def test_forms_that_run_in_python(same, program):
    same(program, (given(),), (given(),))


def test_dual_tensors_run_in_python(same):
    def f(x):
        y = x * 2
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(y, torch.ones_like(y))
            change = forward_ad.unpack_dual(dual.sin()).tangent
        return change + 1

    same(f, (X,), (X + 1,))
    assert torch.autograd.forward_ad._current_level == -1


def test_a_dual_level_is_left_after_an_error(same):
    def fails(a):
        return a.reshape(-1)[:1] + torch.ones(3, 4).reshape(7)

    same(lambda x: jvp(fails, (x,), (x,)), (X,))
    assert forward_ad._current_level == -1


@pytest.mark.parametrize(
    "program",
    [
        lambda p, x: jacrev(lambda q: functional_call(NET, q, (x,)))(p),
        lambda p, x: hessian(lambda row: functional_call(NET, p, (row,)))(x[0]),
        lambda p, x: (functional_call(NET, p, (x,)), vmap(grad(lambda r: functional_call(NET, p, (r,))))(x)),
    ],
)
def test_parameters_that_are_replaced_again_and_again(whole, program):
    whole(program, (params(), X), (params(1), X + 1))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: vjp(lambda a: (a, (a, a)), x)[1](((x, (x, x)),)),
        lambda x: vjp(lambda a: (a, a), x)[1](x, x),
        lambda x: vjp(lambda a: None, x),
        lambda x: vjp(lambda a: (a, 1), x),
        lambda x: vjp(lambda a: a.int(), x)[1](x),
        lambda x: jacrev(lambda a: (a, a > 0))(x),
        lambda x: jacrev(lambda a: None)(x),
        lambda x: jacrev(lambda a: ())(x),
        lambda x: jacrev(lambda a: "text")(x),
        lambda x: jvp(lambda a: a, torch.tensor(1.0), torch.tensor(1.0)),
        lambda x: grad(lambda a: a.sum(), argnums="a")(x),
        lambda x: vmap(lambda a: a, out_dims=(0, 0))(x),
        lambda x: vmap(lambda a: a, out_dims="a")(x),
    ],
)
def test_what_transforms_refuse_is_refused_in_their_words(same, wrong):
    def program(x):
        try:
            wrong(x)
        except Exception as error:
            return x + 1, type(error).__name__, str(error)
        return x - 1, None, None

    same(program, (X,))


@pytest.mark.parametrize("transform", [grad, vmap, grad_and_value])
def test_what_transforms_make_has_the_names_of_the_function(transform, whole):
    def program(x):
        def square(a):
            """The square."""
            return (a * a).sum()

        made = transform(square)
        return made.__name__, made.__doc__, made.__wrapped__ is square, made(x)

    jvp(torch.sin, (X,), (X,))
    whole(program, (X,))
