"""What a record keeps of an event: plain data, made at once, with nothing of the program's own in it but text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import fx_guards
from dynamo_capture.foundation.texts.users_words import in_users_words, line_of_user
from fx_guards.tree import GuardSet, TreeNode
from fx_interface import UserLocation, print_graph
from fx_interface.graph import location_of_node
from fx_interface.serialization.printer import print_spec
from fx_interface.signature import DIALECT_KEY
from fx_interface.tensor_spec import SPEC_KEY
from fxstack.observing.subjects import expected_by, guard_text, launches_of

Entry = dict[str, Any]
_ROUNDS = 5
"""So many times a check is timed; the least counts."""


def place(where: UserLocation | None) -> list[Any] | None:
    """A line of the user's as data: file, line, function."""
    where = line_of_user(where)
    return None if where is None else [where.filename, where.line, where.function]


def graph_entry(graph: Any, role: str) -> Entry:
    """A graph as text, and its nodes as a picture needs them: name, label, spec, the numbers of inputs, the line."""
    numbers = {node: number for number, node in enumerate(graph.graph.nodes)}
    nodes = [
        [
            node.name,
            label_of_node(node),
            print_spec(node.meta[SPEC_KEY]) if SPEC_KEY in node.meta else "",
            [numbers[given] for given in node.all_input_nodes],
            place(location_of_node(node)),
        ]
        for node in graph.graph.nodes
    ]
    return {
        "dialect": graph.meta.get(DIALECT_KEY, "?"),
        "role": role,
        "text": print_graph(graph),
        "nodes": nodes,
    }


def label_of_node(node: Any) -> str:
    """What a node does, in a word or two: ``input``, ``.relu``, ``matmul``."""
    match node.op:
        case "placeholder":
            return "input"
        case "output":
            return "return"
        case "get_attr":
            return "block"
        case "call_method":
            return f".{node.target}"
    target = node.target
    return str(getattr(target, "_overloadpacket", None) or getattr(target, "__name__", None) or target)


def break_entry(report: Any) -> Entry:
    """A graph break: what was met, why that ends a graph, the way out."""
    return {
        "code": report.code,
        "what": report.what,
        "where": place(report.where),
        "why": report.kind.why,
        "advice": report.kind.advice,
        "resumed": report.resumed,
    }


def cause_entry(cause: Any) -> Entry:
    """A guard that failed, so that code was compiled again."""
    return {
        "expression": in_users_words(cause.expression),
        "reason": in_users_words(cause.reason),
        "old": None if cause.old is None else in_users_words(cause.old),
        "new": None if cause.new is None else in_users_words(cause.new),
        "where": place(cause.where),
        "times": cause.count,
    }


def launch_entries(program: Any, graph: Any) -> Iterator[Entry]:
    """The kernels that a compiled graph runs."""
    for launch in launches_of(program, graph):
        yield {
            "kernel": launch.kernel,
            "label": launch.label,
            "loops": launch.loops,
            "read": launch.read,
            "written": launch.written,
            "origins": list(launch.origins),
            "where": place(launch.where),
        }


def guards_entry(code: Any, replacement: Any, scope: Any) -> Entry:
    """What a version relies on, as a tree of what is read, and what checking it costs for this call's values."""
    guards = GuardSet(replacement.guards)
    trees = []
    for root in guards.roots:
        tree = _tree(root)
        own = [guard for node in root.walk() for _, guard in node.guards]
        alone = fx_guards.build(own, varnames=code.co_varnames, freevars=code.co_freevars)
        trees.append({**tree, "count": len(own), "nanoseconds": _least(alone, scope)})
    return {
        "count": len(replacement.guards),
        "nanoseconds": _least(replacement.evaluator, scope),
        "roots": trees,
        "relations": [
            [guard_text(guard), place(getattr(guard, "where", None))] for _, guard in guards.relations
        ],
    }


def _tree(node: TreeNode) -> Entry:
    return {
        "reads": in_users_words(node.source.expression),
        "guards": [[expected_by(guard), place(getattr(guard, "where", None))] for _, guard in node.guards],
        "children": list(map(_tree, node.children)),
    }


def _least(evaluator: Any, scope: Any) -> int:
    """The shortest time of a few checks, in nanoseconds."""
    found = []
    for _ in range(_ROUNDS):
        begin = time.perf_counter_ns()
        evaluator.check(scope)
        found.append(time.perf_counter_ns() - begin)
    return min(found)
