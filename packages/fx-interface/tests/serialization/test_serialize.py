"""Graphs survive the way through JSON unchanged, and text that is no graph is refused without running anything."""

from __future__ import annotations

import contextlib
import json
import math
import operator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.fx import GraphModule

from fx_interface import (
    CorruptArtifactError,
    GraphBuilder,
    InputKind,
    ObjectSpec,
    OutputDecl,
    OutputKind,
    SymFloatSpec,
    SymSpec,
    TensorSpec,
    UnsupportedProgramError,
    UserLocation,
    canonical_hash,
    from_data,
    from_json,
    print_graph,
    to_data,
    to_json,
    verify,
)
from fx_interface.conformance import CASES, DYNAMIC_CASES
from fx_interface.dialects import prims
from fx_interface.serialization.encoding import decode
from fx_interface.source import (
    AttrSource,
    BuiltinSource,
    ClosureSource,
    DictKeySource,
    GlobalSource,
    ImportedModuleSource,
    InstanceDictSource,
    ItemSource,
    LocalSource,
    SizeSource,
    Source,
    StrideSource,
    TypeSource,
)
from fx_interface.symbols import Relation, floordiv, maximum, mod

CPU = torch.device("cpu")
F32 = TensorSpec((4,), (1,), torch.float32, CPU)


def assert_round_trip(graph: GraphModule) -> GraphModule:
    text = to_json(graph)
    again = from_json(text)
    assert to_json(again) == text
    assert print_graph(again) == print_graph(graph)
    assert canonical_hash(again) == canonical_hash(graph)
    return again


@pytest.mark.parametrize("name", [*CASES, *DYNAMIC_CASES])
def test_torch_graphs_round_trip(name: str) -> None:
    case = {**CASES, **DYNAMIC_CASES}[name]
    again = assert_round_trip(case.graph())
    verify(again, "torch")


def test_the_reread_graph_runs() -> None:
    case = CASES["pointwise"]
    again = from_json(to_json(case.graph()))
    for result, expected in zip(again(*case.inputs()), case.graph()(*case.inputs()), strict=True):
        assert torch.equal(result, expected)


def aten_graph() -> GraphModule:
    builder = GraphBuilder("aten")
    size = builder.size(8, low=3, high=90)
    module = AttrSource(LocalSource("self"), "layers")
    x = builder.input(TensorSpec((size, 4), (4, 1), torch.bfloat16, CPU, True, 3), source=LocalSource("x"))
    w = builder.input(F32, InputKind.PARAMETER, source=AttrSource(ItemSource(module, 0), "weight"))
    where = UserLocation("model.py", 7, "Model.forward")
    shape = TensorSpec((floordiv(size, 2), 8), (8, 1), torch.bfloat16, CPU)
    builder.env.require(Relation("==", mod(size, 2), 0))
    view = builder.call(torch.ops.aten.view.default, x, [floordiv(size, 2), 8], spec=shape, where=where)
    view.meta["stack"] = (UserLocation("train.py", 2), where)
    top = builder.call(torch.ops.aten.topk.default, view, 2, spec=(shape, shape))
    first = builder.call(operator.getitem, top, 0, spec=shape)
    filled = builder.call(
        torch.ops.aten.full.default, [maximum(size, 5)], -math.inf, dtype=torch.float32, device=CPU, spec=F32
    )
    decls = [
        OutputDecl(OutputKind.USER),
        OutputDecl(OutputKind.MUTATED_INPUT, 1),
        OutputDecl(OutputKind.SAVED),
    ]
    return builder.build(first, filled, w, outputs=decls)


def test_everything_an_aten_graph_holds_survives() -> None:
    graph = aten_graph()
    again = assert_round_trip(graph)
    assert again.meta["signature"] == graph.meta["signature"]
    assert again.meta["dialect"] == "aten"
    env, before = again.meta["shape_env"], graph.meta["shape_env"]
    assert env.symbols == before.symbols
    assert env.guards == before.guards
    assert env.replacements == before.replacements
    for node, old in zip(again.graph.nodes, graph.graph.nodes, strict=True):
        assert (node.name, node.op, node.target) == (old.name, old.op, old.target)
        assert {key: node.meta.get(key) for key in ("spec", "where", "stack")} == {
            key: old.meta.get(key) for key in ("spec", "where", "stack")
        }


def test_prims_round_trip() -> None:
    builder = GraphBuilder("prims")
    x = builder.input(F32)
    y = builder.call(prims.convert_dtype, x, torch.float64, spec=TensorSpec((4,), (1,), torch.float64, CPU))
    total = builder.call(prims.sum, y, [0], spec=TensorSpec((), (), torch.float64, CPU))
    again = assert_round_trip(builder.build(total))
    verify(again)
    assert again(torch.ones(4))[0].item() == 4.0


def test_sub_graphs_round_trip_as_one_body() -> None:
    inner = GraphBuilder("aten")
    body = inner.build(inner.call(torch.ops.aten.neg.default, inner.input(F32), spec=F32))
    outer = GraphBuilder("aten")
    x, held = outer.input(F32), outer.block(body)
    for _ in range(2):
        x = outer.call(operator.getitem, outer.call_block(held, x, spec=(F32,)), 0, spec=F32)
    again = assert_round_trip(outer.build(x))
    verify(again)
    assert len(to_data(again)["blocks"]) == 1
    assert again(torch.ones(4))[0].tolist() == [1.0] * 4


ARGUMENTS = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.complex_numbers(),
        st.text(max_size=5),
        st.slices(9),
        st.sampled_from(
            [
                torch.bool,
                torch.bfloat16,
                torch.float8_e4m3fn,
                torch.strided,
                torch.sparse_coo,
                torch.channels_last,
                torch.device("cuda", 1),
                range(1, 9, 2),
                ...,
                int,
                torch.Tensor,
                torch.add,
                F.gelu,
            ]
        ),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), inner, max_size=3),
    ),
    max_leaves=8,
)


def call_with(argument: Any) -> GraphModule:
    builder = GraphBuilder("torch")
    graph = builder.build(builder.call(torch.sum, builder.input(F32), 0, spec=F32))
    (call,) = graph.graph.find_nodes(op="call_function", target=torch.sum)
    call.args = (call.args[0], argument)
    return graph


@settings(max_examples=400, deadline=None)
@given(ARGUMENTS)
def test_arguments_round_trip(argument: Any) -> None:
    graph = call_with(argument)
    text = to_json(graph)
    data = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    (node,) = [n for n in data["nodes"] if n["op"] == "call_function"]
    again = decode(node["args"][1])
    assert written(again) == written(argument)


def written(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({','.join(map(written, value))})"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!r}:{written(item)}" for key, item in value.items()) + "}"
    return f"{type(value).__name__} {value!r}"


SOURCES: list[Source] = [
    LocalSource("x"),
    GlobalSource("g"),
    ClosureSource("c"),
    BuiltinSource("len"),
    ImportedModuleSource("torch.nn"),
    AttrSource(LocalSource("x"), "weight"),
    InstanceDictSource(LocalSource("x")),
    ItemSource(LocalSource("x"), ("a", 1.5, None)),
    DictKeySource(LocalSource("x"), 2),
    TypeSource(ItemSource(LocalSource("x"), -1)),
    SizeSource(LocalSource("x"), 0),
    StrideSource(LocalSource("x"), 1),
]


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_sources_round_trip(source: Source) -> None:
    builder = GraphBuilder("torch")
    graph = builder.build(builder.input(F32, source=source))
    assert from_json(to_json(graph)).meta["signature"].inputs[0].source == source


@pytest.mark.parametrize(
    "spec",
    [
        None,
        SymSpec(4),
        SymFloatSpec(),
        SymFloatSpec(math.inf),
        ObjectSpec("Generator"),
        (F32, None, SymSpec(2)),
        [F32],
        TensorSpec((), (), torch.complex64, torch.device("cuda", 0)),
    ],
    ids=str,
)
def test_specs_round_trip(spec: Any) -> None:
    builder = GraphBuilder("torch")
    graph = builder.build(builder.call(torch.sum, builder.input(F32), spec=spec))
    nodes = list(from_json(to_json(graph)).graph.nodes)
    assert nodes[1].meta["spec"] == spec


@pytest.mark.parametrize("bad", [object(), torch.ones(2), lambda: 0, {1: object()}])
def test_what_has_no_stored_form_is_refused(bad: Any) -> None:
    with pytest.raises(UnsupportedProgramError, match=r"FXI302.*node sum_1"):
        to_json(call_with(bad))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "{}",
        '{"format": "fx-interface graph"}',
        '{"format": "fx-interface graph", "version": [9, 9]}',
    ],
)
def test_text_that_is_no_graph_is_refused(text: str) -> None:
    with pytest.raises(CorruptArtifactError, match="FXI301"):
        from_json(text)


@pytest.mark.parametrize(
    "target",
    [
        "fn:os.system",
        "fn:torch.load",
        "fn:torch.compile",
        "fn:operator.call",
        "fn:builtins.eval",
        "fn:torch.nonexistent",
        "op:aten.add",
        "op:aten.add.Nonsense",
        "op:nowhere.add.Tensor",
        "prim:nonsense",
        "packet:aten.nonsense",
        "nonsense",
    ],
)
def test_foreign_targets_are_refused(target: str) -> None:
    data = to_data(aten_graph())
    for node in data["nodes"]:
        if node["op"] == "call_function":
            node["target"] = target
    with pytest.raises(CorruptArtifactError, match="FXI301"):
        from_data(data)


def test_json_that_is_too_deep_is_refused() -> None:
    with pytest.raises(CorruptArtifactError, match="FXI301"):
        from_json("[" * 200_000)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_data_raise_nothing_but_corrupt_artifact(data: st.DataObject) -> None:
    stored = json.loads(to_json(aten_graph()))
    path = stored
    for _ in range(data.draw(st.integers(1, 6))):
        keys = list(path) if isinstance(path, dict) else list(range(len(path)))
        if not keys:
            break
        key = data.draw(st.sampled_from(keys))
        if isinstance(path[key], (dict, list)) and path[key] and data.draw(st.booleans()):
            path = path[key]
            continue
        path[key] = data.draw(
            st.sampled_from([None, -1, 10**9, "nonsense", [], {}, {"node": 99}, [["x"]], 1.5])
        )
        break
    with contextlib.suppress(CorruptArtifactError):
        from_data(stored)


@pytest.mark.parametrize("operation, field", [("placeholder", "target"), ("call_function", "kwargs")])
def test_names_cannot_smuggle_code(operation: str, field: str) -> None:
    code = "x=print(99)"
    data = to_data(call_with(1))
    (node,) = [node for node in data["nodes"] if node["op"] == operation]
    node[field] = code if field == "target" else {code: 1}
    with pytest.raises(CorruptArtifactError, match="is no name"):
        from_data(data)


def test_a_node_cannot_refer_to_itself_or_ahead() -> None:
    data = to_data(call_with(1))
    for number in (1, 2, -1):
        data["nodes"][1]["args"] = [{"node": number}]
        with pytest.raises(CorruptArtifactError):
            from_data(data)
