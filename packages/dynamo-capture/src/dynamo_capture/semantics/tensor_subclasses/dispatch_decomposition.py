"""An operation on tensors that dispatch in Python, taken apart one level below autograd.

Torch's own function runs on stand-ins without data, so that composite functions come apart as they do in eager. Each
ATen operator that is reached is traced by itself: as a call of the class's ``__torch_dispatch__``, or as a node.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._ops import OpOverload

import fx_guards
from dynamo_capture.foundation.break_kinds import (
    COMMUNICATION,
    DISPATCH_IN_PYTHON,
    OBJECT_OPERATION,
    UNTRACEABLE,
)
from dynamo_capture.foundation.errors import DataDependent, GraphBreak, NotConstant, UserRaise
from dynamo_capture.foundation.libraries.distributed_tensors import is_distributed
from dynamo_capture.foundation.libraries.parameters import IS_PARAMETER
from dynamo_capture.semantics.tensor_subclasses.distributed import is_of_inference, is_torchs_to_do, value_of
from dynamo_capture.shapes import SpecTensor
from dynamo_capture.shapes.irregular import is_view, written_by
from dynamo_capture.values import (
    TRUE,
    Const,
    DictValue,
    ListValue,
    TensorValue,
    TupleValue,
    Value,
    size_value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.structures import sequence_leaves
from dynamo_capture.values.tensors.wrapper import WrapperValue, add_classes, dispatches
from fx_interface.errors import UnbackedSymbolError, UnsupportedProgramError

_SIGNALS = (GraphBreak, UserRaise, NotConstant, DataDependent, UnbackedSymbolError, UnsupportedProgramError)


class TakenApart:
    """One such operation, or several that autograd follows: what stands for which tensor."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx
        self._fakes: dict[int, Any] = {}
        self._values: dict[int, Value] = {}
        self._kept: list[Any] = []
        self._mistake: Exception | None = None
        """What the translator itself has raised below torch's function, which says nothing about the program."""

    def run(self, function: Callable[..., Any], args: list[Value], kwargs: dict[str, Value]) -> Value:
        """``function(*args, **kwargs)``."""
        given = [self.stand_in(value) for value in args]
        options = {name: self.stand_in(value) for name, value in kwargs.items()}
        before = [(fake, fake.requires_grad, fake.is_leaf) for fake in _with_bases([given, options])]
        found = self.run_on_stand_ins(function, given, options)
        if any([fake.requires_grad, fake.is_leaf] != known for fake, *known in before):
            raise GraphBreak(
                DISPATCH_IN_PYTHON, f"{function.__name__} changes what autograd knows of its argument"
            )
        return found

    def run_on_stand_ins(self, function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> Value:
        """``function(*args, **kwargs)`` with the arguments as torch's functions see them."""
        tx, inference = self._tx, self._tx.inference
        before, inference.apart = inference.apart, self._reached
        try:
            found = inference.run(function, args, kwargs)
        except Exception as error:
            if error is self._mistake:
                raise
            if isinstance(error, UserRaise) and _is_operator(function):
                raise GraphBreak(
                    OBJECT_OPERATION, f"{function.__name__} raises where the class dispatches"
                ) from None
            raise tx.tensors.failure(function, error) from None
        finally:
            inference.apart = before
        return self._value(found)

    def stand_in(self, value: Value) -> Any:
        """What stands for a value in torch's functions."""
        known = len(self._fakes)
        made = self._tx.force(value).fake(self._tx, self._fakes)
        for fake in list(self._fakes.values())[known:]:
            assert isinstance(fake.origin, Value)
            self.stands_for(fake, fake.origin)
        return made

    def values(self) -> list[Value]:
        """What there are stand-ins for."""
        return list(self._values.values())

    def stands_for(self, fake: torch.Tensor, value: Value) -> None:
        """From now on a stand-in is that of ``value``."""
        self._kept.append((fake, value))
        self._values[id(fake)] = value
        self._fakes[id(value)] = fake
        if isinstance(value, WrapperValue) and value.plain is not None:
            self._fakes[id(value.plain)] = fake

    def _value(self, real: Any) -> Value:
        """The value that something in torch's functions stands for."""
        match real:
            case torch.Tensor():
                known = self._values.get(id(real))
                if known is None and is_distributed(type(real)):
                    known = value_of(self._value(real._local_tensor), real)  # type: ignore[attr-defined]
                    self.stands_for(real, known)
                if known is None and not isinstance(real, SpecTensor) and not real.dim():
                    return self._number(real)
                if known is None:
                    raise GraphBreak(
                        DISPATCH_IN_PYTHON, "torch makes a tensor of its own of one that dispatches in Python"
                    )
                if IS_PARAMETER in fx_guards.instance_dict(real) and not isinstance(known, WrapperValue):
                    known.set_attr(self._tx, IS_PARAMETER, TRUE)  # the part of one is one
                return known
            case torch.SymInt():
                return size_value(self._tx.env.simplify(real.node.value))
            case torch.SymBool() | torch.SymFloat():
                raise GraphBreak(UNTRACEABLE, "a number that depends on sizes reaches __torch_dispatch__")
            case list():
                return ListValue([self._value(item) for item in real])
            case tuple():
                return TupleValue([self._value(item) for item in real], type(real))
        return self._tx.known(real)

    def _number(self, real: torch.Tensor) -> Value:
        """A number of the call that torch itself has put into a tensor."""
        options: dict[str, Value] = {"dtype": Const(real.dtype), "device": Const(real.device)}
        made = self._tx.tensors.call_function(torch.full, [TupleValue([]), Const(real.item())], options)
        self._kept.append(real)
        self._values[id(real)] = made
        return made

    def _reached(self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """An operator that torch's function consists of; what it gives."""
        tx = self._tx
        if is_of_inference(args, kwargs):
            return func(*args, **kwargs)
        if is_torchs_to_do(func, args, kwargs):
            self._note_writes(func, args, kwargs)
            return NotImplemented
        if func.namespace == "c10d":
            raise GraphBreak(COMMUNICATION, f"{func} on parts of a distributed tensor")
        if func is _wrapped_collective():  # what waits for it when it is read is waited for at once
            func = torch.ops._c10d_functional.wait_tensor.default
        values = [_inside(self._tx, self._value(arg)) for arg in args]
        named = {name: _inside(self._tx, self._value(arg)) for name, arg in kwargs.items()}
        before, tx.inference.apart = tx.inference.apart, None
        disabled = tx.tensors.disabled
        tx.tensors.below += 1
        try:
            classes = _dispatching(self._tx, [*values, *named.values()])
            if classes:
                self._note_writes(func, args, kwargs)
                answer = self._dispatched(func, classes, values, named)
            else:
                tx.tensors.disabled += 1
                with tx.tensors.modes.without(len(tx.tensors.modes.active)):
                    answer = tx.tensors.call_function(func, values, named)
            return self._given_back(func, tx.force(answer))
        except _SIGNALS:
            raise
        except Exception as error:
            self._mistake = error
            raise
        finally:
            tx.tensors.below -= 1
            tx.tensors.disabled = disabled
            tx.inference.apart = before

    def _dispatched(
        self, func: OpOverload, classes: list[type], args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """What the program makes of an operator."""
        tx = self._tx
        passed = [
            Const(func),
            TupleValue([Const(cls) for cls in classes]),
            TupleValue(args),
            DictValue({name: [Const(name), value] for name, value in kwargs.items()}),
        ]
        for cls in classes:
            if not isinstance(cls.__torch_dispatch__, types.MethodType):  # type: ignore[attr-defined]
                raise GraphBreak(
                    DISPATCH_IN_PYTHON, f"the __torch_dispatch__ of {cls.__name__} is not written in Python"
                )
            handler = Const(cls).get_attr(tx, "__torch_dispatch__")
            answer = tx.force(handler.call(tx, list(passed), {}))
            if not answer.stands_for(NotImplemented):
                if is_view(func) and isinstance(answer, WrapperValue) and isinstance(args[0], WrapperValue):
                    answer.root = args[0].root
                return answer
        raise GraphBreak(DISPATCH_IN_PYTHON, f"no __torch_dispatch__ takes {func}")

    def _note_writes(self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Torch counts what is written to an existing tensor, also where the class writes elsewhere."""
        if torch.Tag.inplace_view in func.tags:
            raise GraphBreak(
                DISPATCH_IN_PYTHON, f"{func} changes the form of a tensor that dispatches in Python"
            )
        for tensor in written_by(func, args, kwargs):
            if any(isinstance(arg, (list, tuple)) and any(one is tensor for one in arg) for arg in args):
                continue  # of those in a list torch does not count it
            value = self._value(tensor)
            if isinstance(value, WrapperValue) and value.root.source is not None:
                self._tx.effects.deferred(torch.autograd.graph.increment_version, [value.root], {})

    def _given_back(self, func: OpOverload, answer: Value) -> Any:
        if isinstance(answer, (TupleValue, ListValue)):
            made = [self._given_back(func, self._tx.force(item)) for item in answer.items]
            return made if isinstance(answer, ListValue) else tuple(made)
        if isinstance(answer, TensorValue):
            if answer.meta.requires_grad and id(answer) not in self._fakes:
                raise GraphBreak(DISPATCH_IN_PYTHON, f"{func} gives a tensor that requires grad by itself")
        elif not isinstance(answer, Const):
            raise GraphBreak(DISPATCH_IN_PYTHON, f"{func} gives {answer.describe()}")
        return self.stand_in(answer)


def _wrapped_collective() -> Any:
    """The operator that makes a tensor which waits for a collective; None where nothing has registered it."""
    found = getattr(torch.ops._c10d_functional, "_wrap_tensor_autograd", None)
    return None if found is None else found.default


def _with_bases(given: Any) -> list[Any]:
    """The tensors in an operation's arguments, and those that they are views of."""
    if isinstance(given, torch.Tensor):
        return [given, given._base] if given._is_view() else [given]
    if isinstance(given, dict):
        return _with_bases([*given.values()])
    return [one for part in given for one in _with_bases(part)] if isinstance(given, (tuple, list)) else []


def _inside(tx: Context, value: Value) -> Value:
    """A value as it is one level below autograd."""
    if isinstance(value, WrapperValue) and value.plain is not None:
        return value.plain
    return value.mapped(tx, lambda part: _inside(tx, part))


def _is_operator(function: Callable[..., Any]) -> bool:
    """Whether Python makes another exception of what the function raises: ``x + y`` asks both operands."""
    return getattr(function, "__module__", None) == "_operator"


def _dispatching(tx: Context, values: list[Value]) -> list[type]:
    """The classes that an operator is handed to, in torch's order: subclasses before their bases."""
    found: list[type] = []
    for value in sequence_leaves(tx, values):
        if isinstance(value, WrapperValue) and dispatches(value.meta.cls):
            add_classes(found, [value.meta.cls])
    return found
