"""The arguments of a call of a Python function, put into its variables as Python does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import CodeType, FunctionType

from dynamo_capture.bytecode.instruction import CO_VARARGS, CO_VARKEYWORDS
from dynamo_capture.values import Const, DictValue, TupleValue, Value
from dynamo_capture.values.base import Context
from fx_interface.python_runtime.quick_dataclasses import dataclass

_NOTHING = (lambda: None).__code__


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a function takes: its code says the names. Errors call it by its ``__qualname__``."""

    code: CodeType
    function: Value
    defaults: Sequence[Value]
    kwdefaults: Mapping[str, Value]

    def bind(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> dict[str, Value]:
        """The variables that a call with these arguments begins with."""
        code = self.code
        names, count = code.co_varnames, code.co_argcount
        variables = dict(zip(names[:count], args, strict=False))
        rest = count + code.co_kwonlyargcount
        is_wrong = False
        if code.co_flags & CO_VARARGS:
            variables[names[rest]] = TupleValue(args[count:])
            rest += 1
        elif len(args) > count:
            is_wrong = True
        extra: dict[str, Value] = {}
        if kwargs:
            by_keyword = set(names[code.co_posonlyargcount : count + code.co_kwonlyargcount])
            for name, value in kwargs.items():
                if name not in by_keyword:
                    extra[name] = value
                elif name in variables:
                    is_wrong = True
                else:
                    variables[name] = value
        if code.co_flags & CO_VARKEYWORDS:
            variables[names[rest]] = DictValue({name: [Const(name), value] for name, value in extra.items()})
        elif extra:
            is_wrong = True
        if is_wrong or not self._fill_defaults(variables):
            self._refuse(tx, len(args), kwargs)
        return variables

    def _fill_defaults(self, variables: dict[str, Value]) -> bool:
        """Whether every parameter has a value now."""
        names, count = self.code.co_varnames, self.code.co_argcount
        first = count - len(self.defaults)
        for index in range(count):
            if names[index] not in variables:
                if index < first:
                    return False
                variables[names[index]] = self.defaults[index - first]
        for name in names[count : count + self.code.co_kwonlyargcount]:
            if name not in variables:
                if name not in self.kwdefaults:
                    return False
                variables[name] = self.kwdefaults[name]
        return True

    def _refuse(self, tx: Context, positional: int, keywords: Mapping[str, Value]) -> None:
        """Raise what Python raises: it is asked, with a function of the same parameters that does nothing."""
        empty = self.code.replace(
            co_code=_NOTHING.co_code,
            co_consts=_NOTHING.co_consts,
            co_exceptiontable=b"",
            co_freevars=(),
            co_cellvars=(),
            co_flags=self.code.co_flags & (CO_VARARGS | CO_VARKEYWORDS) | _NOTHING.co_flags,
        )
        name = tx.constant(tx.attribute(self.function, "__qualname__"))
        stub = FunctionType(empty, {}, name, (None,) * len(self.defaults), ())
        stub.__qualname__ = name
        stub.__kwdefaults__ = dict.fromkeys(self.kwdefaults)
        tx.fold(lambda: stub(*[None] * positional, **dict.fromkeys(keywords)))
        raise AssertionError(f"Python takes the call of {name}")
