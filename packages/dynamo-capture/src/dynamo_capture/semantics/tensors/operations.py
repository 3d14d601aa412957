"""Operations on tensors: one call of a torch function, a tensor method or an operator is one node.

The function itself runs once on tensors without data to learn what it returns; that is memoised by the function and
what is known of its arguments. A result without tensors (a size, a dtype, ``dim()``) becomes a constant, with no node.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from dynamo_capture.foundation.errors import DataDependent, GraphBreak, NotConstant, UserRaise
from dynamo_capture.polyfills.torch import substitute_for
from dynamo_capture.semantics.numbers import floats
from dynamo_capture.semantics.tensors import foreach
from dynamo_capture.semantics.tensors.arguments import defaults, indexing, of_numbers, reshaping, scalars
from dynamo_capture.semantics.tensors.content import contents, data_numbers, known_sizes
from dynamo_capture.semantics.tensors.content.followed import Followed
from dynamo_capture.semantics.tensors.content.small_buffers import State
from dynamo_capture.semantics.tensors.hooks import check_not_hooked
from dynamo_capture.semantics.tensors.methods import METHODS
from dynamo_capture.semantics.tensors.not_operations import check_is_operation
from dynamo_capture.semantics.tensors.python_warnings import listening
from dynamo_capture.semantics.tensors.results.outcome import Outcome, new_tensors
from dynamo_capture.semantics.tensors.results.results import Results
from dynamo_capture.semantics.tensors.results.writes import is_own_memory, may_be_refused
from dynamo_capture.semantics.tensors.torchs_members import BY_METHOD_ONLY
from dynamo_capture.session.controls import is_allowed_in_graph
from dynamo_capture.shapes import SpecTensor
from dynamo_capture.values import Const, ObjectValue, TensorMeta, TensorValue, Value
from dynamo_capture.values.numbers.random_generator import DiceValue
from fx_interface.errors import UnbackedSymbolError, UnsupportedProgramError
from fx_interface.graph import BORN_KEY, EXPECTED_KEY
from fx_interface.symbols import Symbol
from fx_interface.torch_symbols.sym_floats import FloatNode
from fx_interface.torch_symbols.sym_nodes import SizeTable, SymNode

if TYPE_CHECKING:
    from torch.fx import Node

    from dynamo_capture.values.base import Context

_STAND_INS = (SymNode, FloatNode, SizeTable, SpecTensor)
"""What stands for the program's sizes and tensors: what torch misses in them, the program does not."""
_AUTOGRAD = torch._C.DispatchKey.AutogradCPU
_SYMBOLIC = "on tensor with symbolic sizes/strides"
_NO_DATA = "data is not allocated yet"
"""What torch says when a kernel asks a tensor without data for it."""


class Operations(Results):
    """The tensor operations of one trace. ``memo`` outlives it."""

    def __init__(self, tx: Context, memo: dict[Any, Outcome]) -> None:
        super().__init__(tx)
        self._static_memo = memo
        self._symbolic_memo: dict[Any, Outcome] = {}
        self.followed = Followed()
        self.trained: set[Node] = set()
        """Nodes of tensors that have come to require grad by what was written to them."""
        self.state = State()

    def get_attr(self, owner: TensorValue, name: str) -> Value:
        """``tensor.name``."""
        raise NotImplementedError

    def call_function(
        self, function: Callable[..., Any], args: Sequence[Value], kwargs: dict[str, Value]
    ) -> Value:
        """A call of a torch function or operator."""
        dice = kwargs.get("generator")
        if isinstance(dice, DiceValue):
            kept = {name: value for name, value in kwargs.items() if name != "generator"}
            return self._tx.draws.by_function(self._tx, function, dice, list(args), kept)
        method = BY_METHOD_ONLY.get(function)
        if method is not None and args and isinstance(args[0], TensorValue):
            return self.operation("call_method", method, function, list(args), kwargs)
        kwargs = defaults.with_default_device(self._tx, function, kwargs)
        return self.operation("call_function", function, function, list(args), kwargs)

    def call_method(
        self, owner: TensorValue, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """``tensor.name(*args, **kwargs)``."""
        self._tx.attributes.in_class(owner.python_type(), name)
        if owner.content is not None and name in contents.READERS:
            return contents.read(self._tx, owner, name)
        dice = kwargs.get("generator")
        if isinstance(dice, DiceValue):
            kept = {key: value for key, value in kwargs.items() if key != "generator"}
            return self._tx.draws.by_filling(self._tx, owner, name, dice, args, kept)
        check_is_operation(name, args, kwargs)
        special = METHODS.get(name)
        if special is not None:
            answer = special(self._tx, owner, args, kwargs)
            if answer is not None:
                return answer
        if owner.attrs is not None and name in owner.attrs:
            return owner.attrs[name].call(self._tx, args, kwargs)
        function = getattr(torch.Tensor, name, None)
        if getattr(function, "__objclass__", None) is object:
            raise GraphBreak("CAP214", f"{name}() of an object is called on a tensor")
        if function is None:
            return self.get_attr(owner, name).call(self._tx, args, kwargs)
        substitute = substitute_for(function)
        if substitute is not None:
            return self._tx.inliner.call_function(Const(substitute), [owner, *args], kwargs)
        return self.operation("call_method", name, function, [owner, *args], kwargs)

    def get_item(self, owner: TensorValue, key: Value) -> Value:
        """``tensor[key]``."""
        owner, rest = indexing.without_data(self._tx, owner, key)
        if rest is None:
            return owner
        rest = indexing.with_tensors(self._tx, rest)
        return self.operation("call_function", operator.getitem, operator.getitem, [owner, rest], {})

    def set_item(self, owner: TensorValue, key: Value, value: Value) -> None:
        """``tensor[key] = value``."""
        owner, rest = indexing.without_data(self._tx, owner, key)
        key = Const(...) if rest is None else indexing.with_tensors(self._tx, rest)
        value = indexing.with_tensors(self._tx, value)
        self.operation("call_function", operator.setitem, operator.setitem, [owner, key, value], {})

    def operation(
        self,
        op: str,
        target: Any,
        function: Callable[..., Any],
        args: list[Value],
        kwargs: dict[str, Value],
    ) -> Value:
        tx = self._tx
        name = target if isinstance(target, str) else getattr(target, "__name__", "")
        if name.startswith(foreach.PREFIX):
            apart = foreach.taken_apart(tx, name, args, kwargs)
            if apart is not None:
                return apart
        if tx.env.has_data and name in of_numbers.NAMES:
            made_of = of_numbers.stacked(tx, args, kwargs)
            if made_of is not None:
                return made_of
        replaced = scalars.without_open_floats(tx, name, args, kwargs)
        if isinstance(replaced, Value):
            return replaced
        args = replaced
        if tx.env.has_data and name in reshaping.NAMES and not kwargs:
            args = reshaping.with_all_sizes(tx, args)
        tensors: list[TensorValue] = []
        kwargs = defaults.with_surrounding_device(function, kwargs)
        outcome, made = self._outcome(target, function, args, kwargs, tensors)
        if outcome.reads:
            chosen = [tensors[index] for index in outcome.reads]
            args, kwargs = contents.with_numbers(tx, args, kwargs, chosen)
            return self.operation(op, target, function, args, kwargs)
        if outcome.warns:
            return tx.inliner.call_function(Const(function), args, kwargs)
        is_users = is_allowed_in_graph(function)
        if not outcome.has_tensor and outcome.is_pure:
            if is_users and outcome.result is not None:
                raise GraphBreak(
                    "CAP231", f"{label_of(function)}, which is allowed in the graph, gives no tensor"
                )
            if not is_users:
                return self.constant_result(outcome.result)
        lasts = tx.output.lasts
        self._note_effects(outcome, tensors)
        spec = self.spec_tree(outcome.result, tensors)
        kwargs = defaults.with_dtype(function, kwargs, spec)
        node = tx.output.call(
            op,
            target,
            tuple([a.argument(tx) for a in args]),
            {k: v.argument(tx) for k, v in kwargs.items()},
            spec,
            tx.where(),
            pure=outcome.is_pure and not is_users,
        )
        failing = self._note_data(node, made) or outcome.may_fail
        if failing or may_be_refused([tensors[index] for index in outcome.written], tensors):
            tx.output.fail(node, behind=lasts)
        for index, meta in outcome.updates:
            self.becomes(tensors[index], meta)
        result = self.result_of(node, outcome.result, tensors)
        if made:
            data_numbers.note_births(tx, made, result)
            known_sizes.settle(tx, function, args, kwargs, result)
        if outcome.is_determined:
            contents.computed(tx, function, args, kwargs, result)
        self.followed.follow(name, args, outcome.writes, tensors, result)
        return result

    def _note_effects(self, outcome: Outcome, tensors: list[TensorValue]) -> None:
        """What an operation does besides computing its results."""
        tx = self._tx
        if not all(is_own_memory(tensors[index]) for index in outcome.resized):
            raise GraphBreak(
                "CAP206", "out= resizes a tensor from outside of the graph, a view, or one that has views"
            )
        self._note_leaves(outcome, tensors)
        if outcome.writes or outcome.updates:
            known = outcome.written or outcome.updates
            changed = (*outcome.written, *(index for index, _ in outcome.updates))
            check_not_hooked(tx, [tensors[index] for index in changed] if known else None)
        if outcome.draws:
            tx.output.draw()
        if outcome.writes:
            tx.output.write([tensors[index] for index in outcome.written], self._lasting(outcome, tensors))
            contents.forget(tensors)
            tx.inference.counts.clear()

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
        outcome = self._infer(function, args, kwargs, tensors)
        scalars.limit_sizes(tx, function, relied)
        if tx.inference.by_data:  # the numbers of this call only
            return outcome, frozenset(list(tx.env.symbols)[known:])
        memo[key] = outcome
        if len(memo) > 50_000:
            memo.clear()
        return outcome, frozenset()

    def _note_leaves(self, outcome: Outcome, tensors: list[TensorValue]) -> None:
        """The program may ask for gradients of a tensor that it makes here, which not every backend can hand on."""
        made = [part.meta for part in new_tensors(outcome.result)]
        made += [meta for index, meta in outcome.updates if not tensors[index].meta.requires_grad]
        if any(meta.requires_grad and meta.is_leaf for meta in made):
            if self._tx.policy.leaves_apart:
                raise GraphBreak("CAP226", "gradients are asked for of a tensor that is made here")
            self._tx.output.makes_leaf = True

    def _lasting(self, outcome: Outcome, tensors: list[TensorValue]) -> list[TensorValue]:
        """The tensors of which more than the content is changed: their form, or what autograd knows of them."""
        changed = [tensors[index] for index, _ in outcome.updates]
        if torch.is_grad_enabled():
            changed += [tensors[index] for index in outcome.written if tensors[index].meta.requires_grad]
        return changed

    def _note_data(self, node: Any, made: frozenset[Symbol]) -> bool:
        """Whether the operation relies on what only data can tell; notes it, and the one symbol that it made."""
        env = self._tx.env
        expected = tuple(env.expected)
        if expected:
            node.meta[EXPECTED_KEY] = expected
            env.expected.clear()
            self._tx.output.keep(node)
        if len(made) == 1:
            (node.meta[BORN_KEY],) = made
        return bool(expected)

    def number(self, tensor: TensorValue, what: str, code: str = "CAP201") -> Value:
        """The only element of a tensor, where it is known; the graph break ``what`` otherwise."""
        followed = tensor.content is None and self.followed.of(tensor) is not None
        taken = floats.of_tensor(self._tx, tensor) if followed else None
        if taken is not None:
            return taken
        number = data_numbers.take_out(self._tx, tensor) if tensor.content is None else None
        return number if number is not None else contents.number(self._tx, tensor, what, code)

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

    def becomes(self, tensor: TensorValue, meta: TensorMeta) -> None:
        """What autograd knows of a tensor has changed, and so of its base and the base's views."""
        tensor.meta = meta
        if meta.requires_grad:
            root = tensor.root
            self.trained.update((tensor.node, root.node, *(view.node for view in root.views)))
            for other in (root, *root.views):
                if not other.meta.requires_grad and other is not tensor:
                    other.meta = TensorMeta.of(
                        other.meta.spec, True, False, other.meta.cls, other.meta.is_inference
                    )

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
                raise self.failure(function, error, args) from None
            tx.inference.by_data = True
            return Outcome(None, False, [], writes=False, draws=False, reads=tuple(asked))
        except Exception as error:
            raise self.failure(function, error, args) from None
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
                return GraphBreak("CAP201", f"the content of a tensor is needed: {error}")
            case UnbackedSymbolError():
                return GraphBreak("CAP217", f"{name}: {error.what}")
            case UnsupportedProgramError():
                return GraphBreak("CAP206", f"{name}: {error.what}")
            case NotImplementedError():
                return GraphBreak("CAP206", f"{name}: {error}")
        if _SYMBOLIC in str(error):  # C++ code that takes plain sizes only
            return GraphBreak("CAP217", f"{name}: {str(error).splitlines()[0]}")
        if _NO_DATA in str(error):
            return GraphBreak("CAP201", f"the content of a tensor is needed: {name} reads it")
        if isinstance(error, AttributeError) and isinstance(error.obj, _STAND_INS):
            return GraphBreak("CAP206", f"{name}: {error}")
        if any(isinstance(value, ObjectValue) for value in args):  # what stands for one is of another class
            return GraphBreak("CAP206", f"{name}: {error}")
        if tx.env.unanswered is not None:  # C++ code has asked, and raised something else then
            return GraphBreak("CAP217", f"{name}: {tx.env.unanswered.what}")
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


def _in_terms_of_the_program(part: Any, shown: str) -> Any:
    """A part of an operation's error; where it names the class of its arguments, that of the tensors they stand for."""
    return part.replace(SpecTensor.__name__, shown) if isinstance(part, str) else part


def label_of(function: Any) -> str:
    return getattr(function, "__qualname__", None) or repr(function)
