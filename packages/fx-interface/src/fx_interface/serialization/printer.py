"""The readable text form of a graph: one line a node with its spec, then what is known of its symbols.

graph(aten):
  %x: float32[s0, 16] = user input
  %relu: float32[s0, 16] = aten.relu.default(%x)   # model.py:12 in forward
  return user %relu
where s0 in 2.. (s0 = 8 seen)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import GraphModule, Node

from fx_interface.graph import block_of, location_of_node
from fx_interface.regions import region_of
from fx_interface.signature import DIALECT_KEY, SHAPE_ENV_KEY, OutputDecl, OutputKind, signature_of
from fx_interface.symbols import Expr, Range, ShapeEnv
from fx_interface.tensor_spec import SPEC_KEY, ObjectSpec, SymFloatSpec, SymSpec, TensorSpec, ValueSpec


def print_graph(graph_module: GraphModule, *, locations: bool = True) -> str:
    """The graph as text that depends on nothing but the graph; ``locations`` adds the user's lines."""
    env: ShapeEnv | None = graph_module.meta.get(SHAPE_ENV_KEY)
    lines = [f"graph({graph_module.meta.get(DIALECT_KEY, '?')}):", *_body(graph_module, "  ", locations)]
    if env is not None:
        lines.extend(_environment(env))
    return "\n".join(lines) + "\n"


def print_spec(spec: ValueSpec) -> str:
    """A spec as text: ``float32[s0, 16]``, ``int s0 + 1``, ``(float32[2], int64[2])``."""
    if isinstance(spec, TensorSpec):
        flags = ("" if spec.alias is None else f" alias {spec.alias}") + (
            " grad" if spec.requires_grad else ""
        )
        return f"{spec}{flags}"
    if isinstance(spec, SymSpec):
        return f"int {spec.expr}"
    if isinstance(spec, SymFloatSpec):
        return "float"
    if isinstance(spec, ObjectSpec):
        return spec.type_name
    if isinstance(spec, (tuple, list)):
        inner = ", ".join(map(print_spec, spec))
        return f"({inner})" if isinstance(spec, tuple) else f"[{inner}]"
    return "None"


def _body(graph_module: GraphModule, indent: str, locations: bool) -> Iterator[str]:
    signature = signature_of(graph_module)
    kinds = [] if signature is None else [declared.kind.value for declared in signature.inputs]
    inputs = 0
    for node in graph_module.graph.nodes:
        match node.op:
            case "placeholder":
                text = f"{kinds[inputs]} input" if inputs < len(kinds) else "input"
                inputs += 1
            case "output":
                yield f"{indent}return {_results(node, () if signature is None else signature.outputs)}"
                continue
            case "get_attr":
                yield f"{indent}%{node.name} = block:"
                yield from _body(block_of(node, graph_module), indent + "  ", locations)
                continue
            case _:
                text = _call(node)
        spec = print_spec(node.meta[SPEC_KEY]) if SPEC_KEY in node.meta else "?"
        where = location_of_node(node) if locations else None
        yield f"{indent}%{node.name}: {spec} = {text}" + ("" if where is None else f"   # {where}")


def _call(node: Node) -> str:
    if node.op == "call_method":
        receiver, *rest = node.args
        return f"{_argument(receiver)}.{node.target}({_arguments(rest, node.kwargs)})"
    called = region_of(node)
    if called is not None:
        bodies = " ".join(map(_argument, node.args[: called.bodies]))
        return f"{called.name} {bodies}({_arguments(node.args[called.bodies :], node.kwargs)})"
    return f"{_target(node.target)}({_arguments(node.args, node.kwargs)})"


def _target(target: Any) -> str:
    if isinstance(target, (str, OpOverload)):
        return str(target)
    if hasattr(target, "schema") and hasattr(target, "reference"):
        return repr(target)
    module = getattr(target, "__module__", None) or "torch"
    return f"{module.replace('_operator', 'operator')}.{getattr(target, '__name__', target)}"


def _arguments(args: Any, kwargs: Any) -> str:
    named = [f"{key}={_argument(kwargs[key])}" for key in sorted(kwargs)]
    return ", ".join([*map(_argument, args), *named])


def _argument(value: Any) -> str:
    match value:
        case Node():
            return f"%{value.name}"
        case list():
            return f"[{', '.join(map(_argument, value))}]"
        case tuple():
            return f"({', '.join(map(_argument, value))}{',' if len(value) == 1 else ''})"
        case dict():
            return "{" + ", ".join(f"{key!r}: {_argument(item)}" for key, item in value.items()) + "}"
        case slice():
            return f"slice({_argument(value.start)}, {_argument(value.stop)}, {_argument(value.step)})"
        case torch.dtype() | torch.layout() | torch.memory_format():
            return str(value).removeprefix("torch.")
        case torch.device() | Expr():
            return str(value)
    return _target(value) if callable(value) else repr(value)


def _results(node: Node, declared: tuple[OutputDecl, ...]) -> str:
    held = node.args[0]
    results = held if isinstance(held, (tuple, list)) else (held,)
    texts = [_argument(result) for result in results]
    for position, decl in enumerate(declared[: len(texts)]):
        of = "" if decl.input_index is None else f" of input {decl.input_index}"
        plain = decl.kind is OutputKind.USER and not of
        texts[position] = texts[position] if plain else f"{decl.kind.value}{of} {texts[position]}"
    return ", ".join(texts) if texts else "nothing"


def _environment(env: ShapeEnv) -> Iterator[str]:
    for atom, info in env.symbols.items():
        seen = "from data" if info.hint is None else f"{info.hint} seen"
        source = "" if info.source is None else f", {info.source}"
        yield f"where {atom} in {_range(info.range)} ({seen}{source})"
    for guard in env.guards:
        yield f"given {guard.relation}" + ("" if guard.where is None else f"   # {guard.where}")


def _range(span: Range) -> str:
    return f"{'' if span.low is None else span.low}..{'' if span.high is None else span.high}"
