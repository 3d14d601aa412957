"""Which sizes and integers are symbolic: by ``dynamic=``, by marks, and by what differed between calls."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import CodeType, FunctionType, MappingProxyType
from typing import Any, Protocol

import torch

from dynamo_capture.foundation.errors import CapturedAnew
from dynamo_capture.foundation.libraries.parameters import is_parameter
from dynamo_capture.foundation.part_options import part_option
from dynamo_capture.graph.graph_builder import GraphOutput
from dynamo_capture.runtime.replacement_calls import instance_dict
from dynamo_capture.session.known_functions import KnownFunctions, Loop, Part, key_of
from dynamo_capture.session.size_history import MANY, Place, SizeHistory, Varies, Varying
from dynamo_capture.session.stock_settings import (
    joins_equal_sizes,
    silenced_functions,
    stock_setting,
    stock_sizes,
)
from dynamo_capture.sources.origins import is_argument, is_drawn
from dynamo_capture.sources.sources import AnswerSource
from fx_interface.errors import UserLocation
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import InstanceDictSource, ItemSource, SizeSource, Source, StrideSource
from fx_interface.symbols import Expr, IntLike, ShapeEnv

_MOST_VERSIONS = 8
"""So many values of a number that an operation must know get a version each; then the operation runs in Python."""


_MOST_ROUNDS = 1000
"""So many rounds of a loop that was resumed are one graph at most."""

_SETTLED = 2
"""So many different contents of a tensor are worth a version of the code each: those of a flag."""


class Sizing(Protocol):
    """What a trace keeps of its symbols."""

    env: ShapeEnv
    output: GraphOutput
    size_bindings: list[tuple[Any, Source]]
    packed_strides: list[tuple[Expr, Source]]


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """A tensor that wraps others: what holds of its sizes holds of theirs, where they have the same."""

    shape: tuple[int, ...]
    marked: Mapping[int, Any]
    static: Collection[int]
    is_argument: bool


class Policy:
    """The choice for one capture. ``dynamic``: True every size, False none, None those that differed. ``fullgraph``: no
    graph break is made where another version will do. ``follows_data``: sizes and numbers from data are symbols, and
    break no graph. ``callers_sizes``: what sizes that vary in the code that calls this are now."""

    def __init__(
        self,
        dynamic: bool | None,
        history: SizeHistory,
        fullgraph: bool = False,
        follows_data: bool = True,
        leaves_apart: bool = False,
        functions: KnownFunctions | None = None,
        varying: Mapping[int, tuple[CodeType, Varying]] = MappingProxyType({}),
        callers_sizes: Collection[int] = (),
    ) -> None:
        self.follows_data = follows_data
        self._chosen = _by_default() if dynamic is None else dynamic
        self.silenced = silenced_functions()
        self._fixes_integers = stock_setting("specialize_int", False)
        self._fixes_floats = stock_setting("specialize_float", False)
        self._fixes_parameters = stock_setting("force_parameter_static_shapes", True)
        self.leaves_apart = leaves_apart
        self.copies_leaves = not (leaves_apart or history.leaves_change)
        self.functions = KnownFunctions() if functions is None else functions
        self._varying = varying
        self._callers_sizes = callers_sizes
        self.is_fullgraph = fullgraph
        self._history = history
        self.hooked_copies = history.hooked_copies
        history.captures += 1
        self._by_values: dict[tuple[int, int], list[tuple[Expr, list[Place]]]] = {}
        self._joins_equal = joins_equal_sizes()
        self._integers: dict[Source, Expr] = {}
        self._wrappers: dict[Source, _Wrapper] = {}

    @property
    def modes_apart(self) -> str | None:
        """Why a block of a TorchFunctionMode is left to Python, if it is."""
        return self._history.modes_apart

    def leave_modes(self, why: str) -> None:
        """Blocks of a TorchFunctionMode are left to Python from now on."""
        self._history.modes_apart = why

    def leave_copies(self) -> None:
        """Graphs end where autograd follows a leaf whose data were set in them from now on."""
        self._history.leaves_change = True

    @property
    def _dynamic(self) -> bool | None:
        """``dynamic`` for what is read now."""
        return part_option("dynamic", self._chosen)  # type: ignore[no-any-return]

    def is_left(self, code: CodeType) -> bool:
        """Whether calls of this code are left to Python."""
        return id(code) in self.functions.left and not self.is_fullgraph

    def is_loop_left(self, loop: Loop) -> bool:
        """Whether this loop is left to Python."""
        return self.functions.has_left(loop) and not self.is_fullgraph

    def is_open(self, source: Source | None) -> bool:
        """Whether this is part of what Python has made in the middle of a function, of now more and now fewer parts."""
        return source is not None and self._history.is_open(source.expression)

    def varying(self, source: Source) -> Varies | None:
        """What is known to vary of what is read from ``source``; None: nothing."""
        return self._history.varying(source.expression)

    def goes_on(self, original: CodeType, parameters: Mapping[str, str]) -> None:
        """The rest of ``original`` is called with ``parameters`` that are read from sources of these texts."""
        known = self._varying.get(id(original))
        if known is not None:
            self._history.hand_down(known[1], parameters)

    def symbolic_integer(self, tx: Sizing, real: int, source: Source) -> Expr | None:
        """A symbol for an integer read from ``source``, or None: a constant. There is one for each place, however often
        that is read."""
        if self._dynamic is False or self._fixes_integers:
            return None
        known = self._integers.get(source)
        if known is not None:
            return known
        different = self._history.record_integer(source.expression, real)
        expression = source.expression
        if is_drawn(source) or expression in self._history.open_integers or self._history.is_open(expression):
            different = MANY
        if different < 2 and not (self._dynamic and real not in (0, 1) and is_argument(source)):
            return None
        is_size = different < MANY and min(self._history.least_integer(source.expression), real) >= 2
        expr = tx.env.create_symbol(real, source, low=2 if is_size else None)
        tx.output.symbol(expr, source, real)
        self._integers[source] = expr
        return expr

    def is_open_float(self, real: float, source: Source) -> bool:
        """Whether a float is read when the code runs: one that has differed."""
        if self._dynamic is False or self._fixes_floats:
            return False
        differs = self._history.record_float(source.expression, real)
        return differs or (self._dynamic is True and is_argument(source))

    def has_too_many_values(self, key: str, value: float, most: int = _MOST_VERSIONS) -> bool:
        """Whether a number that has to be known had better end the graph: code has been compiled for ``most``."""
        return self._history.record_known(key, value) > most and not self.is_fullgraph

    def note_fixed(self, where: UserLocation | None, size: str, value: int) -> None:
        """The backend has made code for one value of a size, because of an operation in a line."""
        if self._history.record_known(f"{where}: {size}", value) >= _MOST_VERSIONS and where is not None:
            self._history.exhausted.add(where)

    def is_exhausted(self, where: UserLocation | None) -> bool:
        """Whether the backend has made code for many values of one size, because of an operation in a line."""
        return bool(self._history.exhausted) and where in self._history.exhausted and not self.is_fullgraph

    def varies(self, real: Any, source: Source) -> bool:
        """Whether a number of numpy has had several values: it is not worth a version for each."""
        return self._history.record_integer(source.expression, real) >= MANY

    def is_argument(self, source: Source) -> bool:
        """Whether a source leads to data of a call rather than to the state of an object."""
        return is_argument(source)

    def is_decisive(self, source: Source | None) -> bool:
        """Whether code is made for what is in this argument."""
        decisive = self._history.decisive
        return bool(decisive) and source is not None and source.expression in decisive

    def is_settled(self, real: torch.Tensor, source: Source) -> bool:
        """Whether a tensor is part of an object's state, or an argument that decides about the graph, and has held few
        different things so far."""
        is_decisive = self.is_decisive(source)
        if is_argument(source) and not is_decisive:
            return False
        readers = self._readers(source) if is_decisive else []
        most = _SETTLED if not is_decisive else 1 if readers and None not in readers else MANY
        known = self._history.contents.setdefault(source.expression, set())
        if len(known) <= most:
            known.add(repr(real.tolist()))
        if len(known) <= most or (is_decisive and self.is_fullgraph):
            return True
        self._leave(readers)
        return False

    def note_reader(self, source: Source, parts: Sequence[Part]) -> None:
        """Python is given the numbers in an argument, inside of these functions and loops, the innermost first."""
        self._history.readers.setdefault(source.expression, {})[tuple(map(key_of, parts))] = list(parts)

    def _readers(self, source: Source) -> list[Part | None]:
        """What is given an argument's numbers and can be left to Python; None for what cannot."""
        found = self._history.readers.get(source.expression, {}).values()
        return [next(filter(self.functions.can_leave, parts), None) for parts in found]

    def _leave(self, readers: Sequence[Part | None]) -> None:
        """There have been several contents: what is given them is left to Python from now on. Raises ``CapturedAnew``
        where it was not before."""
        fresh = [part for part in readers if part is not None and not self.functions.has_left(part)]
        if fresh and None not in readers:
            for part in fresh:
                self.functions.leave(part)
            raise CapturedAnew

    def has_answer_for_each_size(self, function: Any) -> bool:
        """Whether a function with a cache is asked for each size alone."""
        return function in self._history.asked_for_each

    def ask_for_each_size(self, function: Any) -> None:
        """It is from now on: tracing into it has changed what the trace knows. Raises ``CapturedAnew``."""
        self._history.asked_for_each.add(function)
        raise CapturedAnew

    def decide_by(
        self, found: Collection[Source], relied: Collection[Source], where: UserLocation | None
    ) -> bool:
        """Whether the frame, whose graph ends at ``where``, is to be captured again: because it is to know what is in
        ``found``, or had better not, as what is in those ``relied`` on has been of no use."""
        history = self._history
        known = {*history.decisive, *history.useless}
        fresh = [source.expression for source in found if source.expression not in known]
        history.decisive.update(dict.fromkeys(fresh, where))
        if fresh:
            return True
        vain = [
            source.expression
            for source in relied
            if source.expression in history.decisive and history.decisive[source.expression] == where
        ]
        for expression in vain:
            del history.decisive[expression]
        history.useless.update(vain)
        return bool(vain)

    def any_with_this_code(self, real: FunctionType, source: Source) -> bool:
        """Whether any function with the same code will do: one that is made anew for each call."""
        local = (
            real.__closure__ is not None or "<lambda>" in real.__qualname__ or "<locals>" in real.__qualname__
        )
        return local and not vars(real) and self._history.record_function(source.expression, real)

    def most_rounds(self, source: Source) -> int:
        """How many items of an iterator one graph may read ahead: a single one where the number was never the same."""
        known = self._history.rounds.get(source.expression, ())
        return 1 if sum(taken > 1 for taken in known) >= MANY else _MOST_ROUNDS

    def record_rounds(self, source: Source, taken: int) -> None:
        """A graph has been made that reads so many items of an iterator ahead."""
        self._history.record_rounds(source.expression, taken)

    def sizes_of(
        self, tx: Sizing, real: torch.Tensor, source: Source
    ) -> tuple[tuple[IntLike, ...], tuple[IntLike, ...], tuple[Collection[int], Collection[int]]]:
        """Sizes and strides of an input, and which dimensions' sizes and strides are left open in its guard."""
        shape, stride = tuple(torch.Tensor.size(real)), tuple(torch.Tensor.stride(real))
        if is_parameter(real) and self._fixes_parameters:
            return shape, stride, ((), ())
        if self.is_decisive(source) and self.is_settled(real, source):
            self._history.record_sizes(source.expression, shape)
            return shape, stride, ((), ())
        own = instance_dict(real) or {}
        marked, static = own.get("_dynamo_capture_dynamic", {}), own.get("_dynamo_capture_static", ())
        if own:
            theirs, fixed = stock_sizes(own)
            marked, static = {**theirs, **marked}, {*fixed, *static}
        outer = self._wrapper_around(source)
        if outer is not None and outer.shape == shape:
            marked, static = {**outer.marked, **marked}, {*outer.static, *static}
        from_call = is_argument(source) if outer is None else outer.is_argument
        if type(real).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
            self._wrappers[source] = _Wrapper(shape, marked, static, from_call)
        if self._dynamic is False and not marked:
            return shape, stride, ((), ())
        callers = self._callers_sizes if from_call else ()
        seen = self._history.record_sizes(source.expression, shape, callers)
        is_open = self._history.is_open(source.expression)
        if is_open:
            seen = (None,) * len(shape)
        chosen = [
            d for d, n in enumerate(shape)
            if n >= 2 and d not in static
            and (d in marked or (seen[d] is None if self._dynamic is None else self._dynamic and from_call))
        ]  # fmt: skip
        first = self._history.record_form(source.expression, shape, stride)
        known_strides = self._history.record_strides(source.expression, stride, callers)
        moved = [d for d, n in enumerate(stride) if n >= 2 and (is_open or known_strides[d] is None)]
        if not chosen and not moved:
            return shape, stride, ((), ())
        sizes: list[IntLike] = list(shape)
        for dim in chosen:
            bounds = marked.get(dim, (None, None))
            low, high = bounds
            values = None if is_open or shape[dim] in self._callers_sizes else (shape[dim], first[dim])
            place = Place(source.expression, dim)
            sizes[dim] = self._symbol(tx, shape[dim], SizeSource(source, dim), values, place, low, high)
        strides, open_strides = self._strides(tx, source, sizes, (shape, stride, first[len(shape) :]), moved)
        return tuple(sizes), strides, (chosen, open_strides)

    def note_jagged(self, source: Source, shape: tuple[int, ...], ragged: int) -> None:
        """A nested tensor whose rows, a tensor of this shape, vary in one dimension from call to call."""
        self._wrappers[source] = _Wrapper(shape, {ragged: (None, None)}, (), is_argument(source))

    def _wrapper_around(self, source: Source) -> _Wrapper | None:
        """What is known of the tensor that a tensor is an attribute of, if that one dispatches in Python."""
        if isinstance(source, AnswerSource):
            return self._wrappers.get(source.parent)
        space = source.base if isinstance(source, ItemSource) else None
        owner = space.base if isinstance(space, InstanceDictSource) else None
        return None if owner is None else self._wrappers.get(owner)

    def _symbol(
        self,
        tx: Sizing,
        size: int,
        source: Source,
        values: tuple[int, int] | None,
        place: Place,
        low: int | None = None,
        high: int | None = None,
    ) -> Expr:
        """One symbol for each pair of ``values``, now and when this was first seen: what was equal both times, and in
        each capture between, is taken to be equal for a reason, and guarded so, unless the program says that it is
        not, or nothing is known of it yet (None). ``low``, ``high``: bounds that the user states, dropped for a size
        outside of them."""
        if values is None:
            made = tx.env.create_symbol(size, source, low=2)
            tx.output.symbol(made, source, size)
            return made
        if (low is not None and size < low) or (high is not None and size > high):
            low = high = None
        known = self._by_values.setdefault(values, [])
        joins = low is None and high is None and self._joins_equal
        for expr, places in known if joins else ():
            if all(self._history.were_equal(place, other) for other in places):
                places.append(place)
                tx.size_bindings.append((expr, source))
                return expr
        made = tx.env.create_symbol(size, source, low=max(2, low or 2), high=high)
        known.append((made, [place]))
        tx.output.symbol(made, source, size)
        return made

    def _strides(
        self,
        tx: Sizing,
        source: Source,
        sizes: Sequence[IntLike],
        form: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
        moved: Collection[int],
    ) -> tuple[tuple[IntLike, ...], list[int]]:
        """Strides, and which are left open: a stride that packs the dimensions within it follows their sizes; another
        is a symbol if it has differed, else a constant. ``form``: sizes, strides, and the strides at first."""
        shape, stride, first = form
        strides: list[IntLike] = list(stride)
        packed: IntLike = 1
        concrete = 1
        left_open = []
        for dim in sorted(range(len(shape)), key=lambda d: (stride[d], shape[d] != 1, -d)):
            if stride[dim] == concrete:
                strides[dim] = packed
                if isinstance(packed, Expr):
                    tx.packed_strides.append((packed, StrideSource(source, dim)))
            elif dim in moved:
                values, place = (stride[dim], first[dim]), Place(source.expression, len(shape) + dim)
                strides[dim] = self._symbol(tx, stride[dim], StrideSource(source, dim), values, place)
            if isinstance(strides[dim], Expr):
                left_open.append(dim)
            if shape[dim] != 1 and stride[dim] != 0:
                packed = strides[dim] * sizes[dim]
                concrete = stride[dim] * shape[dim]
        return tuple(strides), left_open


def _by_default() -> bool | None:
    """``dynamic`` where nobody has stated it."""
    if not stock_setting("assume_static_by_default", True):
        return True
    return None if stock_setting("automatic_dynamic_shapes", True) else False
