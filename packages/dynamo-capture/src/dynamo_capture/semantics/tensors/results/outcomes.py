"""What an operation does, learnt from a run of the function on tensors without data, and remembered."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import CONTENT_DECIDES, DATA_NUMBER, UNTRACEABLE
from dynamo_capture.foundation.errors import DataDependent, GraphBreak, NotConstant, UserRaise
from dynamo_capture.semantics.tensors.arguments import scalars
from dynamo_capture.semantics.tensors.content import data_numbers
from dynamo_capture.semantics.tensors.python_warnings import listening
from dynamo_capture.semantics.tensors.results.outcome import Outcome
from dynamo_capture.semantics.tensors.results.refusals import worded_otherwise
from dynamo_capture.semantics.tensors.results.results import Results
from dynamo_capture.session.controls import is_allowed_in_graph
from dynamo_capture.shapes import SpecTensor
from dynamo_capture.shapes.kept_tensors import is_operator_of_program, releasing
from dynamo_capture.values import (
    ObjectValue,
    TensorMeta,
    TensorValue,
    Value,
)
from dynamo_capture.values.base import Context
from fx_interface import composites
from fx_interface.backend import STACK_PACKAGES
from fx_interface.errors import UnbackedSymbolError, UnsupportedProgramError
from fx_interface.symbols import Symbol
from fx_interface.torch_symbols.sym_floats import FloatNode
from fx_interface.torch_symbols.sym_nodes import SizeTable, SymNode

_STAND_INS = (SymNode, FloatNode, SizeTable, SpecTensor)
"""What stands for the program's sizes and tensors: what torch misses in them, the program does not."""
_AUTOGRAD = torch._C.DispatchKey.AutogradCPU
_MISTAKES = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError)
_FORMULAS = f"{composites.__name__}."
_PACKAGE = __name__.partition(".")[0]
_SYMBOLIC = "on tensor with symbolic sizes/strides"
_NO_DATA = "data is not allocated yet"
"""What torch says when a kernel asks a tensor without data for it."""


class Outcomes(Results):
    """The outcomes of operations. ``memo`` outlives the trace."""

    def __init__(self, tx: Context, memo: dict[Any, Outcome]) -> None:
        super().__init__(tx)
        self._static_memo = memo
        self._symbolic_memo: dict[Any, Outcome] = {}

    def _outcome(
        self,
        target: Any,
        function: Callable[..., Any],
        args: list[Value],
        kwargs: dict[str, Value],
        tensors: list[TensorValue],
    ) -> tuple[Outcome, frozenset[Symbol]]:
        """What the operation does, remembered or learnt, and the symbols from data that it makes; fills ``tensors``."""
        tx = self._tx
        frozen_args = tuple([a.frozen(tx, tensors) for a in args])
        frozen_kwargs = tuple([(name, v.frozen(tx, tensors)) for name, v in kwargs.items()])
        key = (target, self._mode_key(), frozen_args, frozen_kwargs)
        memo = self._symbolic_memo if tx.env.symbols else self._static_memo
        outcome = memo.get(key)
        if outcome is not None:
            return outcome, frozenset()
        known, relied = len(tx.env.symbols), len(tx.env.guards)
        scalars.limit_by_line(tx, function, tensors)
        if is_allowed_in_graph(function) or is_operator_of_program(function):
            with releasing(tx.inference, function):
                outcome = self._infer(function, args, kwargs, tensors)
        else:
            outcome = self._infer(function, args, kwargs, tensors)
        scalars.limit_sizes(tx, function, relied)
        if tx.inference.by_data:  # the numbers of this call only
            return outcome, frozenset(list(tx.env.symbols)[known:])
        memo[key] = outcome
        if len(memo) > 50_000:
            memo.clear()
        return outcome, frozenset()

    def _mode_key(self) -> Any:
        grad: Any = torch.is_grad_enabled()
        if torch._C._dispatch_tls_is_dispatch_key_excluded(_AUTOGRAD):  # in a ``__torch_dispatch__``
            grad = (grad, None)
        inference = torch.is_inference_mode_enabled()
        if torch._C._len_torch_function_stack():  # a default device, say
            return (grad, inference, torch.get_default_dtype(), object())
        if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
            state = tuple(
                (torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in ("cpu", "cuda")
            )
            return (grad, inference, torch.get_default_dtype(), state)
        return (grad, inference, torch.get_default_dtype())

    def _infer(
        self,
        function: Callable[..., Any],
        args: list[Value],
        kwargs: dict[str, Value],
        tensors: list[TensorValue],
    ) -> Outcome:
        tx = self._tx
        fakes: dict[int, SpecTensor] = {}
        tx.env.location = tx.where()
        tx.env.unanswered = None
        try:
            fake_args = [a.fake(tx, fakes) for a in args]
            fake_kwargs = {name: v.fake(tx, fakes) for name, v in kwargs.items()}
            tried, heard = listening(function)
            result = tx.inference.run(tried, fake_args, fake_kwargs)
        except DataDependent as error:
            asked = [
                i
                for i, t in enumerate(tensors)
                if error.tensor is not None and error.tensor is fakes.get(id(t))
            ]
            if not asked or not data_numbers.is_taken_as_number(tx, tensors[asked[0]]):
                raise self.failure(function, error, [*args, *kwargs.values()]) from None
            tx.inference.by_data = True
            return Outcome(None, False, [], writes=False, draws=False, reads=tuple(asked))
        except Exception as error:
            raise self.failure(function, error, [*args, *kwargs.values()]) from None
        outcome = self._described(result, tensors, [fakes[id(t)] for t in tensors])
        outcome.warns = heard.anything
        return outcome

    def failure(
        self, function: Callable[..., Any], error: Exception, args: Sequence[Value] = ()
    ) -> Exception:
        """What the failure of a run on tensors without data means: a break, or an exception of the program."""
        tx, name = self._tx, label_of(function)
        match error:
            case GraphBreak() | UserRaise() | NotConstant():
                return error
            case DataDependent():
                return GraphBreak(CONTENT_DECIDES, f"the content of a tensor is needed: {error}")
            case UnbackedSymbolError():
                return GraphBreak(DATA_NUMBER, f"{name}: {error.what}")
            case UnsupportedProgramError():
                way_out = f"; {error.action}" if error.action else ""
                return GraphBreak(UNTRACEABLE, f"{name}: {error.what}{way_out}")
            case NotImplementedError():
                return GraphBreak(UNTRACEABLE, f"{name}: {error}")
        if _SYMBOLIC in str(error):  # C++ code that takes plain sizes only
            return GraphBreak(DATA_NUMBER, f"{name}: {str(error).splitlines()[0]}")
        if _NO_DATA in str(error):
            return GraphBreak(CONTENT_DECIDES, f"the content of a tensor is needed: {name} reads it")
        if isinstance(error, AttributeError) and isinstance(error.obj, _STAND_INS):
            return GraphBreak(UNTRACEABLE, f"{name}: {error}")
        if any(isinstance(value, ObjectValue) for value in args):  # what stands for one is of another class
            return GraphBreak(UNTRACEABLE, f"{name}: {error}")
        if _is_a_mistake_of_the_stack(error):
            return GraphBreak(
                UNTRACEABLE,
                f"{name}: its sizes could not be inferred ({type(error).__name__}: {error})",
            )
        other = worded_otherwise(tx, function, name, error, args)
        if other is not None:
            refused = GraphBreak(UNTRACEABLE, other)
            tx.asking.raised(refused)
            return refused
        if tx.env.unanswered is not None:  # C++ code has asked, and raised something else then
            return GraphBreak(DATA_NUMBER, f"{name}: {tx.env.unanswered.what}")
        kinds = [value.python_type() for value in args if isinstance(value, TensorValue)]
        shown = kinds[0].__name__ if kinds else torch.Tensor.__name__
        error.args = tuple(_in_terms_of_the_program(part, shown) for part in error.args)
        return UserRaise(tx.exception(error))

    def _described(self, result: Any, tensors: list[TensorValue], order: list[SpecTensor]) -> Outcome:
        """What the last run did; ``order``: what stood for the tensor arguments in it."""
        updates = [
            (i, TensorMeta.of(fake.spec, fake.requires_grad, fake.is_leaf, t.meta.cls, t.meta.is_inference))
            for i, (t, fake) in enumerate(zip(tensors, order, strict=True))
            if fake.spec is not t.meta.spec
            or (fake.requires_grad, fake.is_leaf) != (t.meta.requires_grad, t.meta.is_leaf)
        ]
        found = [False]
        described = self.describe_result(result, order, found)
        run = self._tx.inference
        owners = [run.owner(tensor) for tensor in run.written]
        written = tuple(i for i, fake in enumerate(order) if any(owner is fake for owner in owners))
        inside = bool(owners) and all(isinstance(owner, SpecTensor) for owner in owners)  # or in an argument
        return Outcome(
            described,
            found[0],
            updates,
            writes=bool(updates or written) or (run.wrote and not inside),
            draws=run.drew,
            may_fail=run.may_fail,
            leaves_open=run.left_open,
            reads=tuple(i for i, fake in enumerate(order) if any(fake is one for one in run.read)),
            written=written,
            resized=tuple(i for i, fake in enumerate(order) if any(fake is one for one in run.resized)),
        )


def _is_a_mistake_of_the_stack(error: Exception) -> bool:
    """Whether a rule of ours has failed, and not torch, which raises what the program is to see. Where torch's C++ code
    raises it, the last frame of Python is torch's own, or one of this package, which has called it. A formula of ours
    for an operator calls others, which do not refuse what it is given in the operator's words."""
    if error.__traceback__ is None:
        return False
    *_, last = traceback.walk_tb(error.__traceback__)
    module = str(last[0].f_globals.get("__name__"))
    if module.startswith(_FORMULAS):
        return True
    return isinstance(error, _MISTAKES) and module.partition(".")[0] in STACK_PACKAGES - {_PACKAGE}


def _in_terms_of_the_program(part: Any, shown: str) -> Any:
    """A part of an operation's error; where it names the class of its arguments, that of the tensors they stand for."""
    return part.replace(SpecTensor.__name__, shown) if isinstance(part, str) else part


def label_of(function: Any) -> str:
    return getattr(function, "__qualname__", None) or repr(function)
