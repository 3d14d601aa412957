"""Programs that are called inside of a ``TorchFunctionMode``: it sees what it sees in eager, and the graphs run without it."""

from __future__ import annotations

import contextlib
import copy

import pytest
import torch
import torch.nn.functional as F
from torch.overrides import BaseTorchFunctionMode, TorchFunctionMode

from dynamo_capture import optimize
from fx_interface.conformance.outcomes import differences, observe
from fx_interface.torch_internals.function_modes import program_stack

X = torch.arange(6.0).view(3, 2) + 1


class Seen(TorchFunctionMode):
    """Notes what it is asked about, and counts."""

    def __init__(self, name=""):
        super().__init__()
        self.log = []
        self.count = 0
        self.name = name

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.log.append(
            (self.name, func.__name__, len(types), [type(a).__name__ for a in args], [*(kwargs or ())])
        )
        self.count += 1
        return func(*args, **(kwargs or {}))


class Scaled(BaseTorchFunctionMode):
    """Sums are scaled."""

    def __init__(self, by):
        super().__init__()
        self.by = by

    def __torch_function__(self, func, types, args=(), kwargs=None):
        made = super().__torch_function__(func, types, args, kwargs)
        return made * self.by if func is torch.add else made


class Picky(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.exp:
            raise ValueError("no exponents")
        return func(*args, **(kwargs or {}))


@pytest.fixture
def same():
    """Compares a program with itself captured, each time inside of modes of its own. ``graphs``: how many there are."""

    def check(program, modes, *calls, graphs=None, **options):
        run = []

        def backend(graph_module, example_inputs):
            def compiled(*args):
                assert not any(isinstance(m, TorchFunctionMode) for m in program_stack()), "the graph is seen"
                run.append(graph_module)
                return graph_module.forward(*args)

            return compiled

        fast = optimize(backend, **options)(program)
        for number, call in enumerate(calls):
            outcomes = []
            for function in (program, fast):
                around = modes()
                given = copy.deepcopy(call)

                def inside(*args, function=function, around=around):
                    with contextlib.ExitStack() as stack:
                        for mode in around:
                            stack.enter_context(mode)
                        return function(*args)

                outcomes.append(observe(inside, *given, also={"modes": [vars(mode) for mode in around]}))
            found = differences(*outcomes, ignore={"inner version"})
            assert not found, (number, found)
            assert not program_stack()
        if graphs is not None:
            report = fast.__fxstack_capture__.report
            assert len(report.replacements) == graphs, [str(r.stopped) for _, r in report.replacements]
            assert not report.eager
        assert run

    return check


def test_one_mode(same):
    def program(x):
        y = torch.add(x, 1) - 2 * x
        y[1] = x[0, :1].sum()
        with torch.no_grad():
            w = torch.ones(2, dtype=x.dtype)
        return F.softmax(y, 0), x.shape, x.size(0), x.split(1), w

    same(program, lambda: [Seen()], (X,), (X + 1,), (X.clone().requires_grad_(),), graphs=2)


def test_modes_in_modes(same):
    def program(x):
        return torch.add(x, 1) * torch.add(x, x)

    same(program, lambda: [Seen("a"), Scaled(3), Seen("b")], (X,), (X - 1,), graphs=1)
    same(program, lambda: [Scaled(2.5), Scaled(3)], (X,), (X - 1,), graphs=1)


def test_what_a_mode_holds_is_guarded():
    fast = optimize(lambda graph, inputs: graph.forward)(lambda x: torch.add(x, 1))
    for by in (2, 3, 2):
        with Scaled(by):
            assert torch.equal(fast(X), (X + 1) * by)
        assert torch.equal(fast(X), X + 1)
        with Scaled(by), BaseTorchFunctionMode(), Scaled(by):
            assert torch.equal(fast(X), (X + 1) * by * by)
        with Scaled(by), torch._C.DisableTorchFunction():
            assert torch.equal(fast(X), X + 1)
        with torch.device("cpu"), Scaled(by):
            assert torch.equal(fast(X), (X + 1) * by)


def test_a_default_device_around_is_used():
    fast = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(lambda: torch.ones(2, 3) * 2)
    for device in ("meta", "cpu", "meta"):
        with torch.device(device), Seen() as mode:
            made = fast()
        assert made.device.type == device
        assert [name for _, name, *_ in mode.log] == ["ones", "mul"]
    with Seen() as mode, torch.device("meta"):
        made = fast()
    assert made.device.type == "meta"
    assert [name for _, name, *_ in mode.log if name != "device"] == ["ones", "mul"]


def test_graphs_that_end(same):
    def program(x, log):
        y = torch.add(x, 1)
        for _ in range(2):
            log.append(float(y.sum()))
            y = torch.add(y, 1)
            if y.sum() > 40:
                y = y.sin()
        return y, log

    same(program, lambda: [Seen("a"), Scaled(2)], (X, []), (X - 9, []), (X, []))


def test_a_graph_that_ends_in_the_mode(same):
    class Telling(TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.sums = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            made = func(*args, **(kwargs or {}))
            if func is torch.add:
                self.sums.append(made.sum().item())
            return made

    def program(x):
        y = (x * 2).sin()
        z = torch.add(y, 1)
        return torch.exp(z) * y

    same(program, lambda: [Seen(), Telling()], (X,), (X - 1,))


def test_training(same):
    def program(x, w):
        y = F.linear(torch.add(x, 1), w).relu()
        y.sum().backward()
        return w.grad, y.detach()

    def only_forward(x, w):
        return F.linear(torch.add(x, 1), w).relu()

    w = torch.nn.Parameter(torch.ones(2, 2) / 3)
    same(program, lambda: [Seen()], (X, w), (X + 1, w))
    same(only_forward, lambda: [Scaled(2)], (X, w), (X + 1, w), graphs=1)


def test_effects(same):
    def program(x, seen, holder):
        y = torch.add(x, 1)
        seen.append(y)
        holder["n"] = len(seen)
        x.mul_(2)
        x.grad = y * 2
        return y

    same(program, lambda: [Scaled(2)], (X.clone(), [], {}), (X + 1, [1], {}))


def test_sizes_that_vary(same):
    def program(x):
        return torch.add(x[: x.shape[0] - 1], 1), x.shape[0] + 1

    same(program, lambda: [Seen(), Scaled(2)], *[(torch.rand(n, 2),) for n in (3, 4, 5, 3)])


def test_exceptions(same):
    def program(x, n):
        log = []
        try:
            y = torch.add(x, 1)
            if n > 1:
                y = torch.exp(y)
            log.append(torch.linalg.cholesky(y[:2]))
        except (ValueError, RuntimeError) as error:
            log.append(type(error).__name__)
        return log

    same(program, lambda: [Picky(), Seen()], (X, 1), (X, 2), (torch.eye(3)[:, :2].clone(), 1))

    def raising(x, n):
        return torch.exp(torch.add(x, n))

    same(lambda x: x.sin() + 1, lambda: [Picky()], (X,))
    fast = optimize(lambda graph, inputs: graph.forward)(raising)
    for _ in range(2):
        with pytest.raises(ValueError, match="no exponents"), Picky():
            fast(X, 1)
        assert not program_stack()


def test_a_graph_that_raises_puts_the_modes_back():
    fast = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(torch.linalg.cholesky)
    mode = Seen()
    for matrix in (torch.eye(2), -torch.eye(2)):
        with mode, contextlib.suppress(RuntimeError):
            fast(matrix)
        assert not program_stack()


def test_modes_that_the_program_enters_and_leaves_by_hand():
    def leave(x):
        y = torch.add(x, 1)
        mode = torch._C._pop_torch_function_stack()
        return torch.add(y, 1), mode

    def enter(x, mode):
        torch._C._push_on_torch_function_stack(mode)
        return torch.add(x, 1)

    outer, inner = Scaled(2), Scaled(5)
    strict = optimize(lambda graph, inputs: graph.forward, fullgraph=True)
    for _ in range(2):
        with outer:
            assert torch.equal(strict(enter)(X, inner), (X + 1) * 10)
            assert program_stack() == [outer, inner]
            y, left = strict(leave)(X)
            assert left is inner
            assert torch.equal(y, ((X + 1) * 10 + 1) * 2)
            assert program_stack() == [outer]


def test_a_mode_that_cannot_be_traced_leaves_the_program_as_written():
    class Hidden(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return eval("func(*args, **(kwargs or {}))", {}, dict(func=func, args=args, kwargs=kwargs))

    runs = []

    def backend(graph, inputs):
        return lambda *args: runs.append(1) or graph.forward(*args)

    fast = optimize(backend)(lambda x: torch.add(x, 1))
    for _ in range(2):
        with Hidden():
            assert torch.equal(fast(X), X + 1)
        assert torch.equal(fast(X), X + 1)
    assert len(runs) >= 2


def test_objects_that_hold_modules(same):
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.LayerNorm(3))

    def program(x, module):
        return module(x)

    same(program, lambda: [Seen()], (X, module), (X + 1, module), graphs=1)


@pytest.mark.parametrize("name", ["__int__", "__index__", "__float__", "__bool__", "__len__", "backward"])
def test_what_a_mode_calls_without_a_receiver(same, name):
    """``func(*args)`` in a mode: methods of tensors that are no operations, called through the class."""

    def program(x):
        y = x * 2
        return getattr(torch.Tensor, name)(y), x.grad, y + 1

    whole = X.long()[:2].sum()
    leaf = X.sum().requires_grad_()  # torch warns once in a process where a number is taken out of one
    kinds = {"backward": (leaf,), "__len__": (X, X[0])}
    for x in kinds.get(name, (X.sum(), whole, whole > 2)):
        same(program, lambda: [Seen()], (x,), (x,))
        same(lambda x: program(x), list, (x,), (x,))


def test_the_default_device_is_set_inside():
    def program(x, devices):
        found = [torch.get_default_device(), torch.ones(2) + 1]
        for device in devices:
            torch.set_default_device(device)
            found += [torch.get_default_device(), torch.ones(2) + 1, torch.zeros(3, device="cpu")]
        return found, x + 1

    loose = optimize(lambda graph, inputs: graph.forward)(program)
    strict = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(program)
    for before in (None, "cpu", "meta"):
        for devices in (["cpu"], ["meta", None], ["cpu", "meta", "cpu"], [None], ["meta"]):
            for modes in ([], [Seen()]):
                seen = []
                for function in (program, loose if modes else strict):
                    torch.set_default_device(before)
                    try:
                        with contextlib.ExitStack() as stack:
                            for mode in modes:
                                stack.enter_context(mode)
                            found, y = function(X, devices)
                            inside = [type(mode) for mode in program_stack()]
                        after = torch.get_default_device()
                    finally:
                        torch.set_default_device(None)
                    assert not program_stack()
                    seen.append([str(one.device if isinstance(one, torch.Tensor) else one) for one in found])
                    seen[-1] += [str(after), inside, [mode.log for mode in modes]]
                    for mode in modes:
                        mode.__init__()
                    assert torch.equal(y, X + 1)
                assert seen[0] == seen[1]


def test_a_graph_ends_behind_another_default_device():
    def program(x):
        torch.set_default_device("meta")
        y = torch.ones(2)
        if x.sum() > 1:
            y = torch.zeros(3)
        torch.set_default_device(None)
        return y, torch.ones(1), x * 2

    fast = optimize(lambda graph, inputs: graph.forward)(program)
    for x in (X, X - 9, X):
        y, one, double = fast(x)
        assert (y.device.type, y.shape, one.device.type) == ("meta", (2 + int(x.sum() > 1),), "cpu")
        assert torch.equal(double, x * 2)
        assert not program_stack()


def test_what_torch_asks_no_mode_about(same):
    def program(x):
        made = (
            torch.Tensor([1.0, 2.0]),
            torch.IntTensor(2, 3).shape,
            torch.nn.Parameter(x, requires_grad=False),
        )
        y = made[0] + 1
        if torch._is_all_true(y > 1):
            y = y * 2
        return y, made[1], made[2] + 1

    same(program, lambda: [Seen()], (X,), (X + 1,))
    same(program, lambda: [Seen(), Scaled(2)], (X,), (X + 1,))
