"""What ``compile(f)`` gives where it is called in a captured function: a function that is captured itself."""

from __future__ import annotations

from typing import Any

from dynamo_capture._eval_frame import RegionFunction
from dynamo_capture.foundation.break_kinds import BREAK_REQUESTED
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values.base import Context, Value


class OptimizedValue(Value):
    """What ``compiler(model, **options)`` gives, or (``model`` is None) a decorator; ``sample``: what it gives for
    another function, which for stock's compiler is no region."""

    __slots__ = ("compiler", "model", "options", "sample")

    def __init__(self, compiler: Value, model: Value | None, options: dict[str, Value], sample: Any) -> None:
        self.compiler = compiler
        self.model = model
        self.options = options
        self.sample = sample

    def python_type(self) -> type:
        if self.model is not None and not issubclass(self.model.python_type(), type(lambda: None)):
            raise self.unsupported("asking for the class")
        return type(self.sample)

    def children(self, tx: Context) -> list[Value]:
        return [self.compiler, *([] if self.model is None else [self.model]), *self.options.values()]

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if self.model is None:
            return self.compiler.call(tx, args, {**self.options, **kwargs})
        if type(self.sample) is RegionFunction and not tx.takes_in(self.sample):
            raise GraphBreak(
                BREAK_REQUESTED, "a function that is compiled here is a region with options of its own"
            )
        return self.model.call(tx, args, kwargs)

    def get_attr(self, tx: Context, name: str) -> Value:
        raise self.unsupported(f"reading the attribute {name!r}")

    def describe(self) -> str:
        return "a function that is compiled here"
