"""Operations on tensors: one call of a torch function, a tensor method or an operator is one node.

The function itself runs once on tensors without data to learn what it returns; that is memoised by the function and
what is known of its arguments. A result without tensors (a size, a dtype, ``dim()``) becomes a constant, with no node.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import torch
from torch.fx import Node

from dynamo_capture.foundation.break_kinds import (
    BREAK_REQUESTED,
    CONTENT_DECIDES,
    DESCRIPTOR,
    GRADIENT_ASKED,
    TENSOR_MEMORY,
)
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.polyfills.torch import substitute_for
from dynamo_capture.runtime.calls.opaque_calls import OpaqueCall
from dynamo_capture.semantics.numbers import floats, in_tensors
from dynamo_capture.semantics.tensors import foreach
from dynamo_capture.semantics.tensors.arguments import (
    defaults,
    indexing,
    mapped_indices,
    marks,
    numpy_numbers,
    of_numbers,
    points,
    refused,
    reshaping,
    scalars,
)
from dynamo_capture.semantics.tensors.arguments.reserved_names import without_reserved_names
from dynamo_capture.semantics.tensors.content import contents, data_numbers, known_sizes, late_parts
from dynamo_capture.semantics.tensors.content.followed import Followed
from dynamo_capture.semantics.tensors.content.small_buffers import State
from dynamo_capture.semantics.tensors.hooks import check_not_hooked
from dynamo_capture.semantics.tensors.methods import METHODS
from dynamo_capture.semantics.tensors.not_operations import check_function_is_operation, check_is_operation
from dynamo_capture.semantics.tensors.replaced_data import Replaced, count_writes
from dynamo_capture.semantics.tensors.results import views, writes
from dynamo_capture.semantics.tensors.results.catching import check_packing
from dynamo_capture.semantics.tensors.results.library_names import rely_on_names
from dynamo_capture.semantics.tensors.results.outcome import Outcome, new_tensors
from dynamo_capture.semantics.tensors.results.outcomes import Outcomes, label_of
from dynamo_capture.semantics.tensors.torchs_members import BY_METHOD_ONLY
from dynamo_capture.session.controls import is_allowed_in_graph
from dynamo_capture.tables import first_answer
from dynamo_capture.values import Const, TensorMeta, TensorValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.numbers.random_generator import DiceValue
from dynamo_capture.values.tensors.wrapper import WrapperValue
from fx_interface.graph import BORN_KEY, EXPECTED_KEY
from fx_interface.operator_facts.collectives import is_collective, is_wait
from fx_interface.symbols import Symbol


class Operation:
    """A node that may come: ``target`` is what it calls, ``function`` what the program has called."""

    __slots__ = ("args", "function", "kwargs", "op", "target")

    def __init__(
        self,
        op: str,
        target: Any,
        function: Callable[..., Any],
        args: list[Value],
        kwargs: dict[str, Value],
    ) -> None:
        self.op = op
        self.target = target
        self.function = function
        self.args = args
        self.kwargs = kwargs

    @property
    def name(self) -> str:
        """The last part of the name."""
        return self.target if isinstance(self.target, str) else getattr(self.target, "__name__", "")


def _of_marked(tx: Context, call: Operation) -> None:
    """``torch.view_as_real(x.conj())``."""
    marks.check_unmarked(call.name, call.args)


def _of_numbers(tx: Context, call: Operation) -> Value | None:
    """``torch.tensor([0, n])``."""
    if not tx.env.has_data or call.name not in of_numbers.NAMES:
        return None
    return of_numbers.stacked(tx, call.args, call.kwargs)


def _of_floats(tx: Context, call: Operation) -> Value | None:
    """``x * a``, of a float that varies."""
    numpy_numbers.replaced(tx, call)
    if (read := in_tensors.read_by_torch(tx, call)) is not None:
        return read
    replaced = scalars.without_open_floats(tx, call.name, call.args, call.kwargs)
    if isinstance(replaced, Value):
        return replaced
    call.args = replaced
    return None


def _of_sizes(tx: Context, call: Operation) -> Value | None:
    """``x.reshape(n, -1)``, of a size from data."""
    if tx.env.has_data and call.name in reshaping.NAMES and not call.kwargs:
        call.args = reshaping.with_all_sizes(tx, call.args)
    return None


_REWRITES = (_of_marked, foreach.rewritten, late_parts.rewritten, _of_numbers, _of_floats, _of_sizes)
"""What puts an operation in terms of others, or its arguments in other terms, or leaves it to Python."""


class Operations(Outcomes):
    """The tensor operations of one trace. ``memo`` outlives it."""

    interceptors: ClassVar[tuple[Callable[[Context, Operation], Value | None], ...]]
    """Who is asked about an operation, in order, before torch's kernels."""

    def __init__(self, tx: Context, memo: dict[Any, Outcome]) -> None:
        super().__init__(tx, memo)
        self.followed = Followed()
        self.trained: set[Node] = set()
        """Nodes of tensors that have come to require grad by what was written to them."""
        self.state = State()
        self.stand_ins: list[TensorValue] = []
        """Copies of what data choose, which may be read only."""
        self.replaced: dict[int, Replaced] = {}  # the tensors whose data the program has set, by id
        self.leaves: list[tuple[str, Callable[[], torch.Tensor]]] = []  # made before the graph, in variables
        self.journal: Any = None  # what notes operations, while a call is recorded
        self.emptied = False  # whether the program has emptied the storage of an existing tensor

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
        check_function_is_operation(function)
        kwargs = defaults.with_default_device(self._tx, function, kwargs)
        return self.operation("call_function", function, function, list(args), kwargs)

    def plain_method(
        self, owner: TensorValue, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """``tensor.name(*args, **kwargs)``, of which neither class nor mode is asked."""
        self._tx.attributes.in_class(owner.python_type(), name)
        numbers = (
            late_parts.numbers_of(self._tx, owner) if name == "tolist" and not (args or kwargs) else None
        )
        if numbers is not None:
            return numbers
        if owner.content is not None and name in contents.READERS:
            return contents.read(self._tx, owner, name)
        dice = kwargs.get("generator")
        if isinstance(dice, DiceValue):
            kept = {key: value for key, value in kwargs.items() if key != "generator"}
            return self._tx.draws.by_filling(self._tx, owner, name, dice, args, kept)
        check_is_operation(name, args, kwargs)
        marks.check_unmarked(name, [owner, *args])
        args, kwargs = without_reserved_names(name, args, kwargs)
        special = METHODS.get(name)
        if special is not None:
            if args or kwargs or name.startswith("__"):
                refused.check_arguments(self._tx, owner, name, args, kwargs)
            answer = special(self._tx, owner, args, kwargs)
            if answer is not None:
                return answer
        if owner.attrs is not None and name in owner.attrs:
            return owner.attrs[name].call(self._tx, args, kwargs)
        function = getattr(torch.Tensor, name, None)
        if owner.meta.cls is torch.nn.Parameter and name in vars(torch.nn.Parameter):
            raise GraphBreak(DESCRIPTOR, f"{name}() of a parameter is called, which is not that of a tensor")
        if getattr(function, "__objclass__", None) is object:
            raise GraphBreak(DESCRIPTOR, f"{name}() of an object is called on a tensor")
        if function is None:
            return owner.get_attr(self._tx, name).call(self._tx, args, kwargs)
        substitute = substitute_for(function)
        if substitute is not None:
            return self._tx.calls.by_substitute(Const(function), substitute, [owner, *args], kwargs)
        return self.operation("call_method", name, function, [owner, *args], kwargs)

    def plain_item(self, owner: TensorValue, key: Value) -> Value:
        """``tensor[key]``, of which neither class nor mode is asked, unless it becomes an operation."""
        if self._tx.output.indexes_by_tensors:
            found = points.element(self._tx, owner, key)
            if found is not None:
                return found
        unmapped = mapped_indices.unmapped(self._tx, owner, key)
        if unmapped is not None:
            return unmapped.of_result(self._tx, self.plain_item(owner, unmapped.key))
        owner, rest = indexing.without_open_integers(self._tx, owner, key)
        if rest is None:
            return owner
        rest = indexing.with_tensors(self._tx, rest)
        return self.operation("call_function", operator.getitem, operator.getitem, [owner, rest], {})

    def set_plain_item(self, owner: TensorValue, key: Value, value: Value) -> None:
        """``tensor[key] = value``, of which neither class nor mode is asked, unless it becomes an operation."""
        found = mapped_indices.unmapped(self._tx, owner, key)
        if found is not None:
            key, value = found.key, found.stored(self._tx, value)
        owner, rest = indexing.without_open_integers(self._tx, owner, key)
        key = Const(...) if rest is None else indexing.with_tensors(self._tx, rest)
        value = numpy_numbers.stored(self._tx, value)
        self.operation("call_function", operator.setitem, operator.setitem, [owner, key, value], {})

    def operation(
        self,
        op: str,
        target: Any,
        function: Callable[..., Any],
        args: list[Value],
        kwargs: dict[str, Value],
    ) -> Value:
        """One operation: what the first of the ``interceptors`` that takes it makes of it."""
        call = Operation(op, target, function, args, kwargs)
        begun = None if self.journal is None else self.journal.begins(call)
        answer = first_answer(self.interceptors, self._tx, call)
        made = self.plain(call) if answer is None else answer
        if begun is not None:
            self.journal.ends(begun, made)
        return made

    def plain(self, call: Operation) -> Value:
        """An operation that torch's own kernels carry out."""
        for rewrite in _REWRITES:
            answer = rewrite(self._tx, call)
            if answer is not None:
                return answer
        return self._node(call)

    def _node(self, call: Operation) -> Value:
        tx, function = self._tx, call.function
        if not rely_on_names(tx, function):
            return tx.inliner.call_function(Const(function), call.args, call.kwargs)
        tensors: list[TensorValue] = []
        kwargs = defaults.with_surrounding_device(tx, function, call.kwargs)
        outcome, made = self._outcome(call.target, function, call.args, kwargs, tensors)
        if self.emptied and any(tensor.memory.real is not None for tensor in tensors):
            raise GraphBreak(TENSOR_MEMORY, "an existing tensor is used after a storage was emptied")
        if outcome.reads:
            chosen = indexing.checked(function, call.args, [tensors[index] for index in outcome.reads])
            known = contents.with_numbers(tx, call.args, kwargs, chosen, masks=function in indexing.FUNCTIONS)
            return self.operation(call.op, call.target, function, *known)
        if outcome.warns:
            return tx.inliner.call_function(Const(function), call.args, kwargs)
        opaque = function if isinstance(function, OpaqueCall) else None
        is_users = is_allowed_in_graph(function) if opaque is None else not opaque.is_pure
        if not outcome.has_tensor and outcome.is_pure:
            if is_users and outcome.result is not None:
                text = f"{label_of(function)}, which is allowed in the graph, gives no tensor"
                raise GraphBreak(BREAK_REQUESTED, text)
            if not is_users:
                return self.constant_result(outcome.result)
        spec = self.spec_tree(outcome.result, tensors)
        rerun = partial(self.operation, call.op, call.target, function, kwargs=call.kwargs)
        promoted = defaults.by_promotion(tx, call.args, kwargs, spec, rerun)
        if promoted is not None:
            return promoted
        check_packing(tx, outcome.may_save)
        lasts = tx.output.lasts
        if is_collective(call.target) and not is_wait(call.target):
            tx.output.speak()
        self._note_effects(outcome, tensors)
        node = tx.output.call(
            call.op,
            call.target,
            tuple([a.argument(tx) for a in call.args]),
            {k: v.argument(tx) for k, v in defaults.with_dtype(function, kwargs, spec).items()},
            spec,
            tx.where(),
            pure=outcome.is_pure and not (is_users or writes.renews_history(tensors, tx.output.overwritten)),
            saves=outcome.may_save,
        )
        failing = self._note_data(node, made) or outcome.may_fail
        if failing or writes.may_be_refused([tensors[index] for index in outcome.written], tensors):
            tx.output.fail(node, behind=lasts)
        for index, meta in outcome.updates:
            self.becomes(tensors[index], meta)
        result = self.result_of(node, outcome.result, tensors)
        self._note_contents(call, kwargs, outcome, made, tensors, result)
        if self.journal is not None:
            self.journal.makes(call, outcome, tensors, node, result)
        return result

    def _note_contents(
        self,
        call: Operation,
        kwargs: dict[str, Value],
        outcome: Outcome,
        made: frozenset[Symbol],
        tensors: list[TensorValue],
        result: Value,
    ) -> None:
        """What is known of the content of the result."""
        tx = self._tx
        if made:
            data_numbers.note_births(tx, made, result)
            known_sizes.settle(tx, call.function, call.args, kwargs, result)
        if outcome.is_determined:
            contents.computed(tx, call.function, call.args, kwargs, result)
        self.followed.follow(call.name, call.args, outcome.writes, tensors, result)

    def _note_effects(self, outcome: Outcome, tensors: list[TensorValue]) -> None:
        """What an operation does besides computing its results."""
        tx = self._tx
        written = [tensors[index] for index in outcome.written]
        writes.check_resized([tensors[index] for index in outcome.resized])
        writes.check_refused_views(tx, written, tensors)
        views.check_views(tx, outcome, tensors)
        self._note_leaves(outcome, tensors)
        if outcome.writes or outcome.updates:
            changed = [*written, *(tensors[index] for index, _ in outcome.updates)] or None
            self._check_read_only(tensors if changed is None else changed)
            check_not_hooked(tx, changed)
        if outcome.draws:
            tx.output.draw()
        if outcome.writes:
            late_parts.settle_before_write(tx, written or tensors)
            tx.output.write(written, self._lasting(outcome, tensors))
            contents.forget(tensors)
            count_writes(tx, written)
            writes.forget_counts(tx.inference.counts, written)

    def _check_read_only(self, written: list[TensorValue]) -> None:
        """A graph break where what is written to stands for a tensor that data choose."""
        memories = {id(one.memory) for one in self.stand_ins}
        if any(id(tensor.memory) in memories for tensor in written):
            raise GraphBreak(CONTENT_DECIDES, "a write: data choose to which object")

    def _note_leaves(self, outcome: Outcome, tensors: list[TensorValue]) -> None:
        """The program may ask for gradients of a tensor that it makes here, which not every backend can hand on."""
        made = [part.meta for part in new_tensors(outcome.result)]
        made += [meta for index, meta in outcome.updates if not tensors[index].meta.requires_grad]
        if any(meta.requires_grad and meta.is_leaf for meta in made):
            if self._tx.policy.leaves_apart:
                raise GraphBreak(GRADIENT_ASKED, "gradients are asked for of a tensor that is made here")
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

    def number(self, tensor: TensorValue, what: str, code: str = CONTENT_DECIDES) -> Value:
        """The only element of a tensor, where it is known; the graph break ``what`` otherwise."""
        if type(tensor) is WrapperValue:  # its class would be asked
            raise GraphBreak(code, what)
        followed = tensor.content is None and self.followed.of(tensor) is not None
        taken = floats.of_tensor(self._tx, tensor) if followed else None
        if taken is not None:
            return taken
        number = data_numbers.take_out(self._tx, tensor) if tensor.content is None else None
        if number is None and tensor.content is None:
            self.state.doubted.append(tensor.node)
        return number if number is not None else contents.number(self._tx, tensor, what, code)

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
