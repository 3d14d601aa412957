"""Graph breaks wherever they fall in one function: branches, loops, comprehensions, with iterators alive."""

import pytest
import torch

from dynamo_capture import CaptureError, optimize

X = torch.arange(6.0).reshape(2, 3) + 1


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


def test_break_in_a_loop(same, unknown):
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


def test_break_in_a_comprehension(same, unknown):
    same(lambda x, n: [unknown(x.sum()) + i for i in range(n)], (X, 2), (X, 3))


def test_break_in_dict_and_set_comprehensions(same, unknown):
    same(
        lambda x, n: ({i: unknown(x.sum()) + i for i in range(n)}, {unknown(x.sum()) + i for i in range(n)}),
        (X, 2), (X, 3),
    )  # fmt: skip


def test_break_in_a_called_function(same, unknown):
    def inner(x):
        y = x * 2
        n = unknown(y.sum())
        return y + n

    def f(x):
        y = inner(x) + 1
        return inner(y) - 1

    same(f, (X,), (X + 1,))


def test_break_with_values_on_the_stack(same, unknown):
    same(
        lambda x: (
            x + 1,
            [x * 2, unknown(x.sum()), "s"],
            {"a": x, "b": unknown(x.mean())},
            x.sum() + unknown(x.sum()),
        ),
        (X,),
    )


def test_break_keeps_aliases(same, unknown):
    def f(x):
        a = [x]
        b = {"a": a}
        n = unknown(x.sum())
        a.append(n)
        return b["a"] is a, len(b["a"]), a

    same(f, (X,))


def test_break_keeps_closures(same, unknown):
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


def test_break_with_an_iterator_alive(same, unknown):
    def f(x):
        items = iter([1, 2, 3])
        first = next(items)
        n = unknown(x.sum())
        return x + first + n, list(items)

    same(f, (X,))


def test_break_with_a_generator_alive(same, unknown):
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


def test_break_with_two_loops_over_one_iterator(same, unknown):
    def f(x):
        items = iter([1, 2, 3, 4])
        out = []
        for i in items:
            n = unknown(x.sum())
            out.append((i, next(items), n))
        return out

    same(f, (X,))


def test_break_while_the_list_grows(same, unknown):
    def f(x, items):
        seen = []
        for i in items:
            seen.append(i + unknown(x.sum()))
            if i < 3:
                items.append(i + 2)
        return seen

    same(f, (X, [1, 2]), (X, [1]))


def test_break_with_an_endless_generator_alive(same, unknown):
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


def test_break_over_zip_enumerate_and_items(same, unknown):
    def f(x, d):
        out = []
        for i, (k, v) in enumerate(d.items()):
            out.append((i, k, v, unknown(x.sum())))
        for a, b in zip([1, 2], [3, 4], strict=True):
            out.append((a, b, unknown(x.sum())))
        return out

    same(f, (X, {"a": 1, "b": 2}))


def test_break_with_side_effects_before_and_after(same, unknown):
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


def test_break_with_prints(same, unknown):
    def f(x):
        print("one")
        n = unknown(x.sum())
        print("two", n)
        return x

    same(f, (X,), (X,))


def test_break_by_an_unknown_c_function(same):
    import json

    same(lambda x: (x + 1, json.dumps({"a": 1}), x + 2), (X,))


def test_break_in_a_method_with_state(same, unknown):
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


def test_break_is_an_error_with_fullgraph(forward):
    fast = optimize(forward, fullgraph=True)(lambda x: x * x.sum().tolist())
    with pytest.raises(CaptureError, match="CAP"):
        fast(X)


def test_break_in_a_recursive_function(same, unknown):
    def f(x, n):
        return x if n == 0 else f(x + unknown(x.mean()), n - 1)

    same(f, (X, 3))


class _Adds:
    def __init__(self, log):
        self.log = log

    def add(self, item):
        self.log.append(item)


def test_a_method_loaded_before_a_break_in_a_loop_that_handles_what_the_break_raises(same):
    """Uncaptured code comes from the handler to the same break, with the method that Python has loaded there."""

    def f(x):
        taken, given = [], _Adds([])
        for target in (3, None, 4, None):
            try:
                taken.append((1, print(end="", file=target)))
            except AttributeError:
                taken.append("refused")
            try:
                given.add(print(end="", file=target))
            except AttributeError:
                given.add("refused")
        return taken, given.log, x + 1

    same(f, (X,), (X + 1,))
