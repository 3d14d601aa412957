"""The pass from dialect ``aten`` to ``prims``: every operator in the table is replaced by its formula's primitives."""

from __future__ import annotations

import logging
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import GraphModule, Node

from fx_interface.dialects.prims import PrimOp
from fx_interface.errors import UnsupportedProgramError
from fx_interface.events import span
from fx_interface.operator_facts.data_errors import is_opaque
from fx_interface.python_runtime.gc_pause import collector_paused
from fx_interface.signature import SHAPE_ENV_KEY
from fx_interface.symbols import Expr, Relation, ShapeEnv
from fx_interface.tensor_spec import SPEC_KEY, SymSpec, TensorSpec, ValueSpec
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.prims import Call, PrimTensor, Trace, tracing
from primtorch_decomps.spec_inference.library import Library, is_without_formulas
from primtorch_decomps.to_prims.emission import Emitter
from primtorch_decomps.to_prims.separation import separated
from primtorch_decomps.to_prims.small_writes import OPERATORS as SMALL_WRITES
from primtorch_decomps.to_prims.small_writes import small_write

logger = logging.getLogger("primtorch_decomps")

PLACEHOLDER = "placeholder"
ATTRIBUTE = "get_attr"
"""Targets of calls that are not calls: a graph's inputs and its sub-graphs."""

_KEPT_META = ("where", "stack")

_MIXING = frozenset(
    {
        torch.ops.aten.index.Tensor,
        torch.ops.aten._unsafe_index.Tensor,
        torch.ops.aten.index_put.default,
        torch.ops.aten._unsafe_index_put.default,
        torch.ops.aten.copy.default,
    }
)
"""Operators whose kernels take tensors with dimensions on more than one device."""


class _Interpreter:
    """One run over a graph: the value of each node, and the trace that primitives are recorded in."""

    def __init__(self, source: GraphModule, table: Mapping[OpOverload, Any], library: Library) -> None:
        self.source = source
        self.table = table
        self.library = library
        env = source.meta.get(SHAPE_ENV_KEY)
        self.env: ShapeEnv = env if env is not None else ShapeEnv()
        self.trace = Trace(self.env, recording=True)
        self.values: dict[Node, Any] = {}
        self.blocks: dict[str, GraphModule] = {}
        self.inputs: list[tuple[Node, Any]] = []
        self._pure: dict[Any, bool] = {}

    def run(self) -> GraphModule:
        outputs: Any = ()
        with tracing(self.trace):
            for node in self.source.graph.nodes:
                if node.op == "output":
                    outputs = self.results(node.args[0])
                else:
                    self.values[node] = self.step(node)
        made = Emitter(self.source, self.trace, self.inputs, self.blocks).graph_module(outputs)
        self.trace.close()
        return made

    def results(self, told: Any) -> Any:
        """The graph's results, those that own their memory in memory of their own."""
        values = self.value(told)
        if not isinstance(values, tuple):
            return values
        placeholders = {call: node for node, call in self.inputs}
        return tuple(separated(told, values, placeholders, self.trace))

    def value(self, arg: Any) -> Any:
        """An argument with nodes replaced by their values."""
        if type(arg) is Node:
            return self.values[arg]
        if type(arg) is list or type(arg) is tuple or isinstance(arg, (list, tuple)):
            items = [self.value(item) for item in arg]
            return tuple(items) if isinstance(arg, tuple) else items
        if isinstance(arg, dict):
            return {name: self.value(item) for name, item in arg.items()}
        if isinstance(arg, slice):
            return slice(self.value(arg.start), self.value(arg.stop), self.value(arg.step))
        return arg

    def step(self, node: Node) -> Any:
        """The value of one node, recorded in the trace."""
        meta = node.meta
        trace = self.trace
        trace.meta = {key: meta[key] for key in _KEPT_META if key in meta}
        if node.op == "placeholder":
            return self.placeholder(node, meta.get(SPEC_KEY))
        if node.op == "get_attr":
            return self.attribute(node)
        if node.op != "call_function":
            raise ValueError(f"dialect aten has no node of kind {node.op}: {node.format_node()}")
        spec = meta.get(SPEC_KEY)
        target = node.target
        if isinstance(spec, SymSpec) and (isinstance(spec.expr, int) or self.is_known(spec.expr)):
            return spec.expr
        args, kwargs = self.value(node.args), self.value(node.kwargs)
        if target is operator.getitem:
            return self.item(args[0], args[1])
        if isinstance(target, OpOverload):
            trace.meta["origin"] = target._name
            trace.operator_start = len(trace.calls)
            if target.namespace == "fx_interface":
                args = self.programs(target, args)
            return self.operator(node, target, args, kwargs, spec)
        pure = isinstance(target, PrimOp)
        return self.symbolic(trace.emit_library(target, args, kwargs, spec, pure=pure), spec)

    def placeholder(self, node: Node, spec: ValueSpec) -> Any:
        call = Call(PLACEHOLDER, (), {}, {}, spec)
        value: Any = PrimTensor.of(spec, call) if isinstance(spec, TensorSpec) else call
        self.inputs.append((node, call))
        return self.symbolic(value, spec)

    def attribute(self, node: Node) -> Any:
        name = str(node.target)
        body = getattr(self.source, name)
        call = Call(ATTRIBUTE, (name,), {}, dict(self.trace.meta), node.meta.get(SPEC_KEY))
        if isinstance(body, GraphModule) and name not in self.blocks:
            self.blocks[name] = _Interpreter(body, self.table, self.library).run()
        self.trace.calls.append(call)
        return call

    def symbolic(self, value: Any, spec: ValueSpec) -> Any:
        """Remember which call defines a symbol; sizes then travel as expressions."""
        if isinstance(spec, SymSpec) and isinstance(spec.expr, Expr) and isinstance(value, Call):
            self.trace.size_calls[spec.expr] = value
            return spec.expr
        return value

    def is_known(self, expr: Expr) -> bool:
        """Whether every symbol of ``expr`` has an input or call that defines it, or a tensor input to read it from."""
        defined = {s for known in self.trace.size_calls for s in known.symbols}
        return all(s in defined or self._is_input_size(s) for s in expr.symbols)

    def _is_input_size(self, wanted: Any) -> bool:
        return any(
            isinstance(size, Expr) and size.as_symbol is wanted
            for _, call in self.inputs
            if isinstance(call.spec, TensorSpec)
            for size in call.spec.sizes
        )

    def item(self, value: Any, index: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return value[index]
        spec = value.spec[index]
        return self.symbolic(
            self.trace.emit_library(operator.getitem, (value, index), {}, spec, pure=True), spec
        )

    def operator(
        self, node: Node, op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], spec: ValueSpec
    ) -> Any:
        """The operator's results by decomposition, or by a library call where there is none."""
        decomposition = self.table.get(op)
        formula: Any = getattr(decomposition, "function", decomposition)
        if _reads(node, getattr(decomposition, "without", ())):
            formula = getattr(decomposition, "whole", None)
        if formula is not None and op not in _MIXING and _lie_apart((*args, *kwargs.values())):
            formula = None  # the kernel refuses them
        written = (
            small_write(node, op, args, self.env) if op in SMALL_WRITES and formula is not None else None
        )
        if written is not None:
            formula, args, kwargs = None, written, {}
        if formula is not None and not is_without_formulas((*args, *_flat(spec))):
            try:
                result = formula(*args, **kwargs)
            except RuleMismatchError as mismatch:
                logger.debug("%s stays a library call: %s", op, mismatch)
                result = NotImplemented
            if result is not NotImplemented:
                settled = self.settle(result, spec)
                if settled is not NotImplemented:
                    return settled
                # Facts about sizes from data that were learned since may make another expression of one size.
                level = logging.DEBUG if self.env.has_data else logging.WARNING
                logger.log(level, "%s: the decomposition gives %s where %s is expected", op, result, spec)
        if spec is None and op._schema.returns:
            spec = self.library.infer(op, _specs(args), _specs(kwargs), self.env)
        made = self.trace.emit_library(op, tuple(args), kwargs, spec, pure=self.is_pure(op))
        return self.symbolic(made, spec)

    def settle(self, result: Any, spec: ValueSpec) -> Any:
        """Results with the strides of their spec; ``NotImplemented`` if sizes or dtype differ from it."""
        if spec is None or result is None:
            return result
        if isinstance(spec, (tuple, list)):
            parts = [self.settle(part, sub) for part, sub in zip(result, spec, strict=True)]
            return NotImplemented if any(p is NotImplemented for p in parts) else type(spec)(parts)
        assert isinstance(spec, TensorSpec), spec
        if result.dtype is not spec.dtype or not self._agree(result.sizes, spec.sizes):
            return NotImplemented
        return self.trace.settle(result, spec.sizes, spec.strides)

    def _agree(self, one: Sequence[Any], other: Sequence[Any]) -> bool:
        if one == other:
            return True
        if len(one) != len(other):
            return False
        known = self.env.known
        return all(a is b or known(Relation("==", a, b)) is True for a, b in zip(one, other, strict=True))

    def programs(self, op: OpOverload, args: Sequence[Any]) -> Sequence[Any]:
        """The arguments of an operator, the programs among them in primitives as well."""
        from fx_interface.attention.operators import PROGRAMS
        from fx_interface.attention.programs import program_of, text_of

        return tuple(
            text_of(_Interpreter(program_of(arg), self.table, self.library).run())
            if declared.name in PROGRAMS
            else arg
            for declared, arg in zip(op._schema.arguments, args, strict=False)
        )

    def is_pure(self, op: OpOverload) -> bool:
        """Whether equal calls may be one, and unused ones dropped: not for random numbers and assertions, nor
        operators that nothing is known of, nor where data tell a size or number, which has a symbol for each call."""
        found = self._pure.get(op)
        if found is None:
            found = bool(op._schema.returns) and torch.Tag.nondeterministic_seeded not in op.tags
            found = self._pure[op] = (
                found and not is_by_data(op) and not op._schema.is_mutable and not is_opaque(op)
            )
        return found


def _lie_apart(args: Sequence[Any]) -> bool:
    """Whether tensors with dimensions lie on more than one device."""
    device = None
    for arg in args:
        for item in arg if isinstance(arg, (list, tuple)) else (arg,):
            if type(item) is PrimTensor and item.sizes:
                if device is None:
                    device = item.device
                elif item.device != device:
                    return True
    return False


def _reads(node: Node, results: Sequence[int]) -> bool:
    """Whether something in the graph reads one of these results of an operator, or all of its results at once."""
    return bool(results) and any(
        user.target is not operator.getitem or user.args[1] in results for user in node.users
    )


def is_by_data(op: OpOverload) -> bool:
    """Whether data tell a size of the result, or the number that it is: indices count only if they are masks, and
    autograd makes places of those."""
    if op is torch.ops.aten.index.Tensor:
        return False
    return torch.Tag.dynamic_output_shape in op.tags or torch.Tag.data_dependent_output in op.tags


def _flat(spec: ValueSpec) -> Sequence[Any]:
    return spec if isinstance(spec, (tuple, list)) else (spec,)


def _specs(value: Any) -> Any:
    if isinstance(value, PrimTensor):
        return value.spec
    if isinstance(value, Mapping):
        return {name: _specs(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_specs(item) for item in value)
    return value


def decompose_with(
    graph_module: GraphModule, table: Mapping[OpOverload, Any], library: Library
) -> GraphModule:
    """``graph_module`` (dialect ``aten``) in dialect ``prims``; the input is left as it is.

    Operators in ``table`` become primitives, equal computations one, unused ones none. Nodes keep the user's line
    (``where``, ``stack``) and name the operator that they come from (``origin``). Each operator's result carries
    eager's strides. Sub-graphs are decomposed once each.
    """
    with collector_paused(), span("decompose", graph=graph_module) as event:
        interpreter = _Interpreter(graph_module, table, library)
        made = interpreter.run()
        event.note(result=made)
    if interpreter.env.expected:
        raise UnsupportedProgramError(
            "DEC105", f"a decomposition relies on {interpreter.env.expected.pop()}, which nothing checks"
        )
    return made


__all__ = ["decompose_with"]
