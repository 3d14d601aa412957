"""with, try, raise, graph breaks wherever they fall, tensors written in place, dynamic sizes."""

import contextlib

import pytest
import torch

from dynamo_capture import CaptureError, optimize

X = torch.arange(6.0).reshape(2, 3) + 1


class Oops(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class Recorder:
    def __init__(self, swallow=False):
        self.log = []
        self.swallow = swallow

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, value, trace):
        self.log.append(None if kind is None else kind.__name__)
        return self.swallow


@contextlib.contextmanager
def noted(log):
    log.append("in")
    try:
        yield len(log)
    finally:
        log.append("out")


def forward(graph_module, example_inputs):
    return graph_module.forward


def unknown(value):
    """Something that no graph expresses."""
    return value.tolist() if isinstance(value, torch.Tensor) else value


def test_no_grad(same):
    def f(x):
        with torch.no_grad():
            y = x * 2
        return y, x * 3

    same(f, (X.clone().requires_grad_(),))


def test_enable_grad_and_set_grad_enabled(same):
    def f(x):
        with torch.set_grad_enabled(False):
            y = x * 2
            with torch.enable_grad():
                z = x * 4
        return y, z, torch.is_grad_enabled()

    same(f, (X.clone().requires_grad_(),))


def test_no_grad_decorator(same):
    @torch.no_grad()
    def g(x):
        return x * 2

    same(lambda x: (g(x), x * 3), (X.clone().requires_grad_(),))


def test_grad_mode_outside_is_guarded():
    def f(x):
        return x * 2

    fast = optimize(forward)(f)
    given = X.clone().requires_grad_()
    assert fast(given).requires_grad
    with torch.no_grad():
        assert not fast(given).requires_grad
    assert fast(given).requires_grad


def test_grad_mode_left_changed(same):
    def f(x):
        torch.set_grad_enabled(False)
        y = x * 2
        torch._C._set_grad_enabled(True)
        return y

    same(f, (X.clone().requires_grad_(),))


def test_context_manager_class(same):
    def f(x):
        with Recorder() as r:
            y = x + len(r.log)
        return y, r.log

    same(f, (X,))


def test_context_manager_argument(same):
    def f(x, r):
        with r as entered:
            y = x + len(entered.log)
        return y

    same(f, (X, Recorder()), (X, Recorder()))


def test_context_manager_function(same):
    def f(x):
        log = []
        with noted(log) as n:
            x = x + n
            log.append("body")
        return x, log

    same(f, (X,))


def test_context_manager_sees_exception(same):
    def f(x, swallow):
        r = Recorder(swallow)
        try:
            with r:
                raise ValueError("inside")
        except ValueError as error:
            return x, r.log, str(error)
        return x + 1, r.log

    same(f, (X, True), (X, False))


def test_context_manager_function_sees_exception(same):
    def f(x):
        log = []
        try:
            with noted(log):
                raise KeyError("k")
        except KeyError:
            log.append("caught")
        return x, log

    same(f, (X,))


def test_suppress_and_nullcontext(same):
    def f(x):
        with contextlib.suppress(ValueError), contextlib.nullcontext(3) as n:
            x = x + n
            raise ValueError
        return x

    same(f, (X,))


def test_exit_stack(same):
    def f(x):
        log = []
        with contextlib.ExitStack() as stack:
            stack.enter_context(noted(log))
            stack.callback(log.append, "callback")
            x = x + 1
        return x, log

    same(f, (X,))


def test_try_except_else_finally(same):
    def f(x, kind):
        log = []
        try:
            log.append("try")
            if kind == 1:
                raise ValueError("v")
            if kind == 2:
                raise Oops(7, "o")
            if kind == 3:
                {}["missing"]
        except (ValueError, TypeError) as error:
            log.append(str(error))
        except Oops as error:
            log.append((error.code, error.args))
        except KeyError:
            log.append("key")
        else:
            log.append("else")
        finally:
            log.append("finally")
        return x + kind, log

    same(f, *[(X, kind) for kind in (0, 1, 2, 3)])


def test_return_in_finally(same):
    def f(x):
        try:
            raise ValueError
        finally:
            return x + 1  # noqa: B012

    same(f, (X,))


def test_reraise(same):
    def f(x, n):
        try:
            try:
                if n:
                    raise Oops(1, "first")
            except Oops:
                x = x + 1
                raise
        except Oops as error:
            return x, error.code
        return x

    same(f, (X, 1), (X, 0))


def test_raise_from(same):
    def f(x):
        try:
            try:
                raise ValueError("a")
            except ValueError as error:
                raise KeyError("b") from error
        except KeyError as error:
            return x, type(error.__cause__).__name__, str(error)

    same(f, (X,))


def test_exception_comes_out_unchanged(same):
    def f(x, n):
        y = x + 1
        if n > 2:
            raise Oops(n, f"bad {n}")
        return y

    same(f, (X, 1), (X, 3), (X, 4), (X, 2))


def test_effects_before_an_exception_happen_once(same):
    def make():
        log = []

        def f(x, a, n):
            log.append(n)
            a.append(x * 2)
            if n:
                raise Oops(n, str(log))
            return log[:]

        return f

    same.made(make, (X, [], 0), (X, [], 1), (X, [1], 2), (X, [], 0))


def test_effects_before_an_exception_after_a_break(same):
    def make():
        log = []

        def f(x, a):
            log.append("first")
            n = unknown(x.sum())
            log.append(n)
            a.append(n)
            raise Oops(n, str(log))

        return f

    same.made(make, (X, []), (X + 1, [1]))


def test_exception_of_an_operator(same):
    def f(x, y):
        try:
            return x @ y
        except RuntimeError:
            return x + 1

    same(f, (X, X.T), (X, torch.ones(5, 5)))


def test_exception_of_an_operator_leaves(same):
    same(lambda x, y: x @ y, (X, X.T), (X, torch.ones(5, 5)), (X, X.T))


def test_assertion(same):
    scope = {}
    exec(
        "def f(x, n):\n    assert n > 0, f'n is {n}'\n    return x + n", scope
    )  # unseen by pytest's rewriting
    f = scope["f"]

    same(f, (X, 1), (X, -1), (X, 2))


def test_attribute_and_name_errors(same):
    same(lambda x, n: x.nope if n else undefined_name, (X, 0), (X, 1))  # noqa: F821


def test_stop_iteration_by_hand(same):
    class Three:
        def __init__(self):
            self.n = 0

        def __iter__(self):
            return self

        def __next__(self):
            if self.n == 3:
                raise StopIteration
            self.n += 1
            return self.n

    same(lambda x: (x + sum(Three()), list(Three())), (X,))


# ---- graph breaks ----


def test_break_by_item(same):
    same(lambda x: x * x.sum().item() + 1, (X,), (X + 1,))


def test_break_by_data_dependent_if(same):
    def f(x):
        y = x + 1
        if y.sum() > 20:
            y = y * 2
        else:
            y = y - 2
        return y + 1

    same(f, (X,), (X + 5,), (-X,))


def test_break_in_a_loop(same):
    def f(x, n):
        log = []
        for i in range(n):
            x = x + unknown(x.mean())
            log.append(i)
            if x.sum() > 100:
                break
        else:
            log.append("else")
        return x, log

    same(f, (X, 2), (X, 3), (X, 10))


def test_break_in_a_while_loop(same):
    def f(x):
        count = 0
        while x.sum() < 100:
            x = x * 2
            count += 1
        return x, count

    same(f, (X,), (X * 10,))


def test_break_in_a_comprehension(same):
    same(lambda x, n: [unknown(x.sum()) + i for i in range(n)], (X, 2), (X, 3))


def test_break_in_dict_and_set_comprehensions(same):
    same(
        lambda x, n: ({i: unknown(x.sum()) + i for i in range(n)}, {unknown(x.sum()) + i for i in range(n)}),
        (X, 2), (X, 3),
    )  # fmt: skip


def test_break_in_with(same):
    def f(x):
        with torch.no_grad():
            y = x * 2
            n = unknown(y.sum())
            z = y + n
        return z, x * n

    same(f, (X.clone().requires_grad_(),))


def test_break_in_a_context_manager_of_the_program(same):
    def f(x):
        r = Recorder()
        with r:
            x = x + unknown(x.sum())
        return x, r.log

    same(f, (X,))


def test_break_in_a_generator_context_manager(same):
    def f(x):
        log = []
        with noted(log):
            x = x + unknown(x.sum())
        return x, log

    same(f, (X,))


def test_break_in_try(same):
    def f(x, n):
        log = []
        try:
            y = x + unknown(x.sum())
            log.append("try")
            if n:
                raise Oops(1, "after the break")
            log.append("no raise")
        except Oops as error:
            log.append(error.code)
            y = x - unknown(x.sum())
        finally:
            log.append("finally")
        return y, log

    same(f, (X, 0), (X, 1))


def test_break_in_except_and_finally(same):
    def f(x):
        log = []
        try:
            raise ValueError("v")
        except ValueError as error:
            log.append(str(error))
            x = x + unknown(x.sum())
        finally:
            x = x * unknown(x.mean())
            log.append("f")
        return x, log

    same(f, (X,))


def test_break_in_a_called_function(same):
    def inner(x):
        y = x * 2
        n = unknown(y.sum())
        return y + n

    def f(x):
        y = inner(x) + 1
        return inner(y) - 1

    same(f, (X,), (X + 1,))


def test_break_with_values_on_the_stack(same):
    same(
        lambda x: (
            x + 1,
            [x * 2, unknown(x.sum()), "s"],
            {"a": x, "b": unknown(x.mean())},
            x.sum() + unknown(x.sum()),
        ),
        (X,),
    )


def test_break_keeps_aliases(same):
    def f(x):
        a = [x]
        b = {"a": a}
        n = unknown(x.sum())
        a.append(n)
        return b["a"] is a, len(b["a"]), a

    same(f, (X,))


def test_break_keeps_closures(same):
    def f(x):
        total = 0

        def add(n):
            nonlocal total
            total += n

        add(1)
        add(unknown(x.sum()))
        add(2)
        return x + total

    same(f, (X,))


def test_break_with_an_iterator_alive(same):
    def f(x):
        items = iter([1, 2, 3])
        first = next(items)
        n = unknown(x.sum())
        return x + first + n, list(items)

    same(f, (X,))


def test_break_with_a_generator_alive(same):
    def f(x):
        log = []

        def gen():
            for i in range(3):
                log.append(i)
                yield i

        g = gen()
        first = next(g)
        log.append("break")
        n = unknown(x.sum())
        return x + first + n, list(g), log

    same(f, (X,))


def test_break_with_two_loops_over_one_iterator(same):
    def f(x):
        items = iter([1, 2, 3, 4])
        out = []
        for i in items:
            n = unknown(x.sum())
            out.append((i, next(items), n))
        return out

    same(f, (X,))


def test_break_while_the_list_grows(same):
    def f(x, items):
        seen = []
        for i in items:
            seen.append(i + unknown(x.sum()))
            if i < 3:
                items.append(i + 2)
        return seen

    same(f, (X, [1, 2]), (X, [1]))


def test_break_with_an_endless_generator_alive(same):
    def count(log):
        n = 0
        while True:
            log.append(n)
            yield n
            n += 1

    def f(x):
        log = []
        g = count(log)
        next(g)
        n = unknown(x.sum())
        return next(g) + n, log

    same(f, (X,), (X,))


def test_break_over_zip_enumerate_and_items(same):
    def f(x, d):
        out = []
        for i, (k, v) in enumerate(d.items()):
            out.append((i, k, v, unknown(x.sum())))
        for a, b in zip([1, 2], [3, 4], strict=True):
            out.append((a, b, unknown(x.sum())))
        return out

    same(f, (X, {"a": 1, "b": 2}))


def test_break_with_side_effects_before_and_after(same):
    def make():
        log = []

        def f(x, d):
            log.append(1)
            d["a"] = x
            n = unknown(x.sum())
            d["b"] = n
            log.append(n)
            return list(log), d["a"]

        return f

    same.made(make, (X, {}), (X + 1, {}))


def test_break_with_prints(same):
    def f(x):
        print("one")
        n = unknown(x.sum())
        print("two", n)
        return x

    same(f, (X,), (X,))


def test_break_by_an_unknown_c_function(same):
    import json

    same(lambda x: (x + 1, json.dumps({"a": 1}), x + 2), (X,))


def test_break_in_a_method_with_state(same):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = 0
            self.scale = torch.nn.Parameter(torch.ones(3))

        def forward(self, x):
            self.steps += 1
            n = unknown(x.sum())
            self.steps += 1
            return x * self.scale + n + self.steps

    same.made(Net, (X,), (X,))


def test_break_is_an_error_with_fullgraph():
    fast = optimize(forward, fullgraph=True)(lambda x: x * x.sum().tolist())
    with pytest.raises(CaptureError, match="CAP"):
        fast(X)


def test_break_in_a_recursive_function(same):
    def f(x, n):
        return x if n == 0 else f(x + unknown(x.mean()), n - 1)

    same(f, (X, 3))


# ---- tensors written in place ----


def test_in_place_on_argument(same):
    def f(x):
        x.add_(1)
        x *= 2
        x[0] = 7
        x[:, 1] += 1
        return x.sum()

    same(f, (X,), (X + 1,))


def test_in_place_result_is_the_argument(same):
    def f(x):
        return x.mul_(2) is x, x.add_(1)

    same(f, (X,))


def test_views_see_writes(same):
    def f(x):
        row = x[0]
        row.add_(10)
        flat = x.view(-1)
        flat[1] = -1
        return x, row, flat.sum()

    same(f, (X,))


def test_write_then_break_then_write(same):
    def f(x):
        x.add_(1)
        n = unknown(x.sum())
        x.mul_(n)
        return x

    same(f, (X,))


def test_two_arguments_of_one_storage(same):
    base = torch.arange(6.0)

    def f(pair):
        a, b = pair
        a.add_(1)
        return b * 2

    def make():
        base = torch.arange(6.0)
        return lambda: f((base, base[2:4]))

    same.made(make, (), ())


def test_out_argument(same):
    def f(x):
        out = torch.empty_like(x)
        torch.add(x, 1, out=out)
        return out

    same(f, (X,))


def test_detach_and_requires_grad(same):
    def f(x):
        y = x.detach() * 2
        return y, (x * y), x.requires_grad, y.requires_grad

    same(f, (X.clone().requires_grad_(),))


def test_grad_property(same):
    given = X.clone().requires_grad_()
    same(lambda x: x * 2 if x.grad is None else x * 3, (given,))


def test_factories(same):
    def f(x):
        return (
            torch.zeros(2, 3) + x, torch.ones_like(x), torch.arange(3), torch.full((2,), 3.0), torch.tensor([1, 2]),
            x.new_zeros(4), torch.empty(0), torch.eye(2), torch.linspace(0, 1, 3), torch.tensor(3.0) * x,
        )  # fmt: skip

    same(f, (X,))


def test_random_numbers(same):
    def f(x):
        return x + torch.rand(2, 3), torch.nn.functional.dropout(x, 0.5)

    fast = optimize(forward)(f)
    torch.manual_seed(3)
    expected = f(X)
    torch.manual_seed(3)
    actual = fast(X)
    assert all(torch.equal(a, b) for a, b in zip(expected, actual, strict=True))


def test_dtype_device_and_shape_guards(same):
    same(
        lambda x: x * 2 if x.dtype is torch.float32 else x * 3,
        (X,), (X.double(),), (X.int(),), (X[0],), (X.T,), (X.clone().requires_grad_(),), (X,),
    )  # fmt: skip


def test_parameter_and_tensor_differ(same):
    same(lambda x: (x * 2, isinstance(x, torch.nn.Parameter)), (X,), (torch.nn.Parameter(X.clone()),), (X,))


# ---- dynamic sizes ----


@pytest.mark.parametrize("dynamic, most", [(None, 2), (True, 1)])
def test_sizes_do_not_recompile(dynamic, most):
    library = pytest.importorskip("primtorch_decomps").LIBRARY

    def f(x, y):
        return torch.cat([x + 1, y]).sum(0) * x.shape[0] + x.view(-1).mean()

    fast = optimize(forward, dynamic=dynamic, operators=library)(f)
    for size in range(2, 12):
        x, y = torch.randn(size, 3), torch.randn(5, 3)
        assert torch.allclose(fast(x, y), f(x, y))
    assert len(fast.__fxstack_capture__.report.replacements) <= most


def test_sizes_that_decide_a_branch(same):
    def f(x):
        return x + 1 if x.shape[0] > 5 else x * 2

    same(f, *[(torch.ones(n, 2),) for n in range(2, 9)])


def test_integers_that_vary(same):
    same(lambda x, n: x * n + n // 2, *[(X, n) for n in range(8)])


def test_size_one_and_zero(same):
    same(lambda x, y: x + y, *[(torch.ones(n, 3), torch.ones(1, 3)) for n in (4, 1, 0, 5, 1)])


def test_sizes_as_values(same):
    same(
        lambda x: (x.shape[0] * 2, torch.zeros(x.shape[0] + 1), [i for i in range(x.shape[0])], x.shape, -x.shape[0],
                   x.shape[0] / 2, str(x.shape[0]), min(x.shape), max(x.shape[0], 3)),
        *[(torch.ones(n, 2),) for n in (3, 4, 6)],
    )  # fmt: skip
