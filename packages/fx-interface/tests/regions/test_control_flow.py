"""Branches and loops that data decide about, run as they are."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule

from fx_interface.errors import InvalidGraphError
from fx_interface.regions import conditional, loop, scan
from fx_interface.signature import DIALECT_KEY, SHAPE_ENV_KEY
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import SPEC_KEY, spec_of
from fx_interface.verifier import verify


def given() -> list[torch.Tensor]:
    return [torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64, requires_grad=True) for _ in range(2)]


def branch(taken: bool, x: torch.Tensor, y: torch.Tensor) -> Any:
    return conditional(
        lambda a: (a.exp(), a > 1),
        lambda b, a: (b.sin() * a, a < 1),
        torch.tensor(taken),
        x,
        y,
        true_args=(0,),
        false_args=(1, 0),
    )


def test_one_branch_runs_and_the_other_has_gradients_of_zero() -> None:
    x, y = given()
    found, flags = branch(True, x, y)
    assert torch.equal(found, x.exp())
    assert not flags.requires_grad
    found.sum().backward()
    assert torch.equal(x.grad, x.detach().exp())  # type: ignore[arg-type]
    assert torch.equal(y.grad, torch.zeros(3, dtype=torch.float64))  # type: ignore[arg-type]
    x, y = given()
    found, _ = branch(False, x, y)
    found.sum().backward()
    assert torch.equal(x.grad, y.detach().sin())  # type: ignore[arg-type]
    assert torch.equal(y.grad, (y.cos() * x).detach())  # type: ignore[arg-type]


def test_what_does_not_depend_on_the_arguments_requires_grad_all_the_same() -> None:
    x, _ = given()
    options: Any = {"true_args": (), "false_args": (0,)}
    (made,) = conditional(lambda: (torch.ones(2),), lambda a: (a[:2],), torch.tensor(True), x, **options)
    assert made.requires_grad
    made.add_(1)  # no view of anything
    made.sum().backward()
    assert torch.equal(x.grad, torch.zeros(3, dtype=torch.float64))  # type: ignore[arg-type]
    with torch.no_grad():
        (made,) = conditional(lambda: (torch.ones(2),), lambda a: (a[:2],), torch.tensor(True), x, **options)
    assert not made.requires_grad


def rounds(x: torch.Tensor, y: torch.Tensor, until: float) -> Any:
    return loop(
        lambda i, _, limit: (i < limit,),
        lambda i, a, w: (i + 1, a * w),
        torch.tensor(0.0),
        x,
        y,
        torch.tensor(until),
        carried=2,
        condition_args=(1,),
        body_args=(0,),
    )


def test_a_loop_runs_as_long_as_its_condition_holds() -> None:
    x, y = given()
    count, found = rounds(x, y, 3)
    assert count == 3
    assert torch.equal(found, x * y * y * y)
    found.sum().backward()
    assert torch.allclose(y.grad, 3 * x.detach() * y.detach() ** 2)  # type: ignore[arg-type]


def test_no_round_at_all_gives_new_tensors() -> None:
    x, y = given()
    _, found = rounds(x, y, 0)
    assert found is not x
    assert torch.equal(found, x)
    found.sum().backward()
    assert torch.equal(x.grad, torch.ones(3, dtype=torch.float64))  # type: ignore[arg-type]
    assert torch.equal(y.grad, torch.zeros(3, dtype=torch.float64))  # type: ignore[arg-type]


def body(target: Any, *specs: Any) -> GraphModule:
    graph = Graph()
    places = [graph.placeholder(f"a{i}") for i in range(len(specs))]
    for place, spec in zip(places, specs, strict=True):
        place.meta[SPEC_KEY] = spec
    made = graph.call_function(target, (places[0], places[0]))
    made.meta[SPEC_KEY] = specs[0] if target is not torch.lt else CONDITION
    graph.output((made,))
    found = GraphModule(torch.nn.Module(), graph)
    found.meta[DIALECT_KEY] = "torch"
    return found


VALUE, CONDITION = spec_of(torch.ones(3)), spec_of(torch.tensor(True))


def program(target: Any, bodies: list[GraphModule], specs: list[Any], **options: Any) -> GraphModule:
    graph, root = Graph(), torch.nn.Module()
    places = [graph.placeholder(f"x{i}") for i in range(len(specs))]
    for place, spec in zip(places, specs, strict=True):
        place.meta[SPEC_KEY] = spec
    for number, held in enumerate(bodies):
        root.add_module(f"body_{number}", held)
    held = [graph.get_attr(f"body_{number}") for number in range(len(bodies))]
    called = graph.call_function(target, (*held, *places), options)
    called.meta[SPEC_KEY] = (VALUE,)
    item = graph.call_function(operator.getitem, (called, 0))
    item.meta[SPEC_KEY] = VALUE
    graph.output((item,))
    found = GraphModule(root, graph)
    found.meta[DIALECT_KEY] = "torch"
    return found


def conditional_program(
    on_false: Any = VALUE, false_args: Any = (0,), condition: Any = CONDITION
) -> GraphModule:
    bodies = [body(operator.add, VALUE), body(operator.mul, on_false)]
    return program(conditional, bodies, [condition, VALUE], true_args=(0,), false_args=false_args)


def loop_program(asked: Any = torch.lt, carried: int = 1) -> GraphModule:
    asks = body(asked, spec_of(torch.tensor(1.0)) if asked is torch.lt else VALUE)
    bodies = [asks, body(operator.mul, VALUE)]
    return program(loop, bodies, [VALUE], carried=carried, condition_args=(), body_args=())


def scan_program(inside: Any = None, **options: Any) -> GraphModule:
    """The sums of the rows of a 4 x 3 tensor, so far."""
    made = body(operator.add, VALUE, VALUE if inside is None else inside)
    return program(scan, [made], [VALUE, spec_of(torch.ones(4, 3))], **{"carried": 1, "sliced": 1, **options})


def test_a_scan_runs_its_body_for_each_slice() -> None:
    rows, weight = torch.arange(6.0).reshape(3, 2), torch.tensor([2.0, 3.0], requires_grad=True)
    carried, made = scan(lambda c, row, w: (c + row * w, c * 2), rows[0], rows, weight, carried=1, sliced=1)
    assert torch.equal(carried, rows[0] + rows.sum(0) * weight)
    assert made.shape == (3, 2)
    assert made.requires_grad
    (unused,) = scan(lambda row, w: (row + 1,), rows, weight, carried=0, sliced=1)
    unused.sum().backward()
    assert torch.equal(weight.grad, torch.zeros(2))


def test_calls_that_fit_are_valid() -> None:
    verify(scan_program())
    verify(conditional_program())
    bodies = [body(torch.lt, VALUE), body(operator.mul, VALUE)]
    verify(program(loop, bodies, [VALUE], carried=1, condition_args=(), body_args=()))


def test_branches_may_have_sizes_of_their_own() -> None:
    env = ShapeEnv()
    size = env.create_symbol(None)

    def varying(other: torch.Tensor) -> GraphModule:
        made = conditional_program(on_false=spec_of(other))
        made.meta[SHAPE_ENV_KEY] = env
        body = made.get_submodule("body_1")
        body.graph.find_nodes(op="placeholder")[0].meta[SPEC_KEY] = VALUE
        called = made.graph.find_nodes(op="call_function", target=conditional)[0]
        spec = replace(VALUE, sizes=(size,))
        called.meta[SPEC_KEY], next(iter(called.users)).meta[SPEC_KEY] = (spec,), spec
        return made

    verify(varying(torch.ones(4)))
    for other in (torch.ones(4, dtype=torch.float64), torch.ones(4, 1), torch.ones(8)[::2]):
        with pytest.raises(InvalidGraphError, match="FXI113"):
            verify(varying(other))


@pytest.mark.parametrize(
    "made",
    [
        conditional_program(on_false=spec_of(torch.ones(4))),
        conditional_program(false_args=(1,)),
        conditional_program(false_args=None),
        conditional_program(condition=VALUE),
        loop_program(),
        loop_program(operator.add),
        loop_program(carried=2),
        scan_program(spec_of(torch.ones(4))),
        scan_program(carried=2),
        scan_program(sliced=0),
        scan_program(carried=0),
    ],
)
def test_calls_that_do_not_fit_are_refused(made: GraphModule) -> None:
    with pytest.raises(InvalidGraphError, match="FXI113"):
        verify(made)
