"""Tensors: a node of the graph and what is known of its value."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any, ClassVar

import torch
from torch.fx import Node

from dynamo_capture.foundation.break_kinds import CONTENT_DECIDES, TENSOR_AS_INDEX
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.sources.formulas import Formula
from dynamo_capture.values.base import Context, IteratorValue, Value
from dynamo_capture.values.numbers.integers import SymValue
from dynamo_capture.values.special_methods import rely_on
from dynamo_capture.values.special_results import index_from, length_from, truth_from
from fx_guards import class_lookup
from fx_interface.source import Source
from fx_interface.symbols import Expr
from fx_interface.tensor_spec import TensorSpec

MOST_ELEMENTS = 16
"""So many elements decide what an operation gives."""
PLAIN_CLASSES = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
"""Classes of tensors without members of a program's."""


class TensorMeta:
    """What determines the metadata of an operation's result; interned, so that equal ones are one object."""

    __slots__ = ("cls", "is_inference", "is_leaf", "requires_grad", "spec")
    _interned: ClassVar[dict[Any, TensorMeta]] = {}

    def __init__(
        self, spec: TensorSpec, requires_grad: bool, is_leaf: bool, cls: type, is_inference: bool
    ) -> None:
        self.spec = spec
        self.requires_grad = requires_grad
        self.is_leaf = is_leaf
        self.cls = cls
        self.is_inference = is_inference

    @classmethod
    def of(
        cls,
        spec: TensorSpec,
        requires_grad: bool,
        is_leaf: bool,
        kind: type = torch.Tensor,
        is_inference: bool = False,
    ) -> TensorMeta:
        """The record; ``spec`` is kept without ``requires_grad``."""
        key = (spec, requires_grad, is_leaf, kind, is_inference)
        found = cls._interned.get(key)
        if found is None:
            if len(cls._interned) > 100_000:
                cls._interned = {}
            found = cls._interned[key] = TensorMeta(spec, requires_grad, is_leaf, kind, is_inference)
        return found


class TensorValue(Value):
    """``root``: the tensor that this one is a differentiable view of (itself, if none); ``memory``: the one
    whose memory it shows, and ``is_shown`` whether another one was made that shows its memory; ``is_replaced``:
    whether the program has set its data. ``refuses_writes``: whether autograd does not follow writes to
    it, a view that was made by a function of several views or without gradients; None: torch tells when it runs.
    ``real``: an input's object.
    ``content``: a tensor equal to it, where that is known while tracing, or the one integer in it; never written
    to. ``follows_from``: the inputs (whose content at the start is ``initial``) and sizes that the content follows
    from; ``formula``: how, where there are such sizes."""

    __slots__ = (
        "attrs", "content", "follows_from", "formula", "initial", "is_replaced", "is_shown", "memory", "meta",
        "node", "real", "refuses_writes", "root", "source", "views",
    )  # fmt: skip
    is_mutable = True

    def __init__(
        self, node: Node, meta: TensorMeta, source: Source | None = None, real: torch.Tensor | None = None
    ) -> None:
        self.node = node
        self.meta = meta
        self.source = source
        self.real = real
        self.root: TensorValue = self
        self.memory: TensorValue = self
        self.is_shown = False
        self.is_replaced = False
        self.refuses_writes: bool | None = False
        self.views: list[TensorValue] = []
        self.attrs: dict[str, Value] | None = None
        self.content: torch.Tensor | SymValue | None = None
        self.follows_from: tuple[TensorValue | Expr, ...] = ()
        self.initial: torch.Tensor | None = None
        self.formula: Formula | None = None

    def show(self, memory: TensorValue) -> None:
        """The tensor shows the memory of another one."""
        self.memory = memory
        memory.is_shown = True

    def __repr__(self) -> str:
        return f"TensorValue({self.node}: {self.meta.spec})"

    def python_type(self) -> type:
        return self.meta.cls

    def index(self, tx: Context) -> Any:
        tx.tensors.check_special(self, "__index__")
        answer = tx.tensors.by_override(operator.index, [self])
        if answer is not None:
            return index_from(tx, answer)
        if not self.may_be_index:
            tx.fold(lambda: operator.index(torch.zeros(2, device="cpu")))  # as of any tensor that is none
        what = "a tensor's content is used as an index of a Python object"
        number = tx.tensors.number(self, what, TENSOR_AS_INDEX)
        return tx.fold(lambda: operator.index(tx.index(number)))

    def fake(self, tx: Context, fakes: dict[int, Any]) -> Any:
        fake = fakes.get(id(self))
        if fake is None:
            meta = self.meta
            fake = tx.inference.tensor(meta.spec, meta.requires_grad, meta.is_leaf, meta.is_inference)
            fake.origin = self
            if isinstance(self.content, SymValue):
                fake.content = self.content.fake(tx, fakes)
            elif self.is_small:
                fake.content = self.content
            fakes[id(self)] = fake
        return fake

    def argument(self, tx: Context) -> Any:
        return tx.output.use(self.node)

    def frozen(self, tx: Context, tensors: list[Any]) -> Any:
        for index, known in enumerate(tensors):
            if known is self:
                return (self.meta, index)
        tensors.append(self)
        content = self.content
        if isinstance(content, SymValue):
            return (self.meta, content.expr)
        return (self.meta, repr(content.tolist())) if content is not None and self.is_small else self.meta

    @property
    def is_small(self) -> bool:
        """Whether an operation is inferred, and remembered, with what is in it."""
        content = self.content
        return isinstance(content, SymValue) or (content is not None and content.numel() <= MOST_ELEMENTS)

    @property
    def requires_grad(self) -> bool:  # type: ignore[override]
        return self.meta.requires_grad

    def holds_tensor(self, tx: Context) -> bool:
        return True

    def index_width(self) -> Any:
        spec = self.meta.spec
        return len(spec.sizes) if spec.dtype in (torch.bool, torch.uint8) else 1

    def get_attr(self, tx: Context, name: str) -> Value:
        return tx.tensors.get_attr(self, name)

    def set_attr(self, tx: Context, name: str, value: Value) -> None:
        tx.tensors.set_attr(self, name, value)

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tx.tensors.call_method(self, name, args, kwargs)

    def get_item(self, tx: Context, key: Value) -> Value:
        return tx.tensors.get_item(self, key)

    def set_item(self, tx: Context, key: Value, value: Value) -> None:
        tx.tensors.set_item(self, key, value)

    def own_key(self, tx: Context) -> Any:
        tx.tensors.check_special(self, "__hash__")
        return None

    def contains(self, tx: Context, item: Value) -> bool:
        tx.tensors.check_special(self, "__contains__")
        from dynamo_capture.values.constant import Const

        if not self.is_overridden(tx) and tx.tensors.overriding([item]):  # about what compares, then
            method = Const(torch.Tensor.__contains__)
            return tx.truth(tx.inliner.call_function(method, [self, item], {}))
        answer = tx.tensors.by_override(operator.contains, [self, item])
        if answer is not None:
            return tx.truth(answer)
        raise GraphBreak(CONTENT_DECIDES, "`in` on a tensor compares its content")

    def length(self, tx: Context) -> int:
        rely_on(tx, "__len__")
        tx.tensors.check_special(self, "__len__")
        answer = tx.tensors.by_override(len, [self])
        if answer is not None:
            return length_from(tx, answer)
        sizes = self.meta.spec.sizes
        if not sizes:
            raise tx.raises(TypeError, "len() of a 0-d tensor")
        size = sizes[0]
        return tx.env.specialize(size) if isinstance(size, Expr) else size

    def truth(self, tx: Context) -> bool:
        rely_on(tx, "__bool__")
        tx.tensors.check_special(self, "__bool__")
        answer = tx.tensors.by_override(bool, [self])
        if answer is not None:
            return truth_from(tx, answer)
        sizes = self.meta.spec.sizes
        if self.meta.spec.is_static and math.prod(sizes) != 1:
            many = "no values" if 0 in sizes else "more than one value"
            raise tx.raises(RuntimeError, f"Boolean value of Tensor with {many} is ambiguous")
        return tx.truth(tx.tensors.number(self, "the truth of a tensor depends on its content"))

    @property
    def may_be_index(self) -> bool:
        """Whether ``operator.index`` takes it, as far as its form tells."""
        spec = self.meta.spec
        is_whole = not spec.dtype.is_floating_point and not spec.dtype.is_complex
        return is_whole and all(size == 1 for size in spec.sizes if isinstance(size, int))

    def iterate(self, tx: Context) -> IteratorValue:
        from dynamo_capture.values.constant import Const

        rely_on(tx, "__iter__")
        tx.tensors.check_special(self, "__iter__")
        if self.is_overridden(tx):
            return tx.inliner.call_function(Const(torch.Tensor.__iter__), [self], {}).iterate(tx)
        if not self.meta.spec.sizes:
            raise tx.raises(TypeError, "iteration over a 0-d tensor")
        return tx.tensors.call_method(self, "unbind", [], {}).iterate(tx)

    def items_for_list(self, tx: Context) -> list[Value]:
        """With the question how many there are, if code of the program answers it."""
        if not self.is_overridden(tx) and class_lookup(self.meta.cls, "__len__") is torch.Tensor.__len__:
            tx.tensors.check_special(self, "__len__")  # which asks for the shape, perhaps the program's
            return self.unpack(tx)
        iterator = self.iterate(tx)
        try:
            self.length(tx)
        except UserRaise as raised:
            if not issubclass(raised.value.python_type(), TypeError):
                raise
        return iterator.drain(tx)

    def is_overridden(self, tx: Context) -> bool:
        """Whether a ``__torch_function__`` is asked about it."""
        return bool(tx.tensors.modes or (not tx.tensors.disabled and tx.tensors.overriding([self])))


def tensors_of(values: Iterable[Any]) -> list[TensorValue]:
    """The tensors among values."""
    return [value for value in values if isinstance(value, TensorValue)]


def are_tensors(values: Iterable[Any]) -> bool:
    """Whether all values are tensors."""
    return all(isinstance(value, TensorValue) for value in values)


def one_tensor(value: Value) -> TensorValue:
    """The result of an operation that gives one tensor."""
    assert isinstance(value, TensorValue)
    return value
