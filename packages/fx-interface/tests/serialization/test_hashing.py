"""The hash ignores names and identities, and sees everything that the compiled code depends on."""

from __future__ import annotations

import operator
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.fx import GraphModule

from fx_interface import (
    GraphBuilder,
    InputKind,
    OutputDecl,
    OutputKind,
    SymSpec,
    TensorSpec,
    UnsupportedProgramError,
    UserLocation,
    canonical_hash,
    set_spec,
)
from fx_interface.serialization.hashing import canonical_form
from fx_interface.source import LocalSource
from fx_interface.symbols import Range, Relation, ShapeEnv, SymbolInfo, symbol

aten = torch.ops.aten


def spec(*sizes: Any, dtype: torch.dtype = torch.float32, **kwargs: Any) -> TensorSpec:
    strides: list[Any] = []
    running: Any = 1
    for size in reversed(sizes):
        strides.append(running)
        running = running * size
    return TensorSpec(tuple(sizes), tuple(reversed(strides)), dtype, torch.device("cpu"), **kwargs)


def example(**changes: Any) -> GraphModule:
    """One small graph; each keyword changes one thing about it."""
    chosen: dict[str, Any] = {
        "names": ("n", "x", "w"),
        "symbols": ("s0", "s1"),
        "hint": 8,
        "low": 2,
        "dtype": torch.float32,
        "kind": InputKind.PARAMETER,
        "alpha": 2.0,
        "target": aten.add.Tensor,
        "grad": False,
        "width": 16,
        "output": OutputDecl(OutputKind.USER),
        "relation": None,
        "source": None,
        "where": None,
        "kwargs": {},
        "dialect": "aten",
        "aliases": (None, None),
    } | changes
    env = ShapeEnv()
    rows, columns = (symbol(name) for name in chosen["symbols"])
    for size in sorted((rows, columns), key=str):
        env.add_symbol(size, SymbolInfo(chosen["hint"], Range(chosen["low"]), chosen["source"]))
    builder = GraphBuilder(chosen["dialect"], env)
    n_name, x_name, w_name = chosen["names"]
    builder.input(SymSpec(rows), InputKind.SYMBOL, name=n_name)
    builder.input(SymSpec(columns), InputKind.SYMBOL, name=n_name)
    first, second = chosen["aliases"]
    shape = spec(rows, columns, dtype=chosen["dtype"], requires_grad=chosen["grad"], alias=first)
    x = builder.input(shape, name=x_name)
    w = builder.input(spec(columns, chosen["width"]), chosen["kind"], name=w_name, source=chosen["source"])
    total = builder.call(
        chosen["target"],
        x,
        x,
        spec=shape,
        where=chosen["where"],
        **({"alpha": chosen["alpha"]} | chosen["kwargs"]),
    )
    product = builder.call(aten.mm.default, total, w, spec=spec(rows, chosen["width"], alias=second))
    view = builder.call(
        aten.view.default, product, [rows * chosen["width"]], spec=spec(rows * chosen["width"])
    )
    if chosen["relation"] is not None:
        env.require(chosen["relation"](rows, columns))
    return builder.build(view, outputs=[chosen["output"]])


@pytest.mark.parametrize(
    "changes",
    [
        {"names": ("a", "b", "c")},
        {"symbols": ("s7", "s3")},
        {"symbols": ("s1", "s0")},
        {"hint": 11},
        {"source": LocalSource("x")},
        {"where": UserLocation("elsewhere.py", 99)},
    ],
    ids=str,
)
def test_does_not_see(changes: dict[str, Any]) -> None:
    assert canonical_form(example(**changes)) == canonical_form(example())
    assert canonical_hash(example(**changes)) == canonical_hash(example())


def test_alias_sets_are_numbered_by_appearance() -> None:
    assert canonical_hash(example(aliases=(4, 4))) == canonical_hash(example(aliases=(9, 9)))
    assert canonical_hash(example(aliases=(4, 4))) != canonical_hash(example(aliases=(4, 5)))
    assert canonical_hash(example(aliases=(4, 4))) != canonical_hash(example())


@pytest.mark.parametrize(
    "changes",
    [
        {"dtype": torch.float64},
        {"low": 3},
        {"hint": None},
        {"kind": InputKind.BUFFER},
        {"alpha": 2},
        {"alpha": True},
        {"alpha": -0.0},
        {"target": aten.sub.Tensor},
        {"grad": True},
        {"width": 17},
        {"output": OutputDecl(OutputKind.SAVED)},
        {"output": OutputDecl(OutputKind.MUTATED_INPUT, 2)},
        {"relation": lambda rows, columns: Relation("==", rows, columns)},
        {"relation": lambda rows, columns: Relation("<", rows, 100)},
        {"dialect": "torch"},
    ],
    ids=lambda changes: re.sub(r" at 0x[0-9a-f]+", "", str(changes)),
)
def test_sees(changes: dict[str, Any]) -> None:
    assert canonical_hash(example(**changes)) != canonical_hash(example())


def test_zero_and_minus_zero_differ() -> None:
    assert canonical_hash(example(alpha=0.0)) != canonical_hash(example(alpha=-0.0))


def one_call(argument: Any, **kwargs: Any) -> GraphModule:
    builder = GraphBuilder("torch")
    x = builder.input(spec(4))
    return builder.build(builder.call(torch.sum, x, argument, spec=spec(4), **kwargs))


ARGUMENTS = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=5),
        st.sampled_from(
            [torch.float32, torch.int64, torch.strided, torch.channels_last, torch.device("cpu"), ...]
        ),
        st.complex_numbers(),
        st.slices(9),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(ARGUMENTS, ARGUMENTS)
def test_equal_exactly_for_equal_arguments(first: Any, second: Any) -> None:
    same = canonical_hash(one_call(first)) == canonical_hash(one_call(second))
    assert same == (written(first) == written(second))
    assert canonical_hash(one_call(first)) == canonical_hash(one_call(first))


def written(value: Any) -> str:
    """Text that tells apart what must be told apart: types, signs of zero; not the order of dicts."""
    if isinstance(value, dict):
        return "{" + ",".join(sorted(f"{key!r}:{written(item)}" for key, item in value.items())) + "}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({','.join(map(written, value))})"
    return f"{type(value).__name__} {value!r}"


def test_the_order_of_dicts_and_keywords_does_not_matter() -> None:
    one = one_call({"a": 1, "b": 2}, keepdim=True, dtype=torch.float32)
    other = one_call({"b": 2, "a": 1}, dtype=torch.float32, keepdim=True)
    assert canonical_hash(one) == canonical_hash(other)


def test_which_operand_is_used_matters() -> None:
    def graph(swap: bool) -> GraphModule:
        builder = GraphBuilder("aten")
        x, y = builder.input(spec(4)), builder.input(spec(4))
        pair = (y, x) if swap else (x, y)
        return builder.build(builder.call(aten.sub.Tensor, *pair, spec=spec(4)))

    assert canonical_hash(graph(False)) != canonical_hash(graph(True))


def repeated(scale: float, name: str = "layer", calls: int = 2) -> GraphModule:
    inner = GraphBuilder("aten")
    body = inner.build(inner.call(aten.mul.Tensor, inner.input(spec(4)), scale, spec=spec(4)))
    outer = GraphBuilder("aten")
    x = outer.input(spec(4))
    held = outer.block(body, name)
    results = [outer.call_block(held, x, spec=(spec(4),)) for _ in range(calls)]
    picked = [outer.call(operator.getitem, result, 0, spec=spec(4)) for result in results]
    return outer.build(*picked)


def test_sub_graphs_count_by_content() -> None:
    assert canonical_hash(repeated(2.0)) == canonical_hash(repeated(2.0, name="other"))
    assert canonical_hash(repeated(2.0)) != canonical_hash(repeated(3.0))
    assert canonical_hash(repeated(2.0)) != canonical_hash(repeated(2.0, calls=3))


@pytest.mark.parametrize("bad", [object(), torch.ones(1), lambda x: x])
def test_what_has_no_stable_form_is_refused(bad: Any) -> None:
    graph = one_call(1)
    (call,) = graph.graph.find_nodes(op="call_function", target=torch.sum)
    call.args = (call.args[0], bad)
    with pytest.raises(UnsupportedProgramError, match="FXI302"):
        canonical_hash(graph)


def test_is_the_same_in_another_process() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import test_hashing as t;"
        "print(t.canonical_hash(t.example()), t.canonical_hash(t.repeated(2.0)))"
    )
    folder = __file__.rsplit("/", 1)[0]
    for seed in ("0", "1"):
        out = subprocess.run(
            [sys.executable, "-c", program, folder],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        )
        assert out.stdout.split() == [canonical_hash(example()), canonical_hash(repeated(2.0))]


def chain(length: int) -> GraphModule:
    env = ShapeEnv()
    builder = GraphBuilder("aten", env)
    size = builder.size(8)
    x = builder.input(spec(size, 16))
    for step in range(length):
        x = builder.call(aten.add.Tensor, x, float(step), spec=spec(size, 16))
    return builder.build(x)


def best_of(function: Callable[[], Any], rounds: int = 7) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def test_a_thousand_nodes_take_no_more_than_30_ms() -> None:
    graph = chain(1000)
    assert best_of(lambda: canonical_hash(graph)) < 0.030


def test_specs_set_later_count() -> None:
    graph = chain(3)
    before = canonical_hash(graph)
    set_spec(next(node for node in graph.graph.nodes if node.op == "call_function"), spec(1))
    assert canonical_hash(graph) != before
