"""Graphs as JSON text, without pickle: reading one never imports, unpickles or runs anything that it names.

Kept: nodes with names, specs, user lines; dialect, signature, sources, shape environment; sub-graphs. Other ``meta``
entries are not kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from keyword import iskeyword
from typing import Any, cast

import torch
from torch.fx import Graph, GraphModule, Node

from fx_interface.backend import INTERFACE_VERSION
from fx_interface.errors import CorruptArtifactError, UnsupportedProgramError
from fx_interface.graph import LOCATION_KEY, STACK_KEY, block_of, location_of_node, set_spec
from fx_interface.serialization.encoding import (
    corrupt,
    decode,
    decode_expr,
    decode_location,
    decode_source,
    decode_spec,
    encode,
    encode_expr,
    encode_location,
    encode_source,
    encode_spec,
)
from fx_interface.serialization.target_names import target_name, target_of
from fx_interface.signature import (
    DIALECT_KEY,
    SHAPE_ENV_KEY,
    SIGNATURE_KEY,
    InputDecl,
    InputKind,
    OutputDecl,
    OutputKind,
    Signature,
    signature_of,
)
from fx_interface.symbols import Range, Relation, ShapeEnv, SymbolInfo, symbol
from fx_interface.tensor_spec import SPEC_KEY

FORMAT = "fx-interface graph"
"""The value under ``"format"`` in every stored graph."""


def to_json(graph_module: GraphModule) -> str:
    """The graph as one line of JSON text. UnsupportedProgramError FXI302 where something has no stored form."""
    return json.dumps(to_data(graph_module), allow_nan=False, separators=(",", ":"))


def from_json(text: str | bytes) -> GraphModule:
    """The graph that ``to_json`` wrote. CorruptArtifactError FXI301 for text that is no such graph."""
    try:
        data = json.loads(text)
    except (RecursionError, ValueError) as error:
        raise CorruptArtifactError("FXI301", f"a stored graph is not JSON: {error}") from error
    return from_data(data)


def to_data(graph_module: GraphModule) -> dict[str, Any]:
    """The graph as JSON data (dicts, lists, strings, numbers), to embed in a larger artifact."""
    return {"format": FORMAT, "version": list(INTERFACE_VERSION), **_module_to_data(graph_module)}


def from_data(data: Any) -> GraphModule:
    """The graph that ``to_data`` wrote. CorruptArtifactError FXI301 for data that are no such graph."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        corrupt("the data are no stored graph")
    if data.get("version") != list(INTERFACE_VERSION):
        corrupt(
            f"it was written by version {data.get('version')} of the interface; this is {list(INTERFACE_VERSION)}"
        )
    try:
        return _module_from_data(data)
    except CorruptArtifactError:
        raise
    except Exception as error:  # the data are foreign: whatever trips over them, they are corrupt
        raise CorruptArtifactError("FXI301", f"a stored graph cannot be read: {error!r}") from error


def _module_to_data(graph_module: GraphModule) -> dict[str, Any]:
    numbers: dict[Node, int] = {}
    blocks: dict[str, GraphModule] = {}
    nodes: list[dict[str, Any]] = []
    for node in graph_module.graph.nodes:
        nodes.append(_node_to_data(node, numbers))
        numbers[node] = len(numbers)
        if node.op == "get_attr":
            blocks[str(node.target)] = block_of(node, graph_module)
    signature = signature_of(graph_module)
    env = graph_module.meta.get(SHAPE_ENV_KEY)
    return {
        "dialect": graph_module.meta.get(DIALECT_KEY),
        "nodes": nodes,
        "signature": None if signature is None else signature_to_data(signature),
        "shape_env": None if env is None else shape_env_to_data(env),
        "blocks": {name: _module_to_data(body) for name, body in blocks.items()},
    }


def _node_to_data(node: Node, numbers: Mapping[Node, int]) -> dict[str, Any]:
    target = target_name(node.target) if node.op == "call_function" else node.target
    data: dict[str, Any] = {"op": node.op, "name": node.name, "target": target}
    try:
        if node.args:
            data["args"] = [encode(arg, numbers.__getitem__) for arg in node.args]
        if node.kwargs:
            data["kwargs"] = {key: encode(value, numbers.__getitem__) for key, value in node.kwargs.items()}
    except UnsupportedProgramError as error:
        raise UnsupportedProgramError(
            error.code, f"node {node.name}: {error.what}", where=location_of_node(node)
        ) from None
    if SPEC_KEY in node.meta:
        data["spec"] = encode_spec(node.meta[SPEC_KEY])
    if LOCATION_KEY in node.meta:
        data["where"] = encode_location(location_of_node(node))
    if STACK_KEY in node.meta:
        data["stack"] = [encode_location(where) for where in node.meta[STACK_KEY]]
    return data


def _module_from_data(data: Mapping[str, Any]) -> GraphModule:
    root = torch.nn.Module()
    for name, block in data["blocks"].items():
        root.add_module(name, _module_from_data(block))
    graph = Graph()
    nodes: list[Node] = []
    for entry in data["nodes"]:
        nodes.append(_node_from_data(graph, entry, nodes))
    graph.lint()
    graph_module = GraphModule(root, graph)
    graph_module.meta[DIALECT_KEY] = data["dialect"]
    if data["signature"] is not None:
        graph_module.meta[SIGNATURE_KEY] = signature_from_data(data["signature"])
    if data["shape_env"] is not None:
        graph_module.meta[SHAPE_ENV_KEY] = shape_env_from_data(data["shape_env"])
    return graph_module


def _node_from_data(graph: Graph, data: Mapping[str, Any], nodes: list[Node]) -> Node:
    def earlier(number: int) -> Node:
        return nodes[number] if number >= 0 else corrupt(f"there is no node number {number}")

    operation = data["op"]
    target = target_of(data["target"]) if operation == "call_function" else _plain_name(data["target"])
    args = tuple(decode(arg, earlier) for arg in data.get("args", ()))
    kwargs = {_plain_name(key): decode(value, earlier) for key, value in data.get("kwargs", {}).items()}
    node = graph.create_node(operation, target, args, kwargs, name=data["name"])
    if node.name != data["name"]:
        corrupt(f"two nodes are named {data['name']}")
    if "spec" in data:
        set_spec(node, decode_spec(data["spec"]), decode_location(data.get("where")))
    elif "where" in data:
        node.meta[LOCATION_KEY] = decode_location(data["where"])
    if "stack" in data:
        node.meta[STACK_KEY] = tuple(decode_location(where) for where in data["stack"])
    return node


def _plain_name(name: Any) -> str:
    """``name``, which torch.fx will write into Python code, if it can be nothing but a name there."""
    if not isinstance(name, str) or not name.isidentifier() or iskeyword(name):
        corrupt(f"{name!r} is no name")
    return name


def signature_to_data(signature: Signature) -> dict[str, Any]:
    """A signature as JSON data."""
    return {
        "inputs": [
            [decl.name, decl.kind.value, encode_spec(decl.spec), encode_source(decl.source)]
            for decl in signature.inputs
        ],
        "outputs": [[decl.kind.value, decl.input_index] for decl in signature.outputs],
    }


def signature_from_data(data: Mapping[str, Any]) -> Signature:
    """The signature that ``signature_to_data`` wrote."""
    return Signature(
        tuple(
            InputDecl(name, InputKind(kind), decode_spec(spec), decode_source(source))
            for name, kind, spec, source in data["inputs"]
        ),
        tuple(OutputDecl(OutputKind(kind), index) for kind, index in data["outputs"]),
    )


def shape_env_to_data(env: ShapeEnv) -> dict[str, Any]:
    """A shape environment as JSON data."""
    return {
        "symbols": [
            [atom.name, info.hint, info.range.low, info.range.high, encode_source(info.source)]
            for atom, info in env.symbols.items()
        ],
        "guards": [
            [guard.relation.op, *relation_sides(guard.relation), encode_location(guard.where)]
            for guard in env.guards
        ],
    }


def relation_sides(relation: Relation) -> tuple[Any, Any]:
    """Both sides of a relation as JSON data."""
    return encode_expr(relation.lhs), encode_expr(relation.rhs)


def shape_env_from_data(data: Mapping[str, Any]) -> ShapeEnv:
    """The shape environment that ``shape_env_to_data`` wrote; what its equalities imply is worked out again."""
    env = ShapeEnv()
    for name, hint, low, high, source in data["symbols"]:
        made = symbol(name)
        env.add_symbol(made, SymbolInfo(hint, Range(low, high), decode_source(source)))
    for op, lhs, rhs, where in data["guards"]:
        if op not in ("==", "!=", "<", "<="):
            corrupt(f"{op!r} is no relation")
        env.location = decode_location(where)
        env.require(Relation(cast(Any, op), decode_expr(lhs), decode_expr(rhs)))
    env.location = None
    return env
