"""Programs that recompute parts of their forward in the backward: ``torch.utils.checkpoint``."""

import warnings
from functools import partial

import pytest
import torch
from torch.utils.checkpoint import checkpoint, checkpoint_sequential, create_selective_checkpoint_contexts

from dynamo_capture import export, optimize

X = torch.arange(6.0).reshape(2, 3) / 6
BOTH = pytest.mark.parametrize("reentrant", [True, False])


def given():
    return X.clone().requires_grad_()


@BOTH
def test_a_function_of_tensors_and_numbers(whole, reentrant):
    def block(x, k):
        return torch.sin(x * k).exp()

    whole(
        lambda x, k: checkpoint(block, x, k, use_reentrant=reentrant) * 2,
        (given(), 2.0), (given(), 3.0), (given(), 4.0),
    )  # fmt: skip


@BOTH
def test_a_module_whose_parameters_get_gradients(whole, reentrant):
    def make():
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU(), torch.nn.Linear(4, 3))

        def f(x):
            y = checkpoint(net, x, use_reentrant=reentrant)
            (y * x).sum().backward()
            gradients = [p.grad.clone() for p in net.parameters()]
            net.zero_grad()
            return y.detach(), gradients

        return f

    whole.defaults.pop("fullgraph")  # the backward is run inside
    whole.made(make, (given(),), (given(),))


def test_a_reentrant_checkpoint_of_arguments_without_gradients_has_none(whole):
    weight = torch.ones(3, requires_grad=True)

    def f(x):
        y = checkpoint(lambda x: (x * weight).sin(), x, use_reentrant=True)
        return y, y.requires_grad, torch.is_grad_enabled(), (x * weight).requires_grad

    whole(f, (X,), (X + 1,))
    fast = optimize(lambda gm, inputs: gm.forward, fullgraph=True)(f)
    for _ in range(2):
        with pytest.warns(UserWarning, match="Gradients will be None"):
            assert torch.equal(fast(X)[0], f(X)[0])


def test_a_reentrant_checkpoint_without_gradients_that_returns_its_argument_is_left_to_torch():
    def f(x):
        return checkpoint(lambda x: x, x, use_reentrant=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert optimize(lambda gm, inputs: gm.forward)(f)(X) is not X
        with pytest.raises(Exception, match="CAP244"):
            optimize(lambda gm, inputs: gm.forward, fullgraph=True)(f)(X)


@BOTH
def test_dropout_draws_the_same_numbers_again(whole, reentrant):
    def block(x):
        return torch.nn.functional.dropout(x.exp(), 0.5).sin()

    def f(x):
        return torch.rand(2) + checkpoint(block, x, use_reentrant=reentrant).sum(), torch.rand(1)

    whole(f, (given(),), (given(),))


def test_any_structure_is_returned(whole):
    def block(x, scale=1.0, *, shift):
        h = x.sin() * scale
        return {"a": h, "b": [h + shift, x, None, "text"], "c": (h.shape, (x * 3,))}

    def f(x):
        found = checkpoint(block, x, shift=2, use_reentrant=False)
        return found["a"].exp(), found["b"], found["c"][1][0] + len(found["c"][0]), found["b"][1] is x

    whole(f, (given(),), (given(),))


def test_what_is_not_used_is_not_returned():
    def block(x):
        return x.sin(), x.cos(), x.exp()

    exported = export(lambda x: checkpoint(block, x, use_reentrant=False)[1] * 2)(given())
    (node,) = [n for n in exported.graph_module.graph.nodes if n.name.startswith("checkpointed")]
    body = exported.graph_module.get_submodule(node.args[0].target)
    assert [str(n.target) for n in body.graph.nodes] == ["x", "cos", "output"]


def test_nested_checkpoints(whole):
    def inner(x):
        return x.sin().exp()

    def outer(x):
        return checkpoint(inner, x * 2, use_reentrant=False).tanh() + checkpoint(
            inner, x, use_reentrant=False
        )

    whole(lambda x: checkpoint(outer, x, use_reentrant=False), (given(),), (given(),))


def test_without_gradients_the_function_is_simply_called(whole):
    def make():
        calls = []

        def block(x):
            calls.append(1)
            return x.sin()

        def f(x):
            with torch.no_grad():
                return checkpoint(block, x, use_reentrant=False), len(calls)

        return f

    whole.made(make, (given(),), (given(),))


def test_own_containers_may_change(whole):
    def block(x):
        found = []
        for k in range(3):
            found.append((x * k).sin())
        total = {"sum": found[0]}
        total["sum"] = total["sum"] + found[1] + found[2]
        return total["sum"]

    whole(lambda x: checkpoint(block, x, use_reentrant=False), (given(),), (given(),))


def test_a_list_of_the_caller_is_changed_as_often_as_eager_changes_it(same):
    def f(x):
        seen = []

        def block(x):
            seen.append(float(len(seen)))
            return x.sin()

        y = checkpoint(block, x, use_reentrant=False)
        return y, seen

    same(f, (given(),), (given(),))
    assert "CAP242" in str(same.capture.report.replacements[0][1].stopped)


def test_a_counter_of_a_module_counts_recomputations(same):
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x.sin()

    def make():
        net = Counting()

        def f(x):
            y = checkpoint(net, x * 2, use_reentrant=False)
            y.sum().backward()
            return y.detach(), net.calls

        return f

    same.made(make, (given(),), (given(),))


def test_a_closure_variable_is_assigned(same):
    def f(x):
        last = None

        def block(x):
            nonlocal last
            last = x.sin()
            return last.exp()

        return checkpoint(block, x, use_reentrant=False), last is not None

    same(f, (given(),), (given(),))


def test_running_statistics_are_updated_twice(same):
    def make():
        norm = torch.nn.BatchNorm1d(3)

        def f(x):
            y = checkpoint(norm, x, use_reentrant=False)
            y.sum().backward()
            return y.detach(), norm.running_mean.clone(), int(norm.num_batches_tracked)

        return f

    same.made(make, (given(),), (given(),))


def test_a_tensor_of_the_caller_is_written_to(same):
    def f(x):
        total = torch.zeros(2, 3)

        def block(x):
            total.view(-1).add_(1)
            return x.sin()

        y = checkpoint(block, x, use_reentrant=False)
        return y, total

    same(f, (given(),), (given(),))


def test_tensors_made_inside_are_written_to(whole):
    def block(x):
        mask = torch.zeros(2, 3)
        mask[0] = 1
        mask.detach().add_(1)
        return (x * mask).sin_()

    whole(lambda x: checkpoint(block, x, use_reentrant=False), (given(),), (given(),))


@pytest.mark.parametrize(
    "wrap", [iter, enumerate, lambda it: zip(it, it, strict=False), lambda it: (i for i in it)]
)
def test_an_iterator_of_the_caller_moves_on_twice(same, wrap):
    def f(x):
        numbers = wrap(iter([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))

        def block(x):
            return x.sin() * len(str(next(numbers)))

        y = checkpoint(block, x, use_reentrant=False)
        return y, str(next(numbers))

    same(f, (given(),), (given(),))
    assert "CAP242" in str(same.capture.report.replacements[0][1].stopped)


def test_iterators_of_its_own_are_nobody_elses(whole):
    def block(x):
        found = []
        found.extend(x * k for k in range(3))
        total = 0
        for index, value in enumerate(zip(found, reversed(found), strict=True)):
            total = total + value[0] * value[1] * index
        return total

    whole(lambda x: checkpoint(block, x, use_reentrant=False), (given(),), (given(),))


def test_a_backward_inside_captures_nothing_twice():
    def f(x):
        y = checkpoint(lambda x: torch.nn.functional.relu(x.sin()), x * 2, use_reentrant=False)
        y.sum().backward()
        return x.grad * 2

    fast = optimize(lambda graph_module, _: graph_module.forward)(f)
    fast(given())
    assert len(fast.__fxstack_capture__.report.replacements) == 2


def test_it_prints_again(same):
    def block(x):
        print("here")
        return x.sin()

    same(lambda x: checkpoint(block, x, use_reentrant=False), (given(),), (given(),))


def test_exceptions_leave_it(whole):
    def block(x, n):
        y = x.sin()
        if n > 1:
            raise ValueError("too much", n)
        return y

    def f(x, n):
        try:
            y = checkpoint(block, x, n, use_reentrant=False)
        except ValueError as error:
            return x * 2, error.args
        return y * 3

    whole(f, (given(), 1), (given(), 2))


def test_a_break_inside_is_a_break_at_the_call(same):
    def block(x):
        if x.sum() > 0:
            return x.sin()
        return x.cos()

    def f(x):
        y = x * 2
        return checkpoint(block, y, use_reentrant=False) + y

    same(f, (given(),), (given(),))


def test_options_that_eager_handles(same):
    def contexts():
        return torch.no_grad(), torch.enable_grad()

    def block(x):
        return torch.nn.functional.dropout(x, 0.5).sin()

    def f(x, which):
        if which == 0:
            return checkpoint(block, x, use_reentrant=False, preserve_rng_state=False).detach()
        if which == 1:
            return checkpoint(torch.sin, x, use_reentrant=False, debug=True).detach()
        return checkpoint(torch.sin, x, use_reentrant=True, unknown=1)

    same(f, (given(), 0), (given(), 1), (given(), 2))


def test_a_context_function_is_left_to_eager(same):
    import contextlib

    def contexts():
        return contextlib.nullcontext(), contextlib.nullcontext()

    same(
        lambda x: checkpoint(torch.sin, x, use_reentrant=False, context_fn=contexts) + x,
        (given(),), (given(),),
    )  # fmt: skip


def test_selective_contexts_are_traced_in_each_call(whole):
    def make():
        calls = []

        def f(x):
            def contexts():
                calls.append(x.shape[0])
                return create_selective_checkpoint_contexts([torch.ops.aten.sin.default])

            with torch.no_grad():
                checkpoint(torch.cos, x, use_reentrant=False, context_fn=contexts)
            return checkpoint(torch.sin, x, use_reentrant=False, context_fn=contexts) + x, calls

        return f

    whole.made(make, (given(),), (given(),))


def test_selective_contexts_that_eager_refuses(same):
    def f(x, which):
        saved = [[torch.ops.aten.sin], 3, [torch.ops.aten.sin.default]][which]
        contexts = partial(create_selective_checkpoint_contexts, saved)
        return checkpoint(torch.sin, x, use_reentrant=which == 2, context_fn=contexts)

    same(f, (given(), 0), (given(), 1), (given(), 2))


def test_the_unstated_form_warns_as_eager_does(whole):
    def f(x):
        return checkpoint(torch.sin, x) * 2

    with pytest.warns(UserWarning, match="use_reentrant"):
        f(given())
    whole(f, (given(),))


def test_reentrant_with_nothing_to_differentiate(same):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(lambda x: checkpoint(torch.sin, x, use_reentrant=True) * 2, (X,), (X,))


def test_reentrant_with_results_of_other_kinds(same):
    def several(x):
        return x.sin(), 3, None, x.long()

    same(lambda x: checkpoint(several, x, use_reentrant=True), (given(),), (given(),))
    same(lambda x: checkpoint(lambda x: [x.sin()], x, use_reentrant=True)[0].detach(), (given(),))


@BOTH
def test_a_sequence_in_segments(whole, reentrant):
    torch.manual_seed(0)
    layers = torch.nn.Sequential(*[torch.nn.Linear(3, 3) for _ in range(4)], torch.nn.Dropout(0.3))

    def f(x):
        return checkpoint_sequential(layers, 2, x, use_reentrant=reentrant)

    whole(f, (given(),), (given(),))


def test_a_partial_of_a_method_as_transformers_calls_it(whole):
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x, mask=None, *, scale):
            return (self.linear(x) * mask * scale,)

    class Recomputed(Layer):
        def __call__(self, *args, **kwargs):
            return checkpoint(partial(super().__call__, **kwargs), *args, use_reentrant=False)

    torch.manual_seed(0)
    net = Recomputed()
    whole(lambda x, s: net(x, X, scale=s)[0] + x, (given(), 1.0), (given(), 2.0), (given(), 3.0))


def test_under_autocast(whole):
    torch.manual_seed(0)
    linear = torch.nn.Linear(3, 3)

    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return checkpoint(lambda x: linear(x).sin(), x, use_reentrant=False)

    whole(f, (given(),), (given(),))


def test_sizes_that_differ(whole):
    def block(x):
        return x.sin() * x.shape[0] + x.view(-1).view(x.shape)

    def f(x):
        return checkpoint(block, x, use_reentrant=False) * x.shape[0]

    whole(f, *[(torch.randn(n, 3, requires_grad=True),) for n in (2, 4, 5)])


def test_what_the_function_reads_is_guarded(whole):
    class Options:
        scale = 1.0

    def make():
        options = Options()

        def block(x):
            return (x * options.scale).sin()

        def f(x, scale):
            options.scale = scale
            return checkpoint(block, x, use_reentrant=False)

        return f

    whole.made(make, (given(), 1.0), (given(), 2.0), (given(), 5.0))


def test_an_argument_that_is_overwritten_is_refused():
    """Eager's checkpoint saves its arguments as autograd saves tensors; what a function closes over it reads again."""
    weight = X.clone()

    def f(x):
        return checkpoint(lambda t: t.sin() * weight, x, use_reentrant=False)

    run = optimize(lambda graph_module, inputs: graph_module)(f)
    for overwritten in ("weight", "x"):
        x = given()
        y = run(x)
        with torch.no_grad():
            (weight if overwritten == "weight" else x).add_(1)
        if overwritten == "weight":
            y.sum().backward()
            assert torch.equal(x.grad, x.detach().cos() * weight)
        else:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()
