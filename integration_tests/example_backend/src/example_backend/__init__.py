"""A code generator in one file: a graph of the ``torch`` dialect becomes one straight-line Python function.

It knows nothing of the stack but ``fx_interface``. Install it, and
``fxstack.compile(model, backend="example")`` uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from fx_interface import INTERFACE_VERSION


class _Reference(str):
    """A variable's name, printed without quotes."""

    def __repr__(self) -> str:
        return str(self)


class StraightLine:
    """The backend. ``sources`` keeps the generated text of every graph, for whoever wants to read it."""

    interface_version = INTERFACE_VERSION

    def __init__(self) -> None:
        self.sources: list[str] = []

    def __call__(self, graph_module: GraphModule, example_inputs: Sequence[Any]) -> Any:
        """Generate, compile and return the function for ``graph_module``."""
        constants: dict[str, Any] = {}
        names: dict[Node, _Reference] = {}
        inputs: list[str] = []
        body: list[str] = []
        for position, node in enumerate(graph_module.graph.nodes):
            names[node] = _Reference(f"v{position}")
            if node.op == "placeholder":
                inputs.append(names[node])
            elif node.op == "output":
                body.append(f"return {self._value(node.args[0], names, constants)}")
            else:
                body.append(f"{names[node]} = {self._call(graph_module, node, names, constants)}")
        text = f"def compiled({', '.join(inputs)}):\n" + "\n".join(f"    {line}" for line in body)
        self.sources.append(text)
        exec(compile(text, "<example backend>", "exec"), constants)
        return constants["compiled"]

    def _call(
        self, graph_module: GraphModule, node: Node, names: dict[Node, _Reference], constants: dict[str, Any]
    ) -> str:
        arguments = [self._value(arg, names, constants) for arg in node.args]
        keywords = [f"{key}={self._value(value, names, constants)}" for key, value in node.kwargs.items()]
        match node.op:
            case "call_function":
                return f"{self._constant(node.target, constants)}({', '.join(arguments + keywords)})"
            case "call_method":
                return f"{arguments[0]}.{node.target}({', '.join(arguments[1:] + keywords)})"
            case "get_attr":
                return self._constant(graph_module.get_submodule(str(node.target)), constants)
        raise NotImplementedError(f"node kind {node.op!r}")

    def _value(self, value: Any, names: dict[Node, _Reference], constants: dict[str, Any]) -> str:
        replaced = map_arg(value, names.__getitem__)
        if isinstance(replaced, (tuple, list)):
            items = ", ".join(self._value(item, names, constants) for item in replaced)
            return f"[{items}]" if isinstance(replaced, list) else f"({items},)" if items else "()"
        if isinstance(replaced, slice):
            bounds = (replaced.start, replaced.stop, replaced.step)
            return f"slice({', '.join(self._value(bound, names, constants) for bound in bounds)})"
        if isinstance(replaced, _Reference) or replaced is None or type(replaced) in (bool, int, str):
            return repr(replaced)
        return self._constant(replaced, constants)

    def _constant(self, value: Any, constants: dict[str, Any]) -> str:
        name = f"c{len(constants)}"
        constants[name] = value
        return name


backend = StraightLine()
