"""Blocks of ``TorchFunctionMode`` inside of a program: the mode sees what it sees in eager, in the same order."""

from __future__ import annotations

import types

import torch
import torch.nn.functional as F
from torch.overrides import BaseTorchFunctionMode, TorchFunctionMode

from dynamo_capture import optimize
from dynamo_capture.semantics.modes.torch_function_modes import looks_for_modes

X = torch.arange(6.0).view(3, 2) + 1


class Seen(TorchFunctionMode):
    """Notes what it is asked about."""

    def __init__(self, log, name=""):
        super().__init__()
        self.log = log
        self.name = name

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.log.append(
            f"{self.name}{func.__name__} {len(types)} {[type(a).__name__ for a in args]} {kwargs}"
        )
        return func(*args, **(kwargs or {}))


class Doubled(TorchFunctionMode):
    """Sines are cosines, and factories make twos."""

    calls = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        if func is torch.sin or func is torch.Tensor.sin:
            return torch.cos(*args, **(kwargs or {}))
        if func is torch.ones:
            return func(*args, **(kwargs or {})) * 2
        return func(*args, **(kwargs or {}))


def test_what_a_mode_sees(same):
    def program(x):
        log = []
        with Seen(log):
            y = x + 1 - 2 * x
            y = 3 - y[0] @ x.T
            y[1] = x[0, :1].sum()
            z = F.softmax(y, 0) + F.dropout(y, 0.0) + F.gelu(y)
            shape, size, kind = x.shape, x.size(0), x.dtype
            rows = [row * 2 for row in x]
            parts = x.split(1)
            y = y.clone()
            y += 1
            with torch.no_grad():
                w = torch.ones(2, dtype=kind)
            whole = torch.cat([x, x]).view(-1, size)
            e = torch.einsum("ij,ij->i", x, x)
            n = len(x)
        return y, z, shape, rows, parts, w, whole, e, n, log

    same(program, (X,), (X.clone().requires_grad_(),), breaks=0)


def test_a_mode_that_changes_operations(same):
    def program(x, mode):
        before = torch.ones(2)
        with mode as entered, Doubled():
            y = torch.sin(x) + x.sin() + torch.ones(2)
        return before + y, entered is mode, mode.calls, torch.ones(2)

    same(program, (X, Doubled()), (X * 2, Doubled()), breaks=0)


def test_modes_in_modes(same):
    def program(x):
        log = []
        outer, inner = Seen(log, "outer "), Seen(log, "inner ")
        with outer:
            x = x * 2
            with inner, BaseTorchFunctionMode():
                x = F.linear(x, torch.eye(2)).relu()
            x = torch.ops.aten.add.Tensor(x, 1)
        current = torch.overrides._get_current_function_mode()
        return x, log, current

    same(program, (X,), (X + 1,), breaks=0)


def test_a_mode_leaves_when_something_is_raised(same):
    class Picky(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is torch.exp:
                raise ValueError("no exponents")
            return func(*args, **(kwargs or {}))

    def program(x, n):
        log = []
        try:
            with Picky():
                y = x * 2
                if n > 1:
                    y = torch.exp(y)
        except ValueError as error:
            log.append(str(error))
            y = torch.exp(x)
        return y, log

    same(program, (X, 1), (X, 2), (X, 3), breaks=0)


def test_a_mode_around_vmap(same):
    """As transformers makes its masks."""

    class Indexed(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is torch.Tensor.__getitem__ and all(isinstance(i, (torch.Tensor, int)) for i in args[1]):
                return args[0].index_select(0, args[1][0].reshape(1)).squeeze(0)[:1]
            return func(*args, **(kwargs or {}))

    def program(x):
        with Indexed():
            return torch.vmap(lambda i: x[i, i] * 2)(torch.tensor([2, 0]))

    same(program, (X,), (X + 1,), breaks=0)


def test_a_mode_that_notes_what_vmap_does(same):
    def program(x):
        log = []
        with Seen(log):
            y = torch.vmap(lambda row, i: row[0] * i, in_dims=(0, None))(x, torch.tensor(2))
        return y, log

    same(program, (X,), (X + 1,))


def test_a_graph_that_ends_inside_of_the_block(same):
    def program(x):
        log = []
        y = x * 3
        with Seen(log):
            y = y + 1
            if y.sum() > 20:
                y = y * 2
            y = y - 1
        return torch.sin(y), log

    same(program, (X,), (X - 9,), (X,))


def test_sizes_that_vary_and_functions_of_torch_in_a_mode(same):
    def program(x, module):
        log = []
        with Seen(log):
            y = module(x.view(x.shape[0], -1))[: x.shape[0] - 1]
            y = torch.zeros(x.size(0), device=x.device).unsqueeze(1) + module(x)
            y = F.cross_entropy(y, torch.zeros(x.shape[0], dtype=torch.long))
        return y, log

    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.LayerNorm(3))
    same(program, *[(torch.rand(n, 2), module) for n in (3, 4, 5, 3)])


def test_a_mode_is_entered_by_hand_and_stays(same):
    def enter(mode):
        mode.__enter__()
        return torch.ones(2)

    def leave(mode, x):
        y = x.sin()
        mode.__exit__(None, None, None)
        return y, x.sin()

    same(lambda mode: leave(mode, enter(mode)), (Doubled(),), (Doubled(),))


def test_a_default_device_inside_of_a_mode_is_asked_first(same):
    def program(x):
        log = []
        with Seen(log, "outer "), torch.device("meta"), Seen(log, "inner "):
            y, z = torch.ones(2), torch.zeros(2, device="cpu")
            with torch.device("cpu"):
                w = torch.ones(2)
        return y.shape, y.device.type, z, w, log

    same(program, (X,), (X,), graphs=1, breaks=0)


def test_a_mode_is_asked_which_device_a_default_is(same):
    class Elsewhere(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*(("meta",) if func is torch.device else args), **(kwargs or {}))

    def program():
        with Elsewhere(), torch.device("cpu"):
            return torch.ones(2).device.type, torch.device("cpu").type

    same(program, ())


def test_a_graph_ends_with_a_default_device_inside_of_a_mode(same):
    def broken(x):
        with torch.device("meta"):
            print(end="")
            y = torch.ones(2)
        return (y + 1).device.type, x + 1

    def program(x):
        log = []
        with Seen(log):
            found = broken(x)
        return found, torch.ones(2).device.type, log

    same(program, (X,), (X,))


def test_a_function_is_called_with_a_default_device_inside_of_a_mode():
    log, graphs = [], []

    def backend(graph_module, example_inputs):
        graphs.append(graph_module)
        return graph_module.forward

    fast = optimize(backend, fullgraph=True)(lambda: torch.ones(2) + 1)
    for device in ("meta", "meta", "cpu"):
        with Seen(log), torch.device(device):
            found = fast()
        assert found.device.type == device
    assert len(graphs) == 2
    assert sum(text.startswith("ones") and "device(type=" in text for text in log) == 3


def test_torchs_functions_that_ask_the_modes_are_told_by_their_code():
    """As torch's own list has it, which reads names that a program may have deleted."""
    listed = [f for found in torch.overrides.get_overridable_functions().values() for f in found]
    in_python = [function for function in listed if isinstance(function, types.FunctionType)]
    assert in_python
    assert [function for function in in_python if not looks_for_modes(function)] == []
    assert not looks_for_modes(torch.typename)
    assert not looks_for_modes(test_torchs_functions_that_ask_the_modes_are_told_by_their_code)
