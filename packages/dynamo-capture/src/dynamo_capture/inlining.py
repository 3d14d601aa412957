"""Calls of Python functions: binding arguments and running the callee's frame inside the trace."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import guards
from dynamo_capture.attributes.lookup import LIBRARIES
from dynamo_capture.bytecode.instruction import CO_VARARGS, CO_VARKEYWORDS
from dynamo_capture.errors import GraphBreak
from dynamo_capture.frame import Frame, GeneratorValue, GlobalsScope, Return, scope_source
from dynamo_capture.prepared import prepare
from dynamo_capture.sources import known_object
from dynamo_capture.values import CellValue, Const, DictValue, FunctionValue, TupleValue, Value
from fx_interface.backend import STACK_PACKAGES
from fx_interface.source import AttrSource, ItemSource, Source

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace

_DEEPEST = 120
_UNCHANGING = LIBRARIES | STACK_PACKAGES
_COROUTINE_FLAGS = 0x80 | 0x100 | 0x200


class Inliner:
    """Runs functions of the program inside the trace."""

    def __init__(self, tx: Trace) -> None:
        self._tx = tx
        self._scopes: dict[int, GlobalsScope] = {}
        self._guarded: dict[int, FunctionType] = {}

    def scope(self, real: dict[str, Any]) -> GlobalsScope:
        """The namespace of a module, one object per namespace."""
        found = self._scopes.get(id(real))
        if found is None:
            found = self._scopes[id(real)] = GlobalsScope(self._tx, real, scope_source(real))
        return found

    def root_scope(self, real: dict[str, Any]) -> GlobalsScope:
        """The namespace of the compiled frame itself."""
        found = self._scopes[id(real)] = GlobalsScope(self._tx, real, None)
        return found

    def call_function(self, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Call a known or new Python function."""
        tx = self._tx
        if isinstance(function, FunctionValue):
            code, scope = function.code, function.globals
            variables = self._bind(code, function.defaults, function.kwdefaults, args, kwargs)
            for name, cell in zip(code.co_freevars, function.closure, strict=True):
                variables[name] = cell
        else:
            real = function.as_constant()
            assert isinstance(real, FunctionType), real
            code, scope = real.__code__, self.scope(real.__globals__)
            self._guard_state(real, function.source)
            defaults, kwdefaults = self._defaults(real, function.source)
            variables = self._bind(code, defaults, kwdefaults, args, kwargs)
            if real.__closure__:
                self._close_over(real, function.source, variables)
        if len(tx.frames) > _DEEPEST:
            raise GraphBreak("CAP222", f"calls are nested more than {_DEEPEST} deep")
        if code.co_flags & _COROUTINE_FLAGS:
            raise GraphBreak("CAP223", f"{code.co_qualname} is a coroutine")
        prepared = prepare(code)
        frame = Frame(tx, prepared, scope, variables)
        if frame.is_generator:
            frame.next = self._after_prologue(frame)
            made = GeneratorValue(frame)
            tx.generators.append(made)
            return made
        done = frame.run()
        assert isinstance(done, Return)
        return done.value

    def _after_prologue(self, frame: Frame) -> int:
        """Run a generator's entry up to RETURN_GENERATOR, after which the first ``send`` goes on."""
        for step in frame.steps:
            if step.opname == "RETURN_GENERATOR":
                return step.index + 1
            frame.line = step.line
            step.run(frame, step)
        raise GraphBreak("CAP223", "a generator without an entry")

    def _guard_state(self, real: FunctionType, source: Source | None) -> None:
        """The function's code has been relied on, and its defaults. That of libraries does not change."""
        if id(real) in self._guarded or str(real.__module__).partition(".")[0] in _UNCHANGING:
            return
        self._guarded[id(real)] = real
        self._tx.guards.function_state(source if source is not None else known_object(real), real)

    def _defaults(self, real: FunctionType, source: Source | None) -> tuple[list[Value], dict[str, Value]]:
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
        if guards.is_closed_default(value):
            return Const(value)  # the guard on the function's state is about it
        base = source if source is not None else known_object(real)
        return self._tx.wrap(value, ItemSource(AttrSource(base, kind), key))

    def _close_over(self, real: FunctionType, source: Source | None, variables: dict[str, Value]) -> None:
        tx = self._tx
        base: Source | None = None
        for index, (name, cell) in enumerate(
            zip(real.__code__.co_freevars, real.__closure__ or (), strict=True)
        ):
            known = tx.wrapping.value_of(cell)
            if known is None:
                if base is None:
                    base = AttrSource(source if source is not None else known_object(real), "__closure__")
                known = tx.wrap(cell, ItemSource(base, index))
            variables[name] = known

    def _bind(
        self,
        code: CodeType,
        defaults: list[Value],
        kwdefaults: dict[str, Value],
        args: list[Value],
        kwargs: dict[str, Value],
    ) -> dict[str, Value]:
        """Arguments to variables, as a call does."""
        names = code.co_varnames
        count, keyword_only = code.co_argcount, code.co_kwonlyargcount
        given = len(args)
        flags = code.co_flags
        variables = dict(zip(names[:count], args, strict=False))
        index = count + keyword_only
        if flags & CO_VARARGS:
            variables[names[index]] = TupleValue(args[count:])
            index += 1
        elif given > count:
            raise self._mismatch(
                code, f"takes {count} positional argument{'s' * (count != 1)} but {given} were given"
            )
        extra: dict[str, Value] = {}
        if kwargs:
            by_keyword = set(names[code.co_posonlyargcount : count + keyword_only])
            for name, value in kwargs.items():
                if name in by_keyword:
                    if name in variables:
                        raise self._mismatch(code, f"got multiple values for argument {name!r}")
                    variables[name] = value
                else:
                    extra[name] = value
        if flags & CO_VARKEYWORDS:
            variables[names[index]] = DictValue({name: [Const(name), value] for name, value in extra.items()})
        elif extra:
            raise self._mismatch(code, f"got an unexpected keyword argument {next(iter(extra))!r}")
        self._fill_defaults(code, variables, defaults, kwdefaults)
        return variables

    def _fill_defaults(
        self, code: CodeType, variables: dict[str, Value], defaults: list[Value], kwdefaults: dict[str, Value]
    ) -> None:
        names, count = code.co_varnames, code.co_argcount
        first = count - len(defaults)
        missing = []
        for index in range(count):
            name = names[index]
            if name not in variables:
                if index >= first:
                    variables[name] = defaults[index - first]
                else:
                    missing.append(name)
        for name in names[count : count + code.co_kwonlyargcount]:
            if name not in variables:
                if name in kwdefaults:
                    variables[name] = kwdefaults[name]
                else:
                    missing.append(name)
        if missing:
            shown = " and ".join(repr(name) for name in missing)
            raise self._mismatch(
                code, f"missing {len(missing)} required argument{'s' * (len(missing) != 1)}: {shown}"
            )

    def _mismatch(self, code: CodeType, text: str) -> Exception:
        return self._tx.raises(TypeError, f"{code.co_qualname}() {text}")


__all__ = ["CellValue", "Inliner"]
