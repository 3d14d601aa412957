"""Results that other results are computed from: gradients reach them as they do in eager.

Autograd knows a compiled function as one node, whose results have nothing to do with each other. Where the program
returns what it computes further with (``logits`` beside ``loss``), a node of its own leads from the later result to the
earlier ones:

    loss ── Between ──▶ logits ──▶ CompiledFunction ──▶ inputs
                └──────────────────────▲

As long as nobody looks at the gradient of ``logits``, that node passes its own on, and one compiled backward does all.
Where somebody does (``retain_grad()``, a hook, ``torch.autograd.grad(loss, logits)``), the program runs again with
torch's own operators to learn the gradient between the two; the compiled backward is told what it contains already.

An earlier result may be a view, of a graph result or of an input, which autograd's own nodes lead on from. Then what
the compiled backward contains already arrives at what it is a view of:

    loss ── Between ──▶ view ── ViewBackward ──▶ input
                └──────▶ CompiledFunction ──────────▲
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch

from aot_autograd.plan import BackwardPlan, FromInput, JointPlan, Recipe
from aot_autograd.runtime.result_hooks import prepare_hooks
from aot_autograd.runtime.results import root_of, view_maker
from aot_autograd.runtime.second import Repetition

_current_task = torch._C._current_graph_task_id
_will_execute = torch._C._will_engine_execute_node
_set_versions = torch._C._autograd._unsafe_set_version_counter
_NOT_KNOWN = (
    "[AOT303] the gradient of a compiled function's result is asked for that other results are computed from, and\n"
    "  the function cannot be run again from its inputs: {why}\n"
    "  to do: compute the gradient inside of the compiled function, or run it without the compiler"
)


class Given:
    """What ``Between`` nodes have said about one call: in which backward, and which gradients they have given, by the
    number of the graph's result or -1 - n for input n."""

    __slots__ = ("gradients", "repeated", "task")

    def __init__(self) -> None:
        self.task = -1
        self.gradients: dict[int, torch.Tensor] = {}
        self.repeated: tuple[list[Any], Sequence[Any]] | None = None

    def repeat(self, run: Callable[[], tuple[list[Any], Sequence[Any]]]) -> tuple[list[Any], Sequence[Any]]:
        """What ``run`` returns, which runs the program again once for all results, until the compiled backward runs."""
        self._begin()
        if self.repeated is None:
            self.repeated = run()
        return self.repeated

    def _begin(self) -> None:
        if self.task != _current_task():
            self.task = _current_task()
            self.gradients.clear()
            self.repeated = None

    def add(self, index: int, gradient: torch.Tensor) -> None:
        """The compiled backward contains this gradient of result or input ``index`` already."""
        self._begin()
        known = self.gradients.get(index)
        self.gradients[index] = gradient if known is None else known + gradient

    def without_what_is_known(self, arriving: Sequence[Any], places: Mapping[int, int]) -> list[Any]:
        """The gradients that arrive, less what of them the compiled backward contains; ``places``: where each is."""
        rest = list(arriving)
        self.repeated = None
        if self.task == _current_task():
            for index, place in places.items():
                known = self.gradients.pop(index, None)
                if known is not None and rest[place] is not None:
                    rest[place] = _difference(rest[place], known)
        return rest

    def less_for_inputs(self, gradients: Sequence[Any], inputs: Sequence[int]) -> list[Any]:
        """The compiled backward's gradients, less what ``inputs`` are given through views of them."""
        rest = list(gradients)
        if self.task == _current_task():
            for index in inputs:
                known = self.gradients.pop(-1 - index, None)
                if known is not None and rest[index] is not None:
                    rest[index] = _difference(rest[index], known)
        return rest


def _difference(total: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """``total - known``. Where an infinity is known already it is all there is: what is added to it changes nothing."""
    rest = total - known
    return rest.where(known.isfinite() | total.isnan(), 0)


class _Watched:
    """An earlier result: its hooks, which may outlive it, and whether its gradient is kept."""

    __slots__ = ("_hooks", "_tensor")

    def __init__(self, tensor: torch.Tensor) -> None:
        self._hooks: Any = None
        self._tensor = weakref.ref(tensor)

    def begin(self) -> None:
        """The dictionary of hooks that the tensor has, or gets now. Its node is the last one."""
        tensor = self._tensor()
        if tensor is None or tensor.grad_fn is None:
            return
        if tensor._backward_hooks is None:
            prepare_hooks((tensor,), (0,), tensor.grad_fn)
        self._hooks = tensor._backward_hooks

    def is_looked_at(self) -> bool:
        tensor = self._tensor()
        return bool(self._hooks) or (tensor is not None and tensor.retains_grad)


class _Link:
    """One result and the earlier ones that it is computed from, by their numbers in ``BackwardPlan.between``;
    ``recipes`` are the plan's, ``read`` gives what the compiled node has saved."""

    __slots__ = ("_indices", "_leaves", "_read", "_repetition", "_result", "_roots")

    def __init__(
        self,
        repetition: Repetition,
        recipes: Sequence[Recipe],
        read: Callable[[Any], list[Any]],
        result: int,
        indices: Sequence[int],
        leaves: Sequence[int],
    ) -> None:
        self._repetition = repetition
        self._read = read
        self._result = result
        self._indices = indices
        self._leaves = frozenset(leaves)
        self._roots = {index: root_of(recipes, -1 - index) for index in indices if index < 0}

    def wanted(self, node: Any, earlier: Sequence[_Watched]) -> Sequence[int]:
        """The earlier results whose gradients somebody looks at in this backward."""
        if not (_will_execute(_ELSEWHERE) or _is_needed(node)):
            return self._indices
        indices = zip(self._indices, earlier, strict=True)
        return [i for i, watched in indices if i in self._leaves or watched.is_looked_at()]

    def gradients(
        self, node: Any, gradient: torch.Tensor, wanted: Sequence[int]
    ) -> list[torch.Tensor | None]:
        """Of each earlier result's gradient, if it is ``wanted``, the part that comes from here and not through another
        one of those."""
        repetition = self._repetition
        differentiated = torch.is_grad_enabled()
        with torch.enable_grad():
            aliases, results = node.given.repeat(partial(self._repeat, node))
            outputs, arriving = [repetition.result(results, self._result)], [gradient]
            found: dict[int, torch.Tensor | None] = {}
            for index in reversed(wanted):
                result = repetition.result(results, index) if index >= 0 else results[-1 - index]
                (part,) = torch.autograd.grad(
                    outputs, [result], arriving, True, differentiated, allow_unused=True
                )
                found[index] = part
                if part is not None:
                    outputs.append(result)
                    arriving.append(-part)
                    node.given.add(*self._contained(aliases, results, index, result, part, differentiated))
        return [found.get(index) for index in self._indices]

    def _repeat(self, node: Any) -> tuple[list[Any], Sequence[Any]]:
        inputs = self._repetition.inputs(node, self._read(node))
        if isinstance(inputs, str):
            raise RuntimeError(_NOT_KNOWN.format(why=inputs))
        return self._repetition.run(inputs, node.remembered.random)

    def _contained(
        self,
        aliases: Sequence[Any],
        results: Sequence[Any],
        index: int,
        result: torch.Tensor,
        part: torch.Tensor,
        differentiated: bool,
    ) -> tuple[int, torch.Tensor]:
        """Where what the compiled backward contains of this part of a gradient arrives, and how much it is there."""
        if index >= 0:
            return index, part
        root = self._roots[index]
        if isinstance(root, FromInput):
            place, base = -1 - root.index, aliases[root.index]
        else:
            place, base = root.index, self._repetition.result(results, root.index)
        (there,) = torch.autograd.grad([result], [base], [part], True, differentiated)
        return place, there


class _Between(torch.autograd.Function):
    """The identity on ``result``, in place, which depends on the earlier results besides."""

    @staticmethod
    def forward(
        ctx: Any, link: _Link, node: Any, seen: list[_Watched], result: torch.Tensor, *earlier: torch.Tensor
    ) -> torch.Tensor:
        ctx.set_materialize_grads(False)
        ctx.mark_dirty(result)
        ctx.link = link, node, seen
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        link, node, earlier = ctx.link
        wanted = () if gradients[0] is None else link.wanted(node, earlier)
        if not wanted:
            return (None, None, None, *gradients, *[None] * len(earlier))
        return (None, None, None, *gradients, *link.gradients(node, gradients[0], wanted))


_ELSEWHERE: Any = torch.ones(1, requires_grad=True).view(1).grad_fn
"""A node of no backward: one that computes gradients of chosen tensors does not run it, any other might run all."""


def _is_needed(node: Any) -> bool:
    """Whether the compiled backward runs, and not only hands over a gradient that arrives at it."""
    return any(_leads_on(following) for following, _ in node.next_functions if following is not None)


def _leads_on(node: Any) -> bool:
    try:
        return _will_execute(node)
    except RuntimeError:  # a leaf, in a backward that accumulates
        return True


def viewed_inputs(plan: JointPlan, backward_plan: BackwardPlan) -> tuple[int, ...]:
    """The inputs of which earlier results are views."""
    earlier = {-1 - i for _, indices in backward_plan.between for i in indices if i < 0}
    roots = [root_of(plan.recipes, position) for position in earlier]
    return tuple(sorted({root.index for root in roots if isinstance(root, FromInput)}))


Linking: TypeAlias = Callable[[Sequence[Any], Any, Sequence[Any]], dict[int, Any]]
"""Called with the graph's results, the compiled function's node and the inputs; returns the program's results that it
has made, by their positions."""


def linking(
    plan: JointPlan, backward_plan: BackwardPlan, repetition: Repetition, read: Callable[[Any], list[Any]]
) -> Linking:
    """What puts the nodes between the graph's results, where they belong, into autograd's graph; ``read`` gives what
    the compiled function's node has saved."""
    leaves, recipes = backward_plan.leaves, plan.recipes
    links = [
        (i, parts, _Link(repetition, recipes, read, i, parts, leaves)) for i, parts in backward_plan.between
    ]
    make_view = view_maker(plan)
    written = {m.graph_index: m.input_index for m in plan.mutated if m.differentiable}
    apply: Callable[..., Any] = super(torch.autograd.Function, _Between).apply

    def link(results: Sequence[Any], node: Any, inputs: Sequence[Any]) -> dict[int, Any]:
        for index in leaves:
            results[index].requires_grad_()
        watched: dict[int, _Watched] = {}
        made: dict[int, Any] = {}

        def tensor_of(index: int) -> Any:
            if index < 0:
                return make_view(-1 - index, inputs, results, made)
            return inputs[written[index]] if index in written else results[index]

        for index, indices, between in links:
            result = tensor_of(index)
            version = result._version
            earlier = [tensor_of(i) for i in indices]
            for i, tensor in zip(indices, earlier, strict=True):
                if i not in watched:
                    watched[i] = _Watched(tensor)
            apply(between, node, [watched[i] for i in indices], result, *earlier)
            _set_versions((result,), (version,))
        for each in watched.values():
            each.begin()
        return made

    return link
