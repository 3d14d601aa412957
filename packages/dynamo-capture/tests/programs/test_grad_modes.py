"""Grad modes, inference mode and autocast: nested, reused, restored after exceptions, guarded."""

import pytest
import torch

from dynamo_capture import optimize
from fx_interface.conformance.outcomes import differences, observe

X = torch.arange(6.0).reshape(2, 3) + 1


def given():
    return X.clone().requires_grad_()


def test_grad_modes_nest(whole):
    def f(x):
        with torch.no_grad():
            a = x * 2
            with torch.enable_grad():
                b = x * 3
            c = x * 4
            with torch.set_grad_enabled(True):
                d = x * 5
            e = x * 6
        return a, b, c, d, e, x * 7, torch.is_grad_enabled()

    whole(f, (given(),), (X,))


def test_grad_mode_is_restored_after_an_exception(whole):
    def f(x, n):
        try:
            with torch.no_grad():
                if n:
                    raise ValueError
        except ValueError:
            pass
        return x * 2, torch.is_grad_enabled()

    whole(f, (given(), 0), (given(), 1))


def test_exception_leaves_a_grad_mode(whole):
    def f(x, n):
        with torch.no_grad():
            y = x * 2
            if n:
                raise ValueError(n)
        return y

    whole(f, (given(), 0), (given(), 1))


def test_no_grad_as_decorator_of_functions_and_methods(whole):
    class Model:
        @torch.no_grad()
        def frozen(self, x):
            return x * 2

    @torch.enable_grad()
    def live(x):
        return x * 3

    def f(x):
        with torch.no_grad():
            y = live(x)
        return Model().frozen(x), y

    whole(f, (given(),))


def test_no_grad_manager_is_reused(whole):
    def f(x):
        mode = torch.no_grad()
        with mode:
            a = x * 2
        with mode:
            b = x * 3
        return a, b, x * 4

    whole(f, (given(),))


def test_inside_inference_mode():

    def f(x):
        return x * 2

    fast = optimize(lambda gm, ex: gm.forward)(f)
    assert not fast(X).is_inference()
    with torch.inference_mode():
        assert fast(X).is_inference()
    assert not fast(X).is_inference()


def _kind(tensor):
    return tensor.requires_grad, tensor.is_inference(), tensor._is_view(), tensor.is_leaf


def _made_of_other_operators(x):
    with torch.inference_mode():
        made = [
            x.to(torch.float32),
            x.type_as(x),
            x.broadcast_to(2, 3),
            x.reshape(-1),
            x.float().contiguous(),
        ]
        made += [
            *x.tensor_split(2),
            *x.hsplit(3),
            *torch.broadcast_tensors(x, x),
            *torch.meshgrid(x[0], x[0], indexing="ij"),
        ]
        made += [*x.chunk(2), x.flatten(), x.unflatten(1, (3, 1)), x.swapaxes(0, 1), *torch.atleast_2d(x, x)]
        new = [torch.vstack((x, x)), torch.outer(x[0], x[1]), x.to(torch.float64)]
    return made, new


def test_operators_of_other_operators_in_inference_mode(whole):
    """Views and the argument itself are no tensors of inference mode there."""

    def f(x):
        made, new = _made_of_other_operators(x)
        return [_kind(tensor) for tensor in made + new], made[0] is x, made[1] is x, made, new

    whole(f, (given(),), (X,))


def test_operators_of_other_operators_behind_a_break_in_inference_mode(same):
    def f(x):
        with torch.inference_mode():
            print(end="")
            made, new = _made_of_other_operators(x)
            return [_kind(tensor) for tensor in made + new], made, new

    same(f, (given(),), (X.clone(),), (X.clone().requires_grad_(),))


def test_views_of_views_in_inference_mode_that_has_gradients_on(same):
    """A view of a leaf that is itself a view of what requires no grad requires none."""

    def f(x):
        with torch.inference_mode(), torch.enable_grad():
            return [_kind(row) for row in x]

    same(f, (X.clone().requires_grad_(),), (X.view_as(X).requires_grad_(),))


@pytest.mark.parametrize("number", range(10))
def test_they_are_written_to(same, number):
    def f(x):
        made, _ = _made_of_other_operators(x)
        with torch.no_grad():
            made[number].add_(1)
        return x * 2

    same(f, (given(),), (X.clone(),))


def test_autocast(whole):
    def f(x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            a = x @ y
            with torch.autocast("cpu", enabled=False):
                b = x @ y
            c = torch.nn.functional.linear(x, y)
        return a, b, c, x @ y, a.dtype

    whole(
        f,
        (X, X.T.contiguous()) if False else (torch.ones(3, 3), torch.eye(3)),
        (torch.eye(3), torch.ones(3, 3)),
    )


def test_modes_after_an_operator_that_fails(same):
    def f(x, i):
        with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
            y = (x @ x.T).float()[:, i]
        return y, x @ x.T

    def g(x, i):
        try:
            return f(x, i)
        except IndexError:
            return torch.is_autocast_enabled("cpu"), torch.is_grad_enabled()

    for program in (f, g):
        same(program, (X, torch.tensor([0])), (X, torch.tensor([5])), (X, torch.tensor([1])))
        assert not torch.is_autocast_enabled("cpu")


def test_autocast_outside_is_guarded():

    fast = optimize(lambda gm, ex: gm.forward)(lambda x: x @ x)
    a = torch.ones(3, 3)
    assert fast(a).dtype is torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert fast(a).dtype is torch.bfloat16
    assert fast(a).dtype is torch.float32


def test_a_break_in_functions_that_modes_decorate(same):
    def program(x, enabled):
        @torch.set_grad_enabled(enabled)
        def inner(y):
            z = y * 2
            print(z.sum().item())
            return z + 1, torch.is_grad_enabled()

        def again(function):
            return function(x)

        first, second = again(inner), again(inner)
        return first, second, torch.is_grad_enabled()

    x = torch.arange(3.0, requires_grad=True)
    same(program, (x, False), (x, True))


def test_set_grad_enabled_at_breaks(same):
    def f(x):
        manager = torch.set_grad_enabled(False)
        y = x * 2
        torch._C._set_grad_enabled(True)
        z = x * 3
        torch._dynamo.graph_break()
        w = x * 4
        with manager:
            v = x * 5
            torch._dynamo.graph_break()
            u = x * 6
        return y, z, w, v, u, torch.is_grad_enabled(), manager.mode, manager.prev

    def g(x, n):
        for i in range(n):
            with torch.set_grad_enabled(i % 2 == 0), torch.no_grad():
                x = x * 2
                with torch.set_grad_enabled(True):
                    torch._dynamo.graph_break()
                    x = x * 3
            torch.set_grad_enabled(i % 2 == 1)
            try:
                torch._dynamo.graph_break()
                x = x + 1
            finally:
                torch.set_grad_enabled(True)
        return x

    same(f, (given(),), (X,))
    same(g, (given(), 2), (X, 3), (given(), 2))


def test_modes_without_a_call_decorate_functions_made_inside(whole):
    def f(x):
        def inner(x):
            return x.sin(), torch.is_grad_enabled()

        with torch.enable_grad():
            off = torch.no_grad(inner)
        with torch.no_grad():
            on = torch.enable_grad(inner)
            return off(x), on(x), torch.is_grad_enabled()

    whole(f, (given(),), (X,))


def test_a_generator_function_is_decorated(same):
    """The mode holds while the generator runs, and not while it waits, whoever makes, feeds or closes it."""

    def program(x, seen):
        @torch.no_grad()
        def drawn(count):
            try:
                for index in range(count):
                    seen.append(torch.is_grad_enabled())
                    got = yield x * index
                    seen.append((got, torch.is_grad_enabled()))
            finally:
                seen.append(("closed", torch.is_grad_enabled()))

        for made in drawn(2):
            seen.append((made.requires_grad, torch.is_grad_enabled()))
        fed = drawn(3)
        next(fed)
        fed.send("more")
        fed.close()
        return x + 1, drawn

    same(program, (torch.ones(2, requires_grad=True), []))


def test_autocast_decorates_the_making_of_a_generator(same):
    def program(x, seen):
        @torch.autocast("cpu", dtype=torch.bfloat16)
        def drawn():
            seen.append(torch.is_autocast_enabled("cpu"))
            yield x @ x

        return [made.dtype for made in drawn()], x + 1

    same(program, (torch.ones(2, 2), []))


def test_a_class_is_decorated(same):
    def program(x):
        @torch.no_grad()
        class Made:
            def __init__(self):
                self.enabled = torch.is_grad_enabled()

        return Made().enabled, x + 1

    same(program, (torch.ones(2),))


def _read_without_gradients(x):
    rows = (x * 2).unbind(0)
    with torch.no_grad():
        total = sum(row.sum() for row in rows)
    return (sum(row.sum() for row in rows) * total,)


def _rows_without_gradients(x):
    with torch.no_grad():
        rows = list(x)
    return (torch.stack([row * 2 for row in rows]),)


def _stacked_with_gradients(x):
    y = x * 2
    with torch.no_grad():
        rows = y.unbind(0)
    return torch.stack(rows), y


def _returned(x):
    with torch.no_grad():
        parts = x.unbind(0)
    return parts


def _split_by_data(x):
    y = x * 2
    sizes = torch.ones(len(x), dtype=torch.int64).tolist()
    with torch.no_grad():
        parts = y.split(sizes)
    return torch.cat(parts), y


def _asked_for_in_inference_mode(x):
    rows = list(x * 2)
    with torch.inference_mode():
        doubled = [row * 2 for row in rows]
    return *rows, *doubled


def _begun_in_inference_mode(x):
    rows = x.unbind()
    with torch.inference_mode():
        first = next(iter(rows))
    return first, rows[-1]


def _split_before_inference_mode(x):
    parts = (x * 2).split(torch.ones(len(x), dtype=torch.int64).tolist())
    with torch.inference_mode():
        kept = list(parts)
        print(end="")
    return kept[0], parts[-1]


def _left_in_inference_mode(x):
    rows = (x * 2).unbind()
    with torch.inference_mode():
        print(end="")
        total = sum(row.sum() for row in rows)
    return rows[0], total


@pytest.mark.parametrize(
    "program",
    [
        _read_without_gradients, _rows_without_gradients, _stacked_with_gradients, _returned, _split_by_data,
        _asked_for_in_inference_mode, _begun_in_inference_mode, _split_before_inference_mode, _left_in_inference_mode,
    ],
)  # fmt: skip
def test_parts_that_are_made_late_have_the_history_that_they_were_made_with(program):
    """Of a size that varies: how many there are is asked for later, in another mode."""
    compiled = optimize(lambda module, inputs: module.forward)(program)
    for rows in (4, 6, 8):
        found = []
        for run in (program, compiled):
            x = torch.ones(rows, 3, requires_grad=True)
            results = run(x)
            trained = [one.sum() for one in results if one.requires_grad and not one.is_inference()]
            if trained:
                sum(trained).backward()
            found.append(
                (
                    [(one.is_inference(), one.grad_fn is None) for one in results],
                    None if x.grad is None else x.grad.tolist(),
                )
            )
        assert found[0] == found[1]


def test_gradients_of_existing_results_warn_once():
    """Neither a guard nor the capture looks at the gradient besides the program."""

    def f(x):
        return x.grad, x + 1

    def result():
        return torch.ones(2, requires_grad=True) * 2

    def retaining():
        made = result()
        made.retain_grad()
        return made

    fast = optimize(lambda graph_module, example_inputs: graph_module.forward)(f)
    for make in (result, retaining, given, X.clone, result, retaining):
        assert not differences(*(observe(g, make(), backward=False) for g in (f, fast)))
