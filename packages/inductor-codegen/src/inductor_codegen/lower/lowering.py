"""From an FX graph in dialect ``prims`` to lowered values: one pass over the nodes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import GraphModule, Node

from fx_interface.dialects.prims import PrimKind, PrimOp
from fx_interface.errors import UserLocation
from fx_interface.graph import (
    SIZE_ARITHMETIC,
    block_of,
    call_block,
    location_of_node,
    size_value,
    spec_of_node,
)
from fx_interface.operator_facts.collectives import reads_later
from fx_interface.signature import SHAPE_ENV_KEY, InputKind, OutputDecl, OutputKind, signature_of
from fx_interface.symbols import Expr, ShapeEnv, Symbol
from fx_interface.tensor_spec import SymFloatSpec, SymSpec, TensorSpec, contiguous_strides
from inductor_codegen.errors import unsupported
from inductor_codegen.ir.program import Born, Buffer, FloatInput, SymbolInput, UnusedInput
from inductor_codegen.lower import formulas, joining
from inductor_codegen.lower.chosen_layouts import AS_SPECS_SAY, Layouts
from inductor_codegen.lower.devices import Twins
from inductor_codegen.lower.images.convolutions import WEIGHTS
from inductor_codegen.lower.images.depthwise import (
    DepthwiseConvolutions,
    channels_last,
    depthwise_convolution,
)
from inductor_codegen.lower.inner_layouts import arrange_inner_values
from inductor_codegen.lower.products import FACTORS, PaddedProducts, PaddedResult
from inductor_codegen.lower.results import nested, result_name, results_of, used_results
from inductor_codegen.lower.rewrites.parts_in_place import part_by_part, place_parts
from inductor_codegen.lower.rewrites.products_by_rows import is_given_away, product_by_rows
from inductor_codegen.lower.rewrites.short_reductions import written_out
from inductor_codegen.lower.storage import Values, operand_of, seen_through
from inductor_codegen.lower.values import (
    STRIDED_DTYPES,
    ExternalCall,
    Lowered,
    LoweredOutput,
    Number,
    Operand,
    RuntimeFloat,
    Value,
)
from inductor_codegen.lower.views import Sizes

_PASSING = (InputKind.SAVED, InputKind.TANGENT)
"""Inputs that a backward may be given for good: what the forward kept, and gradients that were made for the call."""


def lower(graph_module: GraphModule, layouts: Layouts = AS_SPECS_SAY) -> tuple[Lowered, ShapeEnv]:
    """The values of a graph in dialect ``prims``, and the shape environment that its sizes belong to.

    ``layouts``: where values lie otherwise than their specs say. Raises UnsupportedProgramError (codes IND1xx) for what
    has no place in a program.
    """
    env = graph_module.meta.get(SHAPE_ENV_KEY) or ShapeEnv()
    lowering = Lowering(env, layouts)
    lowering.run(graph_module)
    lowered = lowering.close()
    place_parts(lowered, env)
    arrange_inner_values(lowered, env)
    return lowered, env


class Lowering(Values):
    """One pass over a graph's nodes."""

    def __init__(self, env: ShapeEnv, layouts: Layouts = AS_SPECS_SAY) -> None:
        super().__init__(env)
        self._layouts = layouts
        self._products = PaddedProducts(self)
        self._twins = Twins(self)
        self._symbols: set[Symbol] = set()

    def run(self, module: GraphModule) -> None:
        """Lower placeholders, nodes and outputs of the outermost graph."""
        known: dict[Node, Any] = {}
        signature = signature_of(module)
        declared = iter(() if signature is None else signature.inputs)
        for node in module.graph.nodes:
            if node.op == "placeholder":
                known[node] = self._input(node)
                given, told = self.result.inputs[-1], next(declared, None)
                if told is not None and told.kind in _PASSING and isinstance(given, Buffer):
                    self.result.passing.add(given.name)
            elif node.op == "output":
                self._outputs(node, known)
                self._mutations(() if signature is None else signature.outputs)
            elif node.op == "call_function":
                known[node] = self._call(node, known, module)

    def close(self) -> Lowered:
        """What was made, when nothing is lowered any more. What adds values to it is let go of: it refers to this
        object, so that all values would wait for Python's search for cycles."""
        del self._products, self._twins
        return self.result

    def _mutations(self, declared: Sequence[OutputDecl]) -> None:
        for position, told in enumerate(declared):
            if told.kind is OutputKind.MUTATED_INPUT and told.input_index is not None:
                given = self.result.inputs[told.input_index]
                if isinstance(given, Buffer):
                    self.result.mutated[position] = given

    def _inline(self, body: GraphModule, args: Sequence[Any]) -> Any:
        known: dict[Node, Any] = {}
        pending = iter(args)
        for node in body.graph.nodes:
            if node.op == "placeholder":
                known[node] = next(pending)
            elif node.op == "output":
                return tuple(self._argument(arg, known) for arg in node.args[0])
            elif node.op == "call_function":
                known[node] = self._call(node, known, body)
        return ()

    def _input(self, node: Node) -> Any:
        spec = spec_of_node(node)
        inputs = self.result.inputs
        match spec:
            case TensorSpec():
                value = self.add_value(node.name, self._laid_out(spec, node), None, location_of_node(node))
                inputs.append(Buffer(value.name, value.sizes, value.strides, value.dtype, value.device))
                return operand_of(value)
            case SymSpec(expr):
                symbol = expr.as_symbol if isinstance(expr, Expr) else None
                inputs.append(UnusedInput() if symbol is None else SymbolInput(symbol))
                if symbol is not None:
                    self._symbols.add(symbol)
                return Number(self.env.simplify(expr))
            case SymFloatSpec():
                inputs.append(FloatInput(node.name))
                return RuntimeFloat(node.name)
        inputs.append(UnusedInput())
        return None

    def _call(self, node: Node, known: dict[Node, Any], module: GraphModule) -> Any:
        target = node.target
        if isinstance(target, PrimOp):
            return self._primitive(target, node, known)
        if target is operator.getitem:
            items, key = node.args
            return known[items][key]  # type: ignore[index]
        spec = spec_of_node(node)
        if target in _NUMBERS:
            return self._number_call(node, known)
        if isinstance(spec, SymSpec):
            return Number(self.env.simplify(spec.expr))
        if isinstance(target, OpOverload):
            return self._library_call(target, node, known)
        if target is call_block:
            return self._inline(block_of(node, module), [self._argument(arg, known) for arg in node.args[1:]])
        where = location_of_node(node)
        if target in SIZE_ARITHMETIC:
            raise unsupported("IND104", f"{node.name} computes {spec!r}, not a size", where)
        raise unsupported("IND101", f"no rule for call target {target!r} of node {node.name}", where)

    def _argument(self, arg: Any, known: dict[Node, Any]) -> Any:
        """A graph argument with nodes replaced by what they became."""
        if isinstance(arg, Node):
            return known[arg]
        if isinstance(arg, (tuple, list)):
            return tuple(self._argument(item, known) for item in arg)
        if isinstance(arg, slice):
            return slice(*(self._argument(item, known) for item in (arg.start, arg.stop, arg.step)))
        return arg

    def _primitive(self, prim: PrimOp, node: Node, known: dict[Node, Any]) -> Any:
        args = tuple([self._argument(arg, known) for arg in node.args])
        kwargs = {name: self._argument(arg, known) for name, arg in node.kwargs.items()}
        if prim.kind is PrimKind.VIEW:
            operand, view = formulas.view_of(prim.name, *args, **kwargs)
            return seen_through(operand, view)
        spec = spec_of_node(node)
        where = location_of_node(node)
        if not isinstance(spec, TensorSpec):
            raise unsupported("IND104", f"primitive {prim.name} has spec {spec!r}", where)
        for dtype in (spec.dtype, *(arg.dtype for arg in args if isinstance(arg, Operand))):
            if dtype not in STRIDED_DTYPES:
                raise unsupported("IND102", f"primitive {prim.name} on {dtype}", where)
        if not self.devices <= {spec.device}:
            args = self._twins.brought(args, spec.device, where)
            kwargs = {name: self._twins.brought(arg, spec.device, where) for name, arg in kwargs.items()}
        if prim.name == "cat" and joining.wants_a_call(args[0], spec):
            joined = self._joined(node, args, kwargs, spec, where)
            if joined is not None:
                return joined
        formula = formulas.formula_of(prim, spec, args, kwargs)
        formula = written_out(formula, node.name, spec, self, where)
        formula = part_by_part(formula, node.name, spec, self, where)
        return operand_of(self.add_value(node.name, self._laid_out(spec, node), formula, where))

    def _laid_out(self, spec: TensorSpec, node: Node, position: int = 0) -> TensorSpec:
        """The spec with the strides that were chosen for a node's result."""
        chosen = self._layouts.results.get((node, position))
        return spec if chosen is None else replace(spec, strides=chosen)

    def _joined(
        self, node: Node, args: tuple[Any, ...], kwargs: dict[str, Any], spec: TensorSpec, where: Any
    ) -> Operand | None:
        """``cat`` as a library call; None where its result might have another layout."""
        chosen = self._layouts.results.get((node, 0))
        if chosen is None:
            parts = tuple(self.place(operand, where) for operand in args[0])
        else:
            parts = tuple(self.place(operand, where, channels_last(operand.sizes)) for operand in args[0])
        if chosen is None and not joining.joins_to_rows(parts, spec):
            return None
        spec = self._laid_out(spec, node)
        dim = args[1] if len(args) > 1 else kwargs["dim"]
        value = self.add_value(node.name, spec, None, where)
        value.call = ExternalCall(torch.ops.aten.cat.default, (parts, dim), (), (value.number,), False, where)
        self.result.calls.append(value.call)
        return operand_of(value)

    def _library_call(self, op: OpOverload, node: Node, known: dict[Node, Any]) -> Any:
        where = location_of_node(node)
        if op._schema.is_mutable:
            raise unsupported("IND103", f"{op} mutates its arguments", where)
        spec = spec_of_node(node)
        single = isinstance(spec, TensorSpec)
        if op is _COPY and isinstance(spec, TensorSpec) and not node.kwargs.get("pin_memory"):
            moved = self._twins.moved(self._argument(node.args[0], known), spec, node.name, where)
            if moved is not None:
                return moved
        own = self._depthwise(op, node, known, where)
        if own is not None:
            return own[0] if single else own
        given, kept = self._padded(op, node, known, where)
        if kept is not None and isinstance(spec, TensorSpec) and not node.kwargs and is_given_away(node):
            parted = product_by_rows(op, given, kept, spec, node.name, self, where)
            if parted is not None:
                return parted
        args = tuple(self._library_argument(arg, known, where, (node, i)) for i, arg in enumerate(given))
        kwargs = tuple((name, self._library_argument(arg, known, where)) for name, arg in node.kwargs.items())
        results = self._results(op, node, where, None if kept is None else kept.operand_sizes)
        listed = [item for _, item in results_of(spec)]
        aliases = reads_later(op) or any(result.alias_info is not None for result in op._schema.returns)
        numbers = tuple(None if value is None else value.number for value in results)
        born = self._sizes_born(listed, results) if self.env.symbols else ()
        token = self._token(node.name, where) if born else None
        number = None if token is None else token.number
        call = ExternalCall(op, args, kwargs, numbers, aliases, where, born, number)
        if token is not None:
            token.call = call
        for value in results:
            if value is not None:
                value.call = call
        self.result.calls.append(call)
        operands = [None if value is None else operand_of(value) for value in results]
        if kept is not None and operands[0] is not None:
            return seen_through(operands[0], kept.view)
        return operands[0] if single else nested(spec, iter(operands))

    def _depthwise(
        self, op: OpOverload, node: Node, known: dict[Node, Any], where: UserLocation | None
    ) -> tuple[Operand | None, ...] | None:
        """The results of a depthwise convolution that kernels of our own compute."""
        found = None if op not in WEIGHTS or self._layouts.exact else depthwise_convolution(node)
        if found is None:
            return None
        spec, used = spec_of_node(node), {0} if op is _CONVOLUTION else used_results(node)
        listed = [
            self._laid_out(item, node, position)
            if isinstance(item, TensorSpec) and position in used
            else None
            for position, item in results_of(spec)
        ]
        given = [self._argument(arg, known) for arg in node.args]
        asked = self._layouts.arguments.get((node, found.image))
        return DepthwiseConvolutions(self, node.name, found, where).lowered(op, given, listed, asked)

    def _padded(
        self, op: OpOverload, node: Node, known: dict[Node, Any], where: UserLocation | None
    ) -> tuple[Sequence[Any], PaddedResult | None]:
        """The arguments of a call, those of a product padded where that is faster."""
        spec = spec_of_node(node)
        if op in FACTORS and isinstance(spec, TensorSpec) and spec.is_contiguous:
            found = self._products.padded(op, [self._argument(arg, known) for arg in node.args], where)
            if found is not None:
                return found
        return node.args, None

    def _results(
        self, op: OpOverload, node: Node, where: UserLocation | None, padded: Sizes | None
    ) -> list[Value | None]:
        """The values of a call's results, None for those that nobody reads."""
        spec = spec_of_node(node)
        single = isinstance(spec, TensorSpec)
        used = used_results(node) if not single else {0}
        results: list[Value | None] = []
        for position, (place, item) in enumerate(results_of(spec)):
            if isinstance(item, TensorSpec) and place in used:
                made = self._laid_out(item, node, position)
                if padded is not None:
                    made = replace(item, sizes=padded, strides=contiguous_strides(padded))
                results.append(self.add_value(result_name(node, position, single), made, None, where))
            elif item is None or isinstance(item, TensorSpec) or place not in used:
                results.append(None)
            else:
                raise unsupported("IND104", f"result {position} of {op} is {item!r}", where)
        return results

    def _number_call(self, node: Node, known: dict[Node, Any]) -> Any:
        """A number read out of a tensor, or a check of numbers: a call without tensors as results."""
        where, spec = location_of_node(node), spec_of_node(node)
        assert isinstance(node.target, OpOverload)
        if isinstance(spec, SymSpec):
            args: tuple[object, ...] = (self._library_argument(node.args[0], known, where),)
            atom = spec.expr.as_symbol if isinstance(spec.expr, Expr) else None
            if atom is None or atom in self._symbols:
                return Number(self.env.simplify(spec.expr))
            self._symbols.add(atom)
            born: tuple[Born, ...] = (Born(atom),)
        else:
            args, born = (size_value(node.args[0]), *node.args[1:]), ()
            if isinstance(args[0], int) and args[0]:
                return None
        token = self._token(node.name, where)
        token.call = ExternalCall(node.target, args, (), (), False, where, born, token.number)
        self.result.calls.append(token.call)
        return Number(self.env.simplify(spec.expr)) if isinstance(spec, SymSpec) else None

    def _token(self, name: str, where: UserLocation | None) -> Value:
        """A value without memory, which orders what is computed."""
        spec = TensorSpec((), (), torch.int64, torch.device("cpu"))
        return self.add_value(f"{name}_token", spec, None, where)

    def _sizes_born(self, listed: Sequence[Any], results: Sequence[Value | None]) -> tuple[Born, ...]:
        """The symbols from data that come up with a call's results."""
        found: list[Born] = []
        for position, (item, result) in enumerate(zip(listed, results, strict=True)):
            for dim, size in enumerate(item.sizes if result is not None else ()):
                atom = size.as_symbol if isinstance(size, Expr) else None
                if atom is not None and atom not in self._symbols and self.env.is_from_data(size):
                    self._symbols.add(atom)
                    found.append(Born(atom, position, dim))
        return tuple(found)

    def _library_argument(
        self,
        arg: Any,
        known: dict[Node, Any],
        where: UserLocation | None,
        at: tuple[Node, int] | None = None,
    ) -> object:
        """An argument as a call takes it, in the layout chosen for it; ``at``: of which call, and its place there."""
        strides = self._layouts.arguments.get(at) if at is not None else None
        if isinstance(arg, Node):
            strides = self._layouts.as_told(arg) if strides is None else strides
            strides = None if strides is None else tuple(map(self.env.simplify, strides))
            arg = known[arg]
        if isinstance(arg, Operand):
            return self.place(arg, where, strides)
        if isinstance(arg, (tuple, list)):
            return tuple(self._library_argument(item, known, where) for item in arg)
        if isinstance(arg, Number):
            return arg.value
        return arg

    def _outputs(self, node: Node, known: dict[Node, Any]) -> None:
        held = node.args[0]
        for position, arg in enumerate(held if isinstance(held, (tuple, list)) else (held,)):
            self.result.outputs.append(self._output(arg, known, self._layouts.saved.get(position)))

    def _output(self, arg: Any, known: dict[Node, Any], chosen: Sizes | None) -> LoweredOutput:
        lowered = known[arg] if isinstance(arg, Node) else arg
        match lowered:
            case Operand():
                spec = spec_of_node(arg)
                assert isinstance(spec, TensorSpec)
                told = spec.strides if chosen is None else chosen
                strides = tuple(self.env.simplify(stride) for stride in told)
                return self.place(lowered, location_of_node(arg), strides)
            case Number() | RuntimeFloat() | None:
                return lowered
            case int() | float():
                return Number(lowered)
        raise unsupported("IND104", f"output {arg!r} is neither tensor, number nor None", None)


_COPY = torch.ops.aten._to_copy.default
_CONVOLUTION = torch.ops.aten.convolution.default
_NUMBERS = frozenset({torch.ops.aten._local_scalar_dense.default, torch.ops.aten._assert_scalar.default})
