"""The plan: everything that the runtime must know about a traced program besides its compiled graphs.

Frozen records only, so that a plan can be stored as JSON (``plan_json.py``) and a program run again without tracing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import IntLike
from fx_interface.tensor_spec import TensorSpec


@dataclass(frozen=True, slots=True)
class FromGraph:
    """The forward graph's result number ``index``."""

    index: int


@dataclass(frozen=True, slots=True)
class FromInput:
    """The input number ``index`` itself."""

    index: int


@dataclass(frozen=True, slots=True)
class SameAs:
    """The same object as the program's earlier result number ``index``."""

    index: int


@dataclass(frozen=True, slots=True)
class FromResult:
    """The program's result number ``index``, which a view is made of: autograd leads from that view through it."""

    index: int


@dataclass(frozen=True, slots=True)
class Constant:
    """A Python value that does not depend on the inputs."""

    value: bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Replay:
    """One view operator, applied again at run time. Sizes among ``args`` and ``kwargs`` may be expressions.

    ``index`` selects a result of an operator with several; ``no_grad``: the view was made with gradients off.
    """

    op: str
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]
    index: int | None
    no_grad: bool


@dataclass(frozen=True, slots=True)
class ViewOf:
    """A view of an input, a graph result or another view, made again at run time so that aliasing is eager's.

    ``is_older``: than the last write that its base counts. Autograd makes the history of such a view anew as soon as
    its base has one, or refuses to. ``counts_apart``: its writes are not those of its base (``x.data``), but those of
    all views of the base that have this number; 0: they are its base's.
    """

    base: FromGraph | FromInput | FromResult
    steps: tuple[Replay, ...]
    is_older: bool = False
    counts_apart: int = 0


@dataclass(frozen=True, slots=True)
class AsInference:
    """What ``made`` makes, as a tensor made in inference mode: the program entered that mode by itself."""

    made: FromGraph | FromInput | ViewOf


Recipe: TypeAlias = FromGraph | FromInput | SameAs | Constant | ViewOf | AsInference
"""How one result of the program is made from the forward graph's results and the inputs."""


@dataclass(frozen=True, slots=True)
class MutatedInput:
    """Input ``input_index`` gets the graph result ``graph_index``. ``differentiable``: autograd follows the write;
    ``counted``: how many writes the input's version tells of (those to ``x.data`` have a version of their own)."""

    input_index: int
    graph_index: int
    differentiable: bool
    counted: int = 1


@dataclass(frozen=True, slots=True)
class FormOfInput:
    """Input ``input_index`` is given another form by ``steps``, operators in place, when all else is done."""

    input_index: int
    steps: tuple[Replay, ...]


@dataclass(frozen=True, slots=True)
class Apart:
    """The inputs ``written`` may not share memory with each other or with the inputs ``others``."""

    written: tuple[int, ...] = ()
    others: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SavedInput:
    """The backward graph takes the forward's input number ``index``."""

    index: int


@dataclass(frozen=True, slots=True)
class SavedOutput:
    """The backward graph takes the forward graph's result number ``index``."""

    index: int


@dataclass(frozen=True, slots=True)
class GraphPart:
    """The backward graph's result ``place``, or ``-1 - n`` for its input number n; ``depends``: on these tangents."""

    place: int
    depends: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FromCall:
    """What the call number ``index`` of a ``GradientBehind`` has given."""

    index: int


@dataclass(frozen=True, slots=True)
class TorchCall:
    """A call of an operator on what the backward graph gives (``GraphPart``), on what calls have given (``FromCall``)
    and on constants. Sizes among its arguments may be expressions."""

    op: str
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class GradientBehind:
    """The gradient of input ``input_index`` is a sparse tensor: the last of these ``calls`` gives it."""

    input_index: int
    calls: tuple[TorchCall, ...]


SavedSource: TypeAlias = SavedInput | SavedOutput
Region: TypeAlias = tuple[int, int]
"""A part of a backward: from graph results to the program's inputs, as bits by their numbers."""


@dataclass(frozen=True, slots=True)
class Tangent:
    """The gradient of graph result ``graph_index`` arrives with this spec; another layout is copied into it."""

    graph_index: int
    spec: TensorSpec


@dataclass(frozen=True, slots=True)
class BackwardPlan:
    """How the backward graph is fed and read.

    Its inputs are ``symbols`` (numbers of the plan's), then ``saved``, then ``tangents``; its
    results are the gradients of the inputs ``gradient_of``, in that order. ``gradient_from[i]`` tells where that
    gradient is found: a graph result's number, or ``-1 - n`` for the graph's input number n itself.

    ``needed_by``: where there are several tangents, for each saved value the graph results, as bits, from whose
    gradients something is computed with it. ``between``: graph results, each with the earlier ones that it is computed
    from: graph results too, or ``-1 - n`` for the program's result number n, which is a view. A new value of an input
    whose history the program changes counts as that input.
    ``leaves``: graph results that the program made leaves; ``cut``: inputs that require grad and that autograd does not
    reach, so that no backward may lead to them; ``released``: graph results that the program has differentiated
    itself, for good; ``nan_from_zeros``: sets of tangents that may make NaN of zeros, if none of a set arrives;
    ``effects``: sets of tangents of which one must arrive for operators to run of which nothing is known;
    ``partly``: inputs that autograd reaches from some results or from none, each with these graph results;
    ``read``: graph results that torch's derivative formulas compute with;
    ``saving``: where in eager's graph a node has saved something, to inputs and, by numbers behind those of the
    inputs, to the results that ``earlier_results`` lists;
    ``reading``: where the backward graph computes with something else than arriving gradients; ``saved_specs``: of
    each saved value; ``absent``: the tangents that the usual graph is given None for
    (``runtime.gradients.partial_backward``); ``behind``: inputs whose gradients torch makes of results of the backward
    graph, of which ``gradient_from`` names one.
    """

    symbols: tuple[int, ...]
    saved: tuple[SavedSource, ...]
    tangents: tuple[Tangent, ...]
    gradient_of: tuple[int, ...]
    gradient_from: tuple[int, ...]
    depends: tuple[tuple[int, ...], ...]
    needed_by: tuple[int, ...] = ()
    between: tuple[tuple[int, tuple[int, ...]], ...] = ()
    leaves: tuple[int, ...] = ()
    cut: tuple[int, ...] = ()
    released: tuple[int, ...] = ()
    nan_from_zeros: tuple[tuple[int, ...], ...] = ()
    effects: tuple[tuple[int, ...], ...] = ()
    partly: tuple[tuple[int, tuple[int, ...]], ...] = ()
    read: tuple[int, ...] = ()
    saving: tuple[Region, ...] = ()
    reading: tuple[Region, ...] = ()
    saved_specs: tuple[TensorSpec, ...] = ()
    absent: tuple[int, ...] = ()
    behind: tuple[GradientBehind, ...] = ()

    def inputs_from_results(self) -> dict[int, int]:
        """The backward graph's inputs, by number, that are results of the forward graph, and these by number."""
        first = len(self.symbols)
        return {
            first + position: source.index
            for position, source in enumerate(self.saved)
            if isinstance(source, SavedOutput)
        }

    def laid_out(self, strides: Mapping[int, tuple[IntLike, ...]]) -> BackwardPlan:
        """The same where saved values have other strides, by the numbers of the backward graph's inputs."""
        specs = enumerate(self.saved_specs, start=len(self.symbols))
        laid = (replace(spec, strides=strides.get(number, spec.strides)) for number, spec in specs)
        return replace(self, saved_specs=tuple(laid))


def earlier_results(between: Sequence[tuple[int, Sequence[int]]]) -> tuple[int, ...]:
    """All results that others are computed from, by their numbers in ``BackwardPlan.between``."""
    return tuple(sorted({index for _, earlier in between for index in earlier}))


@dataclass(frozen=True, slots=True)
class Repeat:
    """How the program can be run again on the same inputs: not at all, if there is a ``why_not``.

    ``draws``: from the random state that it began with. ``autocast``: under these devices' autocast, to these dtypes.
    ``old``: inputs that the program writes to and results depend on as they were before; ``settled``: those of them
    that it may be run on again as they are afterwards.
    """

    why_not: str
    draws: bool
    autocast: tuple[tuple[str, Any], ...]
    old: tuple[int, ...]
    settled: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class JointPlan:
    """A traced program without its graphs.

    ``symbols``: name and input position of each symbolic size; ``born``: name and graph result of each that comes from
    data and is needed after the forward graph. ``results``: the forward graph returns the program's results and hidden
    bases, then new values of mutated inputs, then what only the backward needs; ``returned`` counts the first two.
    ``differentiable``: graph results that require grad. ``no_grad``: inputs require grad, but no result depends on
    them differentiably, so that the graph runs with gradients off. ``owned``: inputs that are a module's parameters
    and buffers. ``repeat``: for second derivatives. ``opens_grad``: called with gradients off, the program turns them
    on by itself. ``forms``: inputs whose own sizes or strides change. ``placed``: inputs that must begin at this
    element of their memory (anywhere, if negative), which must hold so many elements from there. ``marked``: inputs
    that are conjugated or negated without being computed. ``functional_forms``: operators that write, whose functional
    forms (``operators/functionalized.py``) the graphs call. ``may_fail``: an operator of the forward may raise because
    of what is in its tensors; ``ignored`` counts results at the end of the forward graph that nobody reads, which are
    there because what makes them may raise. ``versions``: results that the program has written to since it made them,
    and how often; ``versions_of_inputs``: inputs that the program has written to, and how often, with nothing new.
    ``formed_views``: inputs of which a view takes another form, which autograd refuses where they are, or show, leaves.
    """

    inputs: int
    symbols: tuple[tuple[str, int], ...]
    born: tuple[tuple[str, int], ...]
    recipes: tuple[Recipe, ...]
    returned: int
    differentiable: tuple[int, ...]
    mutated: tuple[MutatedInput, ...]
    constants: tuple[torch.Tensor, ...]
    apart: Apart
    no_grad: bool
    owned: tuple[int, ...]
    repeat: Repeat
    opens_grad: bool
    forms: tuple[FormOfInput, ...]
    placed: tuple[tuple[int, int, int], ...]
    marked: tuple[int, ...]
    functional_forms: tuple[str, ...]
    may_fail: bool
    ignored: int
    versions: tuple[tuple[int, int], ...]
    versions_of_inputs: tuple[tuple[int, int], ...]
    backward: BackwardPlan | None
    formed_views: tuple[int, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether the forward graph's callable can be used as it is: no training, mutation, aliasing or constants."""
        return (
            self.backward is None
            and not self.no_grad
            and not self.mutated
            and not self.constants
            and not self.forms
            and not self.marked
            and not self.ignored
            and not self.versions
            and not self.versions_of_inputs
            and all(recipe == FromGraph(index) for index, recipe in enumerate(self.recipes))
        )
