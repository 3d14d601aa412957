"""Functionalization's model of memory: a storage has a current value; a view is a recipe from it.

A traced tensor either is its storage's base or a view reached by a chain of view operators. Writing through a tensor
replaces the storage's value (through views, by scattering back) and raises its generation; a tensor that is read after
that is regenerated from the new value. Nothing recorded is ever modified.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch._ops import OpOverload

from aot_autograd.recording.values import Value


class ViewStep:
    """One view operator applied to its parent (None: the base). The parent's value goes in front of ``args``.

    ``index`` selects a result of an operator that returns several; ``no_grad`` tells that it ran with gradients off;
    ``spec`` is the result's.
    """

    __slots__ = ("args", "index", "kwargs", "no_grad", "op", "parent", "spec")

    def __init__(
        self,
        parent: ViewStep | None,
        op: OpOverload,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        index: int | None,
        no_grad: bool,
        spec: Any,
    ) -> None:
        self.parent = parent
        self.op = op
        self.args = args
        self.kwargs = kwargs
        self.index = index
        self.no_grad = no_grad
        self.spec = spec

    def chain(self) -> list[ViewStep]:
        """All steps from the base to here, in order of application."""
        steps: list[ViewStep] = []
        step: ViewStep | None = self
        while step is not None:
            steps.append(step)
            step = step.parent
        return steps[::-1]


class InputForm:
    """An input whose own sizes or strides the program changes: its traced tensor, and the calls that do so in order."""

    __slots__ = ("steps", "tensor")

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.steps: list[ViewStep] = []


class Storage:
    """Memory shared by tensors. ``value`` is the base's current value; ``input_index`` tells whose memory it is.

    ``first`` is the value before any write, ``base`` the traced tensor that is the base itself; ``generation`` counts
    writes; ``form`` is there if the input itself takes another form, ``reformed`` is the tensor that was the base of
    new memory before it did (``t_``); ``begin`` is where the base begins, in elements;
    ``zeros_without_memory``: it holds the zeros that torch makes for the change of what does not change.
    """

    __slots__ = (
        "base",
        "begin",
        "first",
        "form",
        "generation",
        "initial_grad_fn",
        "input_index",
        "reformed",
        "value",
        "zeros_without_memory",
    )

    def __init__(self, value: Value, input_index: int | None = None, begin: int = 0) -> None:
        self.first = value
        self.value = value
        self.generation = 0
        self.input_index = input_index
        self.begin = begin
        self.base: Any = None
        self.initial_grad_fn: Any = None
        self.form: InputForm | None = None
        self.reformed: Any = None
        self.zeros_without_memory = False

    @property
    def has_new_history(self) -> bool:
        """Whether a write gave an input a history that it did not have."""
        return self.base.grad_fn is not None and self.base.grad_fn is not self.initial_grad_fn
