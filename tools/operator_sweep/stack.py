"""The operator through the stack: traced ahead of time, decomposed, and then interpreted or compiled to kernels.

The interpreter runs the primitives one by one and keeps the contract of a code generator: results and operands of
library calls have the strides that their specs tell. It also holds each library call to its spec, so that a wrong rule
is found where it is. With kernels, what a user's program would run is run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import GraphModule, Interpreter, Node

import fxstack
from aot_autograd import aot_function, compile_joint
from fx_interface import verify
from fx_interface.signature import SHAPE_ENV_KEY
from fx_interface.symbols import Expr, IntLike, ShapeEnv, Symbol, evaluate
from fx_interface.tensor_spec import SPEC_KEY, SymSpec, TensorSpec
from inductor_codegen import compile_graph
from inductor_codegen.cache import ArtifactStore
from primtorch_decomps import LIBRARY, decompose


class SpecMismatchError(AssertionError):
    """A node's result is not what its spec says."""


class Stack:
    """Compiles functions and counts, for each ATen operator, calls that were decomposed and calls that were not.

    ``store`` keeps the kernels that are generated; without one the primitives are interpreted.
    """

    def __init__(self, store: ArtifactStore | None = None) -> None:
        self.store = store
        self._dynamic: dict[tuple[Callable[..., Any], bool], Callable[..., Any]] = {}
        self.decomposed: Counter[str] = Counter()
        self.left: Counter[str] = Counter()
        self.left_complex: Counter[str] = Counter()

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function``, compiled for each kind of arguments that it is called with."""
        return aot_function(function, operators=LIBRARY, forward_compiler=self._compile)

    def captured(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function`` as a user compiles it, in one graph: frame capture knows more of numbers and sizes from data."""
        fast: Callable[..., Any] = fxstack.compile(function, backend=self.backend, fullgraph=True)
        return fast

    def dynamic(self, function: Callable[..., Any], *, fullgraph: bool = True) -> Callable[..., Any]:
        """``function`` as a user compiles it for sizes that vary; the same for all calls of one function."""
        key = function, fullgraph
        if key not in self._dynamic:
            self._dynamic[key] = fxstack.compile(
                function, backend=self.backend, dynamic=True, fullgraph=fullgraph
            )
        return self._dynamic[key]

    def backend(self, captured: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        """The same for what frame capture hands over: for programs that only compile in pieces."""
        return compile_joint(captured, example_inputs, operators=LIBRARY, forward_compiler=self._compile)

    def _compile(self, aten: GraphModule) -> Callable[..., Any]:
        verify(aten, "aten")
        prims = decompose(aten)
        verify(prims, "prims")
        self._count(aten, prims)
        return _Checked(prims).run if self.store is None else compile_graph(prims, store=self.store)

    def _count(self, aten: GraphModule, prims: GraphModule) -> None:
        called = Counter(str(node.target) for node in _operators(aten))
        for node in _operators(prims):
            name = str(node.target)
            (self.left_complex if _is_complex(node) else self.left)[name] += 1
            called[name] -= 1
        self.decomposed.update({name: count for name, count in called.items() if count > 0})


def _operators(module: GraphModule) -> Iterator[Node]:
    return (node for node in module.graph.nodes if isinstance(node.target, OpOverload))


def _is_complex(node: Node) -> bool:
    specs = [node.meta.get(SPEC_KEY), *(operand.meta.get(SPEC_KEY) for operand in node.all_input_nodes)]
    return any(isinstance(spec, TensorSpec) and spec.dtype.is_complex for spec in specs)


class _Checked(Interpreter):
    """Runs a graph of primitives; library calls are given and must return what the specs say.

    ``known``: the sizes that data have told so far.
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.known: dict[Symbol, int] = {}
        self._env: ShapeEnv = module.meta.get(SHAPE_ENV_KEY) or ShapeEnv()

    def run_node(self, node: Node) -> Any:
        if node.op == "output":
            return tuple(self._as_told(part) for part in node.args[0])  # type: ignore[union-attr]
        is_operator = isinstance(node.target, OpOverload)
        if is_operator:
            args = torch.fx.node.map_arg(node.args, self._as_told)
            kwargs = torch.fx.node.map_arg(node.kwargs, self._as_told)
            result = node.target(*args, **kwargs)  # type: ignore[operator]
        else:
            result = super().run_node(node)
        self._check(node, result, node.meta.get(SPEC_KEY), layout=is_operator)
        return result

    def _as_told(self, part: Any) -> Any:
        """The value of a node with the strides of its spec."""
        if not isinstance(part, Node):
            return part
        value, spec = self.env[part], part.meta.get(SPEC_KEY)
        if not isinstance(value, torch.Tensor) or not isinstance(spec, TensorSpec):
            return value
        sizes, strides = self._told(spec.sizes), self._told(spec.strides)
        if value.stride() == strides or not self._has_layout(spec, sizes):
            return value
        for dim, stride in enumerate(strides):
            if stride == 0 and value.shape[dim]:
                value = value.narrow(dim, 0, 1)  # one element stands for the whole dimension
        made = torch.empty_strided(value.shape, strides, dtype=value.dtype, device=value.device).copy_(value)
        return made.expand(sizes)

    def _has_layout(self, spec: TensorSpec, sizes: Sequence[int]) -> bool:
        """Whether strides are told: with sizes from data that turn out to be 0 or 1, some address nothing."""
        return min(sizes, default=2) > 1 or not any(map(self._env.is_from_data, spec.sizes))

    def _told(self, numbers: Sequence[IntLike]) -> tuple[int, ...]:
        return tuple(evaluate(number, self.known) for number in numbers)

    def _learn(self, number: Any, value: int) -> None:
        atom = number.as_symbol if isinstance(number, Expr) else None
        if atom is not None:
            self.known.setdefault(atom, value)

    def _check(self, node: Node, result: Any, spec: Any, *, layout: bool) -> None:
        if isinstance(spec, (tuple, list)):
            for one, told in zip(result, spec, strict=True):
                self._check(node, one, told, layout=layout)
        if isinstance(spec, SymSpec):
            self._learn(spec.expr, result)
        if not isinstance(spec, TensorSpec) or not isinstance(result, torch.Tensor):
            return
        for number, value in zip(spec.sizes, result.shape, strict=True):
            self._learn(number, value)
        sizes = self._told(spec.sizes)
        layout = layout and self._has_layout(spec, sizes)
        found: Any = (tuple(result.shape), result.dtype, result.stride() if layout else ())
        expected: Any = (sizes, spec.dtype, self._told(spec.strides) if layout else ())
        if found != expected:
            raise SpecMismatchError(f"{node.target} gives {found} where its spec says {expected}")
