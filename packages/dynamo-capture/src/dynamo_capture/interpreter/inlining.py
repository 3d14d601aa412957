"""Calls of Python functions: binding arguments and running the callee's frame inside the trace."""

from __future__ import annotations

import builtins
from types import FunctionType
from typing import Any

import fx_guards
from dynamo_capture.bytecode.decode import free_variables
from dynamo_capture.foundation.break_kinds import COROUTINE, DEFINITION_CHANGED, NESTED_TOO_DEEPLY
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.library_functions import LIBRARIES, module_of_function
from dynamo_capture.frames.frame import Frame, Return
from dynamo_capture.frames.generator_values import GeneratorValue
from dynamo_capture.frames.globals_scope import GlobalsScope, scope_source
from dynamo_capture.frames.left_functions import check_not_left
from dynamo_capture.frames.parameters import Parameters
from dynamo_capture.frames.steps import prepare
from dynamo_capture.sources.sources import known_object
from dynamo_capture.values import CellValue, Const, DictValue, FunctionValue, Value
from dynamo_capture.values.base import Context
from fx_interface.backend import STACK_PACKAGES
from fx_interface.source import AttrSource, ItemSource, Source

_DEEPEST = 120
_UNCHANGING = LIBRARIES | STACK_PACKAGES
_COROUTINE_FLAGS = 0x80 | 0x100 | 0x200


class Inliner:
    """Runs functions of the program inside the trace."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx
        self._scopes: dict[int, GlobalsScope] = {}
        self._guarded: dict[int, FunctionType] = {}
        self.root_builtins = vars(builtins)

    def scope(self, real: dict[str, Any]) -> GlobalsScope:
        """The namespace of a module, one object per namespace."""
        found = self._scopes.get(id(real))
        if found is None:
            found = self._scopes[id(real)] = GlobalsScope(self._tx, real, scope_source(real))
        return found

    def is_scope(self, real: dict[str, Any]) -> bool:
        """Whether names of this namespace have been read or written."""
        return id(real) in self._scopes

    def has_written(self, real: dict[str, Any]) -> bool:
        """Whether names of this namespace have been set or deleted."""
        found = self._scopes.get(id(real))
        return found is not None and bool(found.written)

    def root_scope(self, real: dict[str, Any], own: dict[str, Any]) -> GlobalsScope:
        """The namespace of the compiled frame itself, and the builtins that it was made with."""
        self.root_builtins = own
        found = self._scopes[id(real)] = GlobalsScope(self._tx, real, None, own)
        return found

    def call_function(self, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Call a known or new Python function."""
        tx = self._tx
        if isinstance(function, FunctionValue):
            code, scope = function.code, function.globals
            taken = Parameters(code, function, function.defaults, function.kwdefaults)
            variables = taken.bind(tx, args, kwargs)
            for name, cell in zip(free_variables(code), function.closure, strict=True):
                variables[name] = cell
        else:
            real = function.as_constant()
            assert isinstance(real, FunctionType), real
            code, scope = real.__code__, self.scope(real.__globals__)
            self._guard_state(real, function.source)
            taken = Parameters(code, function, *self._defaults(real, function.source))
            variables = taken.bind(tx, args, kwargs)
            if real.__closure__:
                self._close_over(real, function.source, variables)
        check_not_left(tx, code)
        given = list(variables.values()) if tx.policy.functions.weighs_arrays else []
        if id(code) in tx.policy.functions.apart:
            from dynamo_capture.semantics.calls.arrays.without_torch import (
                check_not_apart,
            )  # few programs need it

            check_not_apart(code, scope.real, given)
        if len(tx.frames) > _DEEPEST:
            raise GraphBreak(NESTED_TOO_DEEPLY, f"calls are nested more than {_DEEPEST} deep")
        if code.co_flags & _COROUTINE_FLAGS:
            raise GraphBreak(COROUTINE, f"{code.co_qualname} is a coroutine")
        assert isinstance(scope, GlobalsScope)
        frame = Frame(tx, prepare(code), scope, variables)
        if frame.is_generator:
            frame.next = self._after_prologue(frame)
            made = GeneratorValue(frame, function)
            tx.generators.append(made)
            return made
        try:
            done = frame.run()
        except GraphBreak as reason:
            if given:
                from dynamo_capture.semantics.calls.arrays.without_torch import note_function

                note_function(reason, code, scope.real, given)
            raise
        assert isinstance(done, Return)
        tx.policy.functions.traced[id(code)] = code
        return done.value

    def _after_prologue(self, frame: Frame) -> int:
        """Run a generator's entry up to RETURN_GENERATOR, after which the first ``send`` goes on."""
        for step in frame.steps:
            if step.opname == "RETURN_GENERATOR":
                return step.index + 1
            frame.line = step.line
            step.run(frame, step)
        raise GraphBreak(COROUTINE, "a generator without an entry")

    def _guard_state(self, real: FunctionType, source: Source | None) -> None:
        """The function's code has been relied on, and its defaults. That of libraries does not change."""
        if (
            self._tx.new_class(real) is not None
            or id(real) in self._guarded
            or module_of_function(real).partition(".")[0] in _UNCHANGING
        ):
            return
        self._guarded[id(real)] = real
        self._tx.guards.function_state(source if source is not None else known_object(real), real)

    def _defaults(self, real: FunctionType, source: Source | None) -> tuple[list[Value], dict[str, Value]]:
        written = None if real.__kwdefaults__ is None else self._tx.wrapping.value_of(real.__kwdefaults__)
        if isinstance(written, DictValue) and written.is_changed:
            raise GraphBreak(DEFINITION_CHANGED, f"{real.__qualname__}.__kwdefaults__ has been written to")
        if real.__defaults__ is None and real.__kwdefaults__ is None:
            return [], {}
        base = source if source is not None else None
        positional = [
            self._default(real, value, base, "__defaults__", index)
            for index, value in enumerate(real.__defaults__ or ())
        ]
        keyword = {
            name: self._default(real, value, base, "__kwdefaults__", name)
            for name, value in (real.__kwdefaults__ or {}).items()
        }
        return positional, keyword

    def _default(self, real: FunctionType, value: Any, source: Source | None, kind: str, key: Any) -> Value:
        if fx_guards.is_closed_default(value):
            return Const(value)  # the guard on the function's state is about it
        base = source if source is not None else known_object(real)
        return self._tx.wrap(value, ItemSource(AttrSource(base, kind), key))

    def _close_over(self, real: FunctionType, source: Source | None, variables: dict[str, Value]) -> None:
        tx = self._tx
        base: Source | None = None
        for index, (name, cell) in enumerate(
            zip(free_variables(real.__code__), real.__closure__ or (), strict=True)
        ):
            known = tx.wrapping.value_of(cell)
            if known is None:
                if base is None:
                    base = AttrSource(source if source is not None else known_object(real), "__closure__")
                known = tx.wrap(cell, ItemSource(base, index))
            variables[name] = known


__all__ = ["CellValue", "Inliner"]
