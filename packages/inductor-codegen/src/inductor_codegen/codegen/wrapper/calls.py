"""Calls of library operators in an entry, each by the route chosen for it."""

from __future__ import annotations

import torch

from fx_interface.symbols import Expr
from inductor_codegen.codegen.wrapper.arguments import CArguments, c_arguments, quoted
from inductor_codegen.codegen.wrapper.buffers.placement import qualified_name
from inductor_codegen.codegen.wrapper.integers import integer, symbol_name
from inductor_codegen.codegen.wrapper.labels import label_of_call
from inductor_codegen.codegen.wrapper.memory import MemoryWriter
from inductor_codegen.codegen.wrapper.preamble import DISPATCHER_FUNCTIONS, CFunction
from inductor_codegen.codegen.wrapper.routes.large_products import large_product
from inductor_codegen.codegen.wrapper.routes.python_calls import RuntimeValues, split
from inductor_codegen.codegen.wrapper.routes.routes import (
    RouteKind,
    exact_scalars,
    may_fail_on_values,
)
from inductor_codegen.codegen.wrapper.routes.stable_values import stable_values
from inductor_codegen.codegen.wrapper.text import Text
from inductor_codegen.ir.program import Buffer, BufferRef, CallExtern, FloatRef
from inductor_codegen.runtime.operator_call import OperatorCall

_CHECK = torch.ops.aten._assert_scalar.default


class CallWriter:
    """Writes the calls; collects the C functions and the operators called through Python."""

    def __init__(self, text: Text, memory: MemoryWriter) -> None:
        self._text = text
        self._memory = memory
        self.functions: dict[str, CFunction] = {}
        self.operators: list[OperatorCall] = []
        self._index_of: dict[str, int] = {}
        self._passed = 0
        self.has_large_products = False
        """Whether the helpers for those are needed."""

    @property
    def uses_dispatcher(self) -> bool:
        """Whether an operator is called by name, so that the helpers for that are needed."""
        return not self.functions.keys().isdisjoint(DISPATCHER_FUNCTIONS)

    def handle(self, name: str) -> str:
        """A handle of the buffer."""
        return self._memory.handle(name)

    def number(self, name: str) -> str:
        """The double that a float input has become."""
        return f"f_{name}"

    def write(self, call: CallExtern) -> None:
        """The statements of one call."""
        if not call.results and call.born:
            self._number(call)
            return
        if not call.results and call.op is _CHECK:
            self._check(call)
            return
        route = self._memory.routes[id(call)]
        self._text.line(f"fx_at({quoted(label_of_call(call))});")
        match route.kind:
            case RouteKind.GIVEN_MEMORY:
                self._into_given_memory(call, route.function)
            case RouteKind.NEW_TENSORS:
                self._returning_tensors(call, route.function)
            case RouteKind.DISPATCHER:
                self._by_name(call)
            case RouteKind.PYTHON:
                self._through_python(call)

    def _into_given_memory(self, call: CallExtern, function: str) -> None:
        (result,) = call.results
        assert result is not None
        arguments = self._arguments(call)
        self._memory.allocate(result)
        self._use(function, ["H", *arguments.types])
        helper = large_product(function, call, self._memory.buffers)
        self.has_large_products |= helper is not None
        self._invoke(
            call, arguments, helper or function, [self._memory.handle(result.name), *arguments.values]
        )

    def _returning_tensors(self, call: CallExtern, function: str) -> None:
        arguments = self._arguments(call)
        made = [self._memory.new_handle() for _ in call.results]
        self._use(function, [*arguments.types, *("H*" for _ in made)])
        self._invoke(call, arguments, function, [*arguments.values, *(f"&{handle}" for handle in made)])
        self._take(call, made)

    def _by_name(self, call: CallExtern) -> None:
        words = stable_values(call, self)
        made = [self._memory.new_handle() for _ in call.results]
        for name, types in DISPATCHER_FUNCTIONS.items():
            self.functions.setdefault(name, CFunction(name, types))
        name, overload = call.op._schema.name, call.op._schema.overload_name
        failure = self._failure(call)
        room = max(len(words), len(made), 1)
        self._text.line(f"{{ uint64_t k[{room}] = {{{', '.join(words)}}};")
        self._text.line(
            f'  if (torch_call_dispatcher("{name}", "{overload}", k, fx_dispatcher_version)) {failure}'
        )
        self._text.line(" ".join(f"{handle} = (H)k[{i}];" for i, handle in enumerate(made)) + " }")
        self._take(call, made)

    def _through_python(self, call: CallExtern) -> None:
        template, values = split(call)
        passed = self._pass_to_python(template, values)
        made = [self._memory.new_handle() for _ in call.results]
        count = len(made)
        where = self._text.where(call.where)
        self._text.line(f"{{ H r[{max(1, count)}] = {{}};")
        self._text.line(f"  const int32_t code = fx_call_operator({passed}, r, {count});")
        for position, handle in enumerate(made):
            self._text.line(f"  {handle} = r[{position}];")
        self._text.line(f"  if (code) return fx_explain(code, {where}); }}")
        self._take(call, made)

    def _number(self, call: CallExtern) -> None:
        """The integer in a tensor."""
        (source,), (born,) = call.args, call.born
        assert isinstance(source, BufferRef)
        bits = str(self._memory.buffers[source.name].dtype).removeprefix("torch.")
        name, where = symbol_name(born.symbol), self._text.where(call.where)
        function = f"aoti_torch_item_{bits}"
        self._use(function, ["H", f"{bits}_t*"])
        handle = self._memory.handle(source.name)
        self._text.line(f"int64_t {name};")
        self._text.line(
            f"{{ {bits}_t v; if ({function}({handle}, &v)) return fx_explain(1, {where}); {name} = v; }}"
        )

    def _check(self, call: CallExtern) -> None:
        """A fact that the program goes on with; the operator itself raises where it does not hold."""
        condition = call.args[0]
        assert isinstance(condition, (int, Expr))
        template, values = split(call)
        passed = self._pass_to_python(template, values)
        where = self._text.where(call.where)
        self._text.line(f"if (!({integer(condition)})) {{ H r[1] = {{}};")
        self._text.line(f"  return fx_explain(fx_call_operator({passed}, r, 0), {where}); }}")

    def _arguments(self, call: CallExtern) -> CArguments:
        return c_arguments(call, self, exact_scalars(call, self._memory.buffers))

    def _use(self, function: str, types: list[str]) -> None:
        self.functions.setdefault(function, CFunction(function, ", ".join(("int32_t", *types))))

    def _invoke(self, call: CallExtern, arguments: CArguments, function: str, values: list[str]) -> None:
        failure = self._failure(call)
        self._text.line("{ " + " ".join(arguments.setup) if arguments.setup else "{")
        self._text.line(f"  if ({function}({', '.join(values)})) {failure} }}")

    def _failure(self, call: CallExtern) -> str:
        """What to do when a call fails: where values matter, once more through Python for the exception's type."""
        where = self._text.where(call.where)
        if not may_fail_on_values(call, self._memory.buffers):
            return f"return fx_explain(1, {where});"
        template, runtime_values = split(call)
        passed = self._pass_to_python(template, runtime_values)
        count = len(call.results)
        return f"{{ H r[{count}] = {{}}; return fx_retry({passed}, r, {count}, {where}); }}"

    def _pass_to_python(self, template: OperatorCall, values: RuntimeValues) -> str:
        """The first arguments of ``fx_call_operator``; equal calls share an entry of the operator table."""
        index = self._index_of.setdefault(str(template.to_data()), len(self.operators))
        if index == len(self.operators):
            self.operators.append(template)
        local = self._passed
        self._passed += 1
        tensors, numbers = "nullptr", "nullptr"
        if values.tensors:
            tensors = f"tensors_{local}"
            handles = ", ".join(self._memory.handle(name) for name in values.tensors)
            self._text.line(f"const H {tensors}[] = {{{handles}}};")
        if values.numbers:
            numbers = f"numbers_{local}"
            texts = ", ".join(_number(value) for value in values.numbers)
            self._text.line(f"const int64_t {numbers}[] = {{{texts}}};")
        return f"graph, {index}, {tensors}, {len(values.tensors)}, {numbers}, {len(values.numbers)}"

    def _take(self, call: CallExtern, made: list[str]) -> None:
        """Check what came back, and free what nobody reads."""
        named = f'"{qualified_name(call.op)}"'
        for born in call.born:
            assert born.result is not None
            name = symbol_name(born.symbol)
            self._use("aoti_torch_get_size", ["H", "int64_t", "int64_t*"])
            self._text.line(f"int64_t {name};")
            self._text.line(f"TRY(aoti_torch_get_size({made[born.result]}, {born.dim}, &{name}));")
        for position, (result, handle) in enumerate(zip(call.results, made, strict=True)):
            if result is None:
                self._text.line(f"fx_free({handle});")
            else:
                self._conform(result, handle, named, position)
                self._memory.result(result, handle)

    def _conform(self, result: Buffer, handle: str, named: str, position: int) -> None:
        layout = self._text.layout(result)
        self._text.line(f"TRY(fx_conform(&{handle}, {layout}, {named}, {position}));")


def _number(value: object) -> str:
    if isinstance(value, FloatRef):
        return f"fx_bits(f_{value.name})"
    return integer(value)  # type: ignore[arg-type]
