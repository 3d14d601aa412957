"""The recorder: a list of functional operator calls, each a ``Value``; equal calls are recorded once.

Values are immutable: an equal call has an equal result and is
found in a table instead of being recorded again (common sub-expression elimination), unless it draws random numbers.
"""

from __future__ import annotations

import functools
import operator
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

import torch
from torch._ops import OpOverload

from aot_autograd.operators.functionalized import form_spec, is_form
from aot_autograd.operators.lstm import LSTM_LAYER, layer_spec
from aot_autograd.recording.simplify import SIMPLIFICATIONS
from aot_autograd.recording.values import Input, Value
from fx_interface.errors import UnsupportedProgramError, UserLocation
from fx_interface.operator_facts.data_errors import is_opaque
from fx_interface.operators import OperatorLibrary
from fx_interface.symbols import Expr, IntLike, Relation, ShapeEnv, Symbol, indicator, substitute
from fx_interface.tensor_spec import SymSpec, TensorSpec, ValueSpec

_GIVEN_SEEDS: Final = frozenset({"philox_seed", "rng_state", "seed"})
aten = torch.ops.aten
_ZERO_OR_ONE: Final = frozenset({aten.bernoulli.p, aten.bernoulli.default})
SIZED_BY_DATA: Final = frozenset(
    {
        aten.nonzero.default,
        aten.argwhere.default,
        aten.masked_select.default,
        aten.bincount.default,
        aten._ctc_loss.Tensor,
        aten.repeat_interleave.Tensor,
        aten._unique.default,
        aten._unique2.default,
        aten.unique_consecutive.default,
        aten.unique_dim.default,
        aten.unique_dim_consecutive.default,
        aten._local_scalar_dense.default,
        LSTM_LAYER,
    }
)
"""Operators whose result's size, or whose number, only data can tell: each call has symbols of its own."""
_NO_KWARGS: Final[Mapping[str, Any]] = {}


class Recorder:
    """Owner of one trace's values. ``backward`` and ``where`` are stamped on what is recorded from then on.

    ``checkpoints`` counts the checkpointed parts that are being traced, one in another. ``births``: the calls that
    give the symbols that come from data, as a size or as the number itself. ``renamed``: those of the captured graph
    that turned out to be the same number as another one, because equal calls are recorded once. ``spectrum_alone``: the
    program calls a function that reads eigenvalues or singular values, not the vectors that belong to them.
    """

    def __init__(self, operators: OperatorLibrary, env: ShapeEnv) -> None:
        self.operators = operators
        self.env = env
        self.values: list[Value] = []
        self.backward = False
        self.where: UserLocation | None = None
        self.checkpoints = 0
        self.spectrum_alone = False
        self.copied: list[Value] = []
        self.births: dict[Symbol, Value] = {}
        self.renamed: dict[Symbol, IntLike] = {}
        self._lines: list[tuple[int, UserLocation | None]] = []
        self._calls: dict[tuple[Any, ...], Value] = {}
        self._specs: dict[Any, Any] = {}
        self._inferred: dict[tuple[Any, ...], Any] = {}
        self._random: dict[OpOverload, bool] = {}
        self._checked: set[Expr] = set()

    def at(self, where: UserLocation | None) -> None:
        """What is recorded from now on comes from this line; torch's autograd nodes made from now on do too."""
        self.where = where
        self._lines.append((torch._C._autograd._get_sequence_nr(), where))

    def at_line_of(self, node: Any) -> None:
        """What is recorded from now on belongs to the backward of the line that made this autograd node."""
        position = (
            bisect_right(self._lines, node._sequence_nr(), key=itemgetter(0)) if node is not None else 0
        )
        self.where = self._lines[position - 1][1] if 0 < position <= len(self._lines) else None

    def input(self, name: str, spec: ValueSpec) -> Value:
        """A new input."""
        return self._append(Input(name), (), _NO_KWARGS, self.canonical(spec))

    def canonical(self, spec: Any) -> Any:
        """The one object that stands for all specs equal to this one, so that specs are compared by identity."""
        if isinstance(spec, tuple):
            spec = tuple(self.canonical(part) for part in spec)
            if any(isinstance(part, list) for part in spec):
                return spec  # of an operator with several results, some of them lists
        elif isinstance(spec, list):
            return [self.canonical(part) for part in spec]
        return self._specs.setdefault(spec, spec)

    def call(self, op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any] = _NO_KWARGS) -> Value:
        """Record ``op(*args, **kwargs)``. Raises what ``OperatorLibrary.infer`` raises."""
        if self.env.expected:
            self.check_required()
        values: list[Any] = [op]
        specs: list[Any] = [op]
        for arg in args:
            _freeze(arg, values, specs)
        for name, arg in kwargs.items():
            values.append(name)
            specs.append(name)
            _freeze(arg, values, specs)
        key = tuple(values)
        found = self._calls.get(key)
        if found is not None:
            if found.recomputed and not self.checkpoints and not self.backward:
                found.recomputed = False  # it is computed outside of the checkpoint as well
            return found
        created = self.env.created
        spec = self._infer(tuple(specs), op, args, kwargs)
        simplify = SIMPLIFICATIONS.get(op)
        made = None if simplify is None else simplify(self, args, spec)
        if made is None:
            made = self._append(op, tuple(args), kwargs, spec)
        if (op in SIZED_BY_DATA and op is not LSTM_LAYER) or self.env.created != created:
            self._note_births(made, created)
        if self._is_random(op):
            return self._kept_draw(made) if made.recomputed else made
        if not is_unknown(op):
            self._calls[key] = made
        return made

    def _note_births(self, made: Value, created: int) -> None:
        """The symbols that a call gives, since ``created`` there are; a checkpoint keeps what they come from.

        A backward is given its sizes: what it can only compute of the forward's values belongs to the forward.
        """
        made.recomputed = False
        if made.backward:
            _move_to_forward(made)
        given = made.op is aten.repeat_interleave.Tensor and made.kwargs.get("output_size") is not None
        if not given and self.env.created == created:
            raise UnsupportedProgramError(
                "AOT118",
                f"the size of {made.op}'s result depends on the content of a tensor",
                where=self.where,
            )
        for spec in made.spec if isinstance(made.spec, (tuple, list)) else (made.spec,):
            sizes = (spec.expr,) if isinstance(spec, SymSpec) else getattr(spec, "sizes", ())
            for size in sizes:
                atom = size.as_symbol if isinstance(size, Expr) else None
                if atom is not None and self.env.is_from_data(size):
                    self.births.setdefault(atom, made)

    def check(self, condition: Any, message: str) -> None:
        """The program goes on only where the integer ``condition`` is not 0; else it raises RuntimeError."""
        if isinstance(condition, int):
            if not condition:
                raise UnsupportedProgramError("AOT122", f"what the program states is false: {message}")
            return
        if condition not in self._checked:
            self._checked.add(condition)
            made = self._append(aten._assert_scalar.default, (condition, message), _NO_KWARGS, None)
            made.backward = made.recomputed = (
                False  # also one that a backward needs: its sizes are the forward's
            )

    def check_required(self) -> None:
        """Record checks of what has been required of sizes from data and is not checked yet: by the rule of an
        operator, or by torch's own code that runs between two calls (autograd, of the shape of a gradient)."""
        if self.env.expected:
            relations = tuple(self.env.expected)
            self.env.expected.clear()
            self.check_expected(relations)

    def check_expected(self, relations: Sequence[Relation]) -> None:
        """What operators require of sizes that only data can tell."""
        for stated in relations:
            sides = (substitute(side, self.renamed) for side in (stated.lhs, stated.rhs))
            relation = Relation(stated.op, *sides)
            self.check(indicator(relation), f"of sizes that come from data, {relation} does not hold")

    def _kept_draw(self, drawn: Value) -> Value:
        """Random numbers are drawn once: a checkpoint keeps them, zeros and ones as one byte each."""
        drawn.recomputed = False
        if drawn.op not in _ZERO_OR_ONE or drawn.spec.dtype is torch.bool:
            return drawn
        convert = aten._to_copy.default
        kept = self.call(convert, (drawn,), {"dtype": torch.bool})
        kept.recomputed = False
        return self.call(convert, (kept,), {"dtype": drawn.spec.dtype})

    def call_again(self, op: OpOverload, args: Sequence[Any]) -> Value:
        """Record a call even if an equal one is recorded, because the result needs memory of its own."""
        specs: list[Any] = [op]
        for arg in args:
            _freeze(arg, [], specs)
        return self._append(op, tuple(args), _NO_KWARGS, self._infer(tuple(specs), op, args, _NO_KWARGS))

    def call_of_form(
        self, op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], spec: TensorSpec
    ) -> Value:
        """Record a call that no graph will have, whose result is taken to be of this form."""
        return self._append(op, tuple(args), kwargs, spec)

    def item(self, value: Value, index: int) -> Value:
        """One result of a call that has several."""
        key = (value.number, index)
        found = self._calls.get(key)
        if found is None and self.checkpoints and value.op is aten.native_dropout.default:
            found = self._dropped(value, index)
            if found is not None:
                self._calls[key] = found
        if found is None:
            found = self._append(operator.getitem, (value, index), _NO_KWARGS, value.spec[index])
            found.backward, found.where, found.recomputed = value.backward, value.where, value.recomputed
            self._calls[key] = found
        return found

    def part(self, value: Value) -> Value:
        """A call's result, or the first of several."""
        while isinstance(value.spec, (tuple, list)):
            value = self.item(value, 0)
        return value

    def _dropped(self, value: Value, index: int) -> Value | None:
        """The result of a checkpoint's dropout as its mask makes it, so that only the mask is kept."""
        data, probability, training = value.args
        if index != 0 or training is False or not 0 < probability < 1:
            return None
        mask = self.call(aten._to_copy.default, (self.item(value, 1),), {"dtype": data.spec.dtype})
        return self.call(aten.mul.Scalar, (self.call(aten.mul.Tensor, (data, mask)), 1 / (1 - probability)))

    def _append(self, op: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], spec: ValueSpec) -> Value:
        recomputed = self.checkpoints > 0 and not self.backward
        made = Value(op, args, kwargs, spec, len(self.values), self.backward, self.where, recomputed)
        self.values.append(made)
        return made

    def _infer(
        self, key: tuple[Any, ...], op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        found = self._inferred.get(key)
        if found is None:
            self.env.location = self.where
            specs = [_spec(a) for a in args]
            options = {name: _spec(arg) for name, arg in kwargs.items()}
            created = self.env.created
            if op is LSTM_LAYER:
                found = layer_spec(self.operators, specs, self.env)
            elif is_form(op):
                found = form_spec(self.operators, op, specs, options, self.env)
            else:
                found = self.operators.infer(op, specs, options, self.env)
            found = self.canonical(found)
            if op not in SIZED_BY_DATA and self.env.created == created:
                self._inferred[key] = found
            self.check_required()
        return found

    def _is_random(self, op: OpOverload) -> bool:
        known = self._random.get(op)
        if known is None:
            known = self._random[op] = is_random(op)
        return known


@functools.cache
def is_random(op: OpOverload) -> bool:
    """Whether ``op`` draws random numbers: such calls are never merged, dropped or reordered.

    A backward that is given the seed its forward drew (attention's on GPUs) draws none, although it is tagged so.
    """
    return torch.Tag.nondeterministic_seeded in op.tags and not any(
        argument.name in _GIVEN_SEEDS for argument in op._schema.arguments
    )


def runs_once(op: Any) -> bool:
    """Whether a call is never merged with an equal one, nor computed again: it draws, or nothing is known of it."""
    return isinstance(op, OpOverload) and (is_random(op) or is_unknown(op))


def is_unknown(op: Any) -> bool:
    """Whether ``op`` is an operator of somebody else, of which nothing is known but its schema."""
    return isinstance(op, OpOverload) and op is not LSTM_LAYER and is_opaque(op)


def _move_to_forward(value: Value) -> None:
    """Count a value and what it is made of among the forward's, unless a gradient is under it."""
    found: dict[int, Value] = {}
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        kind = type(item)
        if kind is list or kind is tuple:
            pending.extend(item)
        elif kind is Value and item.backward and item.number not in found:
            if item.is_input or (isinstance(item.op, OpOverload) and is_random(item.op)):
                return
            found[item.number] = item
            pending += [item.args, *item.kwargs.values()]
    for item in found.values():
        item.backward = False


def _spec(arg: Any) -> Any:
    kind = type(arg)
    if kind is Value:
        return arg.spec
    if kind is list or kind is tuple:
        return kind(_spec(a) for a in arg)
    return arg


def _freeze(arg: Any, values: list[Any], specs: list[Any]) -> None:
    """Append to both keys what identifies ``arg``: a constant with its type, since ``1 == 1.0 == True``."""
    kind = type(arg)
    if kind is Value:
        values.append(arg.number)
        specs.append(id(arg.spec))
        return
    if kind is list or kind is tuple:
        values.append("(")
        specs.append("(")
        for part in arg:
            _freeze(part, values, specs)
        values.append(")")
        specs.append(")")
        return
    if kind is Expr:
        values.append(arg)
        specs.append(arg)
        return
    constant = (kind, repr(arg) if kind is float or kind is complex else arg)
    values.append(constant)
    specs.append(constant)
