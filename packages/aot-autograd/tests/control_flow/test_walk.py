"""Programs with branches and loops are compiled in parts: values, gradients, modes and writes are a plain run's."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule, Node, symbolic_trace

from aot_autograd.pipeline import compile_joint
from fx_interface.regions import checkpointed, conditional, loop, scan
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import SPEC_KEY, SymSpec, TensorSpec, spec_of

F64 = torch.float64


def described(module: GraphModule, inputs: Sequence[Any]) -> GraphModule:
    """The graph with specs, learnt by running it."""
    values: dict[Node, Any] = {}
    given = iter(inputs)
    for node in module.graph.nodes:
        if node.op == "placeholder":
            values[node] = next(given)
        elif node.op == "get_attr":
            values[node] = getattr(module, str(node.target))
            continue
        elif node.op != "output":
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
            if node.target in (conditional, loop, checkpointed, scan):
                for held in args[: 1 if node.target in (checkpointed, scan) else 2]:
                    described(held, body_inputs(node, held, args))
            run = node.target if node.op == "call_function" else getattr(torch.Tensor, str(node.target))
            values[node] = run(*args, **kwargs)
        else:
            continue
        node.meta[SPEC_KEY] = spec_tree(values[node])
    return module


def spec_tree(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return spec_of(value)
    return tuple(map(spec_tree, value)) if isinstance(value, (tuple, list)) else None


def body_inputs(node: Node, held: GraphModule, args: Any) -> list[Any]:
    options: Any = node.kwargs
    is_first = held is args[0]
    if node.target is checkpointed:
        return list(args[1:])
    if node.target is conditional:
        return [args[3 + i] for i in options["true_args" if is_first else "false_args"]]
    count = options["carried"]
    if node.target is scan:
        sliced = args[1 + count : 1 + count + options["sliced"]]
        return [
            *args[1 : 1 + count],
            *(tensor[0] for tensor in sliced),
            *args[1 + count + options["sliced"] :],
        ]
    others = options["condition_args" if is_first else "body_args"]
    return [*args[2 : 2 + count], *(args[2 + count + i] for i in others)]


class Program:
    """A graph under construction, of float64 inputs."""

    def __init__(self, count: int) -> None:
        self.graph, self.root = Graph(), torch.nn.Module()
        self.inputs = [self.graph.placeholder(f"x{i}") for i in range(count)]
        self.bodies = 0

    def call(self, target: Any, *args: Any) -> Node:
        return self.graph.call_function(target, args)

    def region(self, target: Any, bodies: Sequence[Any], *args: Any, **options: Any) -> Node:
        held = []
        for body in bodies:
            module = body if isinstance(body, GraphModule) else symbolic_trace(body)
            self.root.add_module(f"body_{self.bodies}", module)
            held.append(self.graph.get_attr(f"body_{self.bodies}"))
            self.bodies += 1
        called = self.graph.call_function(target, (*held, *args), options)
        return self.call(operator.getitem, called, 0)

    def module(self, *results: Any) -> GraphModule:
        self.graph.output(tuple(results))
        return GraphModule(self.root, self.graph)


def branching(nested: bool = False) -> GraphModule:
    """``exp`` or a product, by the sign of the sum, between other operations."""
    made = Program(2)
    x, y = made.inputs
    a = made.call(torch.sin, x)
    positive = made.call(operator.gt, made.call(torch.sum, x), 0.0)
    on_true: Any = lambda a: (a.exp(),)
    if nested:
        inner = Program(1)
        (b,) = inner.inputs
        large = inner.call(operator.gt, inner.call(torch.sum, b), 1.5)
        bodies = [lambda b: (b.exp(),), lambda b: (b.tan(),)]
        on_true = inner.module(inner.region(conditional, bodies, large, b, true_args=(0,), false_args=(0,)))
    bodies = [on_true, lambda a, y: ((a * y).cos(),)]
    chosen = made.region(conditional, bodies, positive, a, y, true_args=(0,), false_args=(0, 1))
    return made.module(made.call(operator.mul, chosen, y), a)


def looping() -> GraphModule:
    made = Program(2)
    x, y = made.inputs
    bodies = [lambda a: (a.sum() < 50,), lambda a, y: (a * a + y,)]
    a = made.call(operator.add, x, 1.0)
    left = made.region(loop, bodies, a, y, carried=1, condition_args=(), body_args=(0,))
    return made.module(made.call(operator.add, left, x))


def scanning() -> GraphModule:
    """What is carried comes to require grad in the first round, if ``y`` does."""
    made = Program(2)
    x, y = made.inputs
    carried = made.call(torch.sum, x)
    body = [lambda c, row, y: (c + row * y.sum(), row * c)]
    left = made.region(scan, body, carried, x, y, carried=1, sliced=1)
    return made.module(made.call(operator.mul, left, x))


def recomputed() -> GraphModule:
    """A branch and random numbers in a part that the backward runs again."""
    inner = Program(2)
    x, y = inner.inputs
    a = inner.call(torch.nn.functional.dropout, inner.call(torch.exp, x))
    positive = inner.call(operator.gt, inner.call(torch.sum, x), 0.0)
    bodies = [lambda a, y: (torch.nn.functional.dropout(a * y),), lambda a: (a.cos(),)]
    chosen = inner.region(conditional, bodies, positive, a, y, true_args=(0, 1), false_args=(0,))
    part = inner.module(inner.call(operator.mul, chosen, x), a)
    made = Program(2)
    x, y = made.inputs
    result = made.region(checkpointed, [part], made.call(torch.sin, x), y)
    return made.module(made.call(operator.mul, result, y), result)


def switched() -> GraphModule:
    """A branch with gradients off, between parts with gradients on."""
    made = Program(2)
    x, y = made.inputs
    a = made.call(torch.sin, x)
    made.call(torch._C._set_grad_enabled, False)
    positive = made.call(operator.gt, made.call(torch.sum, a), 0.0)
    bodies = [lambda a: (a.exp(),), lambda a: (a.cos(),)]
    chosen = made.region(conditional, bodies, positive, a, true_args=(0,), false_args=(0,))
    made.call(torch._C._set_grad_enabled, True)
    return made.module(made.call(operator.mul, chosen, y), chosen, a)


def writing() -> GraphModule:
    """A write to an input before a branch and one to a computed tensor after it."""
    made = Program(2)
    x, y = made.inputs
    made.graph.call_method("mul_", (x, 2.0))
    a = made.call(operator.mul, x, y)
    positive = made.call(operator.gt, made.call(torch.sum, x), 0.0)
    bodies = [lambda x: (x.exp(),), lambda x: (x.cos(),)]
    chosen = made.region(conditional, bodies, positive, x, true_args=(0,), false_args=(0,))
    made.graph.call_method("add_", (a, 1.0))
    return made.module(made.call(operator.add, chosen, a), a)


def example(sign: float, trained: Sequence[bool]) -> list[torch.Tensor]:
    values = [sign * torch.tensor([0.3, 0.6, 0.9], dtype=F64), torch.tensor([1.0, 2.0, 3.0], dtype=F64)]
    return [value.requires_grad_(flag) for value, flag in zip(values, trained, strict=True)]


def outcome(run: Callable[..., Any], inputs: list[torch.Tensor]) -> list[Any]:
    torch.manual_seed(0)
    results = list(run(*inputs))
    found = [(r.detach().clone(), r.requires_grad) for r in results]
    trained = [r for r in results if r.requires_grad]
    if trained:
        torch.stack([r.sum() for r in trained]).sum().backward()
    return [found, [x.grad for x in inputs], [x.detach().clone() for x in inputs]]


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return torch.allclose(one, other, rtol=1e-12) and one.dtype is other.dtype
    return bool(one == other)


PROGRAMS = [branching, lambda: branching(nested=True), looping, scanning, recomputed, switched, writing]


@pytest.mark.parametrize(
    "make, trained",
    [
        (make, trained)
        for make in PROGRAMS
        for trained in ((True, True), (False, True), (False, False))
        if make is not writing or not trained[0]  # a leaf that requires grad is not written to
    ],
)
def test_each_way_through_is_a_plain_run(make: Any, trained: Any, library: Any, interpreter: Any) -> None:
    module = described(make(), example(1, (False, False)))
    given = example(1, trained)
    compiled = compile_joint(module, given, operators=library, forward_compiler=interpreter)
    for sign in (1, -1, 3):
        expected = outcome(module, example(sign, trained))
        assert alike(outcome(compiled, example(sign, trained)), expected), (sign, expected)


def test_a_branch_that_is_not_taken_does_not_run(library: Any) -> None:
    ran: list[str] = []

    def compiler(graph: GraphModule) -> Any:
        names = " ".join(str(node.target) for node in graph.graph.nodes if node.op == "call_function")

        def run(*inputs: Any) -> Any:
            ran.append(names)
            return graph.forward(*inputs)

        return run

    module = described(branching(), example(1, (False, False)))
    compiled = compile_joint(module, example(1, (True, True)), operators=library, forward_compiler=compiler)
    assert not ran
    compiled(*example(1, (True, True)))
    assert any("exp" in names for names in ran)
    assert not any("cos" in names for names in ran)


def test_sizes_that_are_symbols_reach_every_part(library: Any, interpreter: Any) -> None:
    env = ShapeEnv()
    size = env.create_symbol(5)
    made = Program(2)
    x, n = made.inputs
    n.meta[SPEC_KEY] = SymSpec(size)
    spec = TensorSpec((size,), (1,), F64, torch.device("cpu"))
    a = made.call(torch.sin, x)
    doubled = made.call(operator.mul, n, 2)
    total = made.call(torch.sum, a)
    positive = made.call(operator.gt, total, 0.0)
    bodies = [symbolic_trace(lambda a, m: (a * m,)), symbolic_trace(lambda a: (a.cos(),))]
    for body in bodies:
        for place in body.graph.nodes:
            place.meta[SPEC_KEY] = (
                SymSpec(size) if str(place) == "m" else (spec,) if place.op == "output" else spec
            )
    chosen = made.region(conditional, bodies, positive, a, n, true_args=(0, 1), false_args=(0,))
    result = made.call(operator.mul, chosen, doubled)
    module = made.module(result)
    scalar = TensorSpec((), (), F64, torch.device("cpu"))
    for node in module.graph.nodes:
        if node.op == "call_function":
            node.meta[SPEC_KEY] = spec
    x.meta[SPEC_KEY], total.meta[SPEC_KEY] = spec, scalar
    positive.meta[SPEC_KEY] = TensorSpec((), (), torch.bool, torch.device("cpu"))
    doubled.meta[SPEC_KEY] = SymSpec(size * 2)
    next(iter(chosen.all_input_nodes)).meta[SPEC_KEY] = (spec,)
    module.meta["shape_env"] = env
    compiled = compile_joint(
        module, [torch.ones(5, dtype=F64), 5], operators=library, forward_compiler=interpreter
    )
    for sign in (1, -1):
        for count in (5, 8):
            given = sign * torch.linspace(0.1, 1, count, dtype=F64)
            (found,) = compiled(given, count)
            assert torch.allclose(found, module(given, count)[0])
    assert not env.guards
