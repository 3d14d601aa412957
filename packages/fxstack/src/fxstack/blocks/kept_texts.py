"""The kept text of a backward (``programs.usual_backward``) for many blocks, from those of two short graphs.

A stored graph knows its nodes by their places, so that its text repeats as programs do. Nodes and inputs get names by
their places, and no call stacks.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from fxstack.blocks.extrapolation import extended

_OBJECT = "object"
_QUICKLY = 1
_NODE = ("node",)
_APART = ("op", "name", "target", "args", "kwargs", "stack")


def longer_text(few: bytes, many: bytes, more: int) -> bytes:
    """The text for ``more`` blocks more than ``few`` has, where ``many`` has one more. NotRegular."""
    nodes, output, inputs, outputs, rest = extended(_record(few), _record(many), more)
    signature = {
        "inputs": [[f"n{n}", *json.loads(told)] for n, told in enumerate(inputs)],
        "outputs": _data(outputs),
    }
    written = ",".join(_node_texts((*nodes, output)))
    text = f'{rest[:-1]},"signature":{_text(signature)},"nodes":[{written}]}}'
    return zlib.compress(text.encode(), _QUICKLY)


def _record(text: bytes) -> Any:
    """A text without names: its nodes, the last of which stands apart, as what it has got a round of is inside of it,
    the inputs and outputs of its signature, and what else it has. What no integer of can grow is text."""
    data = json.loads(zlib.decompress(text))
    *nodes, output = [_node(node) for node in data.pop("nodes")]
    signature = data.pop("signature")
    inputs = tuple([_text(told) for _, *told in signature["inputs"]])
    return tuple(nodes), output, inputs, _tuples(signature["outputs"]), _text(data)


def _node(node: Mapping[str, Any]) -> tuple[Any, ...]:
    target = None if node["op"] == "placeholder" else _text(node["target"])
    others = _text({key: value for key, value in node.items() if key not in _APART})
    return node["op"], target, _tuples(node.get("args", [])), _tuples(node.get("kwargs", {})), others


def _node_texts(nodes: tuple[tuple[Any, ...], ...]) -> Iterator[str]:
    for place, (op, target, args, kwargs, others) in enumerate(nodes):
        name = f'"n{place}"'
        called = name if target is None else target
        given = f'"args":{_written(args)}'
        if kwargs[1]:
            given += f',"kwargs":{_written(kwargs)}'
        behind = f",{others[1:]}" if len(others) > 2 else "}"
        yield f'{{"op":"{op}","name":{name},"target":{called},{given}{behind}'


def _text(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))


def _tuples(data: Any) -> Any:
    """JSON data as tuples; an object is one of three parts."""
    if isinstance(data, list):
        return tuple([_tuples(item) for item in data])
    if isinstance(data, dict):
        return (_OBJECT, tuple(data), tuple([_tuples(item) for item in data.values()]))
    return data


def _data(record: Any) -> Any:
    """What ``_tuples`` was given."""
    return json.loads(_written(record))


def _written(record: Any) -> str:
    """JSON text of what ``_tuples`` gave."""
    if type(record) is int:
        return str(record)
    if not isinstance(record, tuple):
        return _text(record)
    if len(record) == 3 and record[0] == _OBJECT and isinstance(record[1], tuple):
        if record[1] == _NODE:  # most are
            return f'{{"node":{record[2][0]}}}'
        pairs = [f"{_text(key)}:{_written(item)}" for key, item in zip(record[1], record[2], strict=True)]
        return f"{{{','.join(pairs)}}}"
    return f"[{','.join([_written(item) for item in record])}]"
