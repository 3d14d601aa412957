"""A forward and a backward graph as one node of autograd's graph.

What the forward keeps for the backward is saved with autograd, which frees it after a backward without
``retain_graph``, tells whether it was written to since, and calls the user's hooks on saved tensors. What the node
cannot do is refused with a code, before a gradient is handed on: second derivatives, and gradients of a result that
another result is computed from.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from fxstack_artifact.errors import ContractError, GradientError
from fxstack_artifact.program.sizes import Sizes
from fxstack_artifact.training.arriving import is_plain, plain, tangent

LEAF, WEIGHT, GRAPH = "leaf", "weight", "graph"
"""What a saved value or an input with a gradient is: a leaf of the arguments, a constant, or a result of the graph."""


class Gradient(NamedTuple):
    """Where the gradient of an input is: result ``place`` of the backward graph, or its input ``-1 - place``.
    ``depends``: the tangents that it is computed from; without any of these the input has no gradient."""

    place: int
    depends: frozenset[int]


class Differentiable:
    """The graphs with all that is between them and autograd. Called with the leaves of a call, returns the forward
    graph's results that the program's are made of."""

    def __init__(
        self,
        data: Mapping[str, Any],
        forward: Callable[..., Sequence[Any]],
        backward: Callable[..., Sequence[Any]],
        constants: Sequence[torch.Tensor],
        leaf_names: Sequence[str],
        constant_names: Sequence[str],
        sizes: Sizes,
    ) -> None:
        self.forward, self.backward, self._constants = forward, backward, constants
        self.returned = int(data["returned"])
        self.sizes = sizes
        self.saved = [_source(item) for item in data["saved"]]
        self.tangents = [(int(item["result"]), tangent(item)) for item in data["tangents"]]
        self._inputs = [_source(item["of"]) for item in data["gradients"]]
        self.gradients = [
            Gradient(int(item["from"]), frozenset(map(int, item["depends"]))) for item in data["gradients"]
        ]
        self.nan_from_zeros = [frozenset(map(int, numbers)) for numbers in data["nan_from_zeros"]]
        self.linked = {int(later): [int(n) for n in earlier] for later, earlier in data["linked"]}
        self.leading_to = self._leading_to()
        without = {_source(item) for item in data["unreached"]} | set(self._inputs)
        self._without = [
            (constants[number], name)
            for number, name in enumerate(constant_names)
            if (WEIGHT, number) not in without
        ]
        self._leaves_without = [(n, name) for n, name in enumerate(leaf_names) if (LEAF, n) not in without]
        self._first = min((index for index, found in enumerate(self.leading_to) if found), default=-1)
        self._check(len(leaf_names))

    def __call__(self, *leaves: Any) -> Sequence[Any]:
        if not torch.is_grad_enabled():
            return self.forward(*leaves)
        self._check_history(leaves)
        inputs = [leaves[n] if of == LEAF else self._constants[n] for of, n in self._inputs]
        results: Sequence[Any] = _Compiled.apply(self, leaves, *inputs)  # type: ignore[no-untyped-call]
        if self.linked:
            self._watch(results)
        return results

    def value(self, source: tuple[str, int], leaves: Sequence[Any], results: Sequence[Any]) -> Any:
        """A saved value."""
        of, number = source
        return leaves[number] if of == LEAF else self._constants[number] if of == WEIGHT else results[number]

    def _leading_to(self) -> list[list[int]]:
        """For each result that is returned the inputs, by position, that its gradient leads to."""
        found: list[list[int]] = [[] for _ in range(self.returned)]
        for number, (result, _) in enumerate(self.tangents):
            found[result] = [
                position
                for position, gradient in enumerate(self.gradients)
                if number in gradient.depends or not gradient.depends
            ]
        return found

    def _check(self, leaves: int) -> None:
        counts = {LEAF: leaves, WEIGHT: len(self._constants)}
        good = all(of in counts for of, _ in self._inputs)
        good = good and all(n < counts.get(of, n + 1) for of, n in (*self._inputs, *self.saved))
        linked = [n for later, earlier in self.linked.items() for n in (later, *earlier)]
        good = good and all(0 <= n < self.returned for n in linked)
        good = good and all(0 <= result < self.returned for result, _ in self.tangents)
        if not good or self._first < 0:
            raise ValueError("the backward does not fit the forward")

    def _check_history(self, leaves: Sequence[Any]) -> None:
        for n, name in self._leaves_without:
            leaf = leaves[n]
            if isinstance(leaf, torch.Tensor) and leaf.requires_grad:
                raise _unexpected(name)
        for tensor, name in self._without:
            if tensor.requires_grad:
                raise _unexpected(name)

    def _watch(self, results: Sequence[Any]) -> None:
        """Learn of hooks on results that others are computed from, as the first ``register_hook`` would make them."""
        node = results[self._first].grad_fn
        if node is None:
            return
        watched = {}
        for index in {n for earlier in self.linked.values() for n in earlier}:
            result = results[index]
            if result.grad_fn is not node:
                continue
            hooks: OrderedDict[int, Any] = OrderedDict()
            result._backward_hooks = hooks
            node._register_hook_dict(result)
            watched[index] = (hooks, weakref.ref(result))
        node.watched = watched


class _Compiled(torch.autograd.Function):
    """The node. ``leaves`` are the call's, given as they are; ``inputs`` those of them that have gradients."""

    @staticmethod
    def forward(ctx: Any, graph: Differentiable, leaves: Sequence[Any], *inputs: Any) -> tuple[Any, ...]:
        results = graph.forward(*leaves)
        ctx.graph = graph
        ctx.numbers = graph.sizes(leaves)
        ctx.watched = {}
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*[graph.value(source, leaves, results) for source in graph.saved])
        returned = tuple(results[: graph.returned])
        needed = ctx.needs_input_grad[2:]
        ctx.mark_non_differentiable(
            *[
                result
                for result, inputs_of in zip(returned, graph.leading_to, strict=True)
                if isinstance(result, torch.Tensor) and not any(needed[i] for i in inputs_of)
            ]
        )
        return returned

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        graph: Differentiable = ctx.graph
        gradients = _gradients(ctx, graph, grads) if any(g is not None for g in grads) else ()
        return (None, None, *(gradients or [None] * len(graph.gradients)))


def _gradients(ctx: Any, graph: Differentiable, grads: Sequence[Any]) -> list[Any]:
    if torch.is_grad_enabled():
        raise GradientError(
            "FXA401",
            "second derivatives are not in an artifact: its backward is compiled, and records nothing",
            "call backward() without create_graph, or compute second derivatives with the model itself",
        )
    grads = [gradient if is_plain(gradient) else plain(gradient) for gradient in grads]
    _check_watched(ctx, graph, grads)
    numbers = ctx.numbers
    tangents = [make(grads[result], numbers) for result, make in graph.tangents]
    given = [*numbers, *ctx.saved_tensors, *tangents]
    results = graph.backward(*given)
    missing = {n for n, (result, _) in enumerate(graph.tangents) if grads[result] is None}
    needed = ctx.needs_input_grad[2:]
    made: list[Any] = []
    for is_needed, gradient in zip(needed, graph.gradients, strict=True):
        is_there = is_needed and not (gradient.depends and gradient.depends <= missing)
        place = gradient.place
        made.append((results[place] if place >= 0 else given[-1 - place]) if is_there else None)
    if missing:
        _check_nan(graph, missing, made)
        _check_unreached(ctx, made)
    return made


def _check_watched(ctx: Any, graph: Differentiable, grads: Sequence[Any]) -> None:
    for later, earlier in graph.linked.items():
        if grads[later] is None:
            continue
        for index in earlier:
            hooks, result = ctx.watched.get(index, ((), lambda: None))
            alive = result()
            if hooks or (alive is not None and alive.retains_grad):
                raise GradientError(
                    "FXA402",
                    f"result {index} of the graph has a hook or retain_grad(), and result {later} is computed from it: "
                    "the gradient between the two is not in an artifact",
                    "compute the later result outside of the model, or take the gradient with the model itself",
                )


def _check_nan(graph: Differentiable, missing: set[int], made: Sequence[Any]) -> None:
    """Where results without a gradient count as zeros, and zeros times infinity would be NaN that eager has not."""
    doubtful = any(numbers <= missing for numbers in graph.nan_from_zeros)
    if doubtful and any(gradient is not None and bool(gradient.isnan().any()) for gradient in made):
        raise GradientError(
            "FXA403",
            "gradients are NaN, which may come of the results that have no gradient: the artifact cannot tell",
            "make all results part of the loss, or an artifact of those that are used",
        )


def _check_unreached(ctx: Any, made: Sequence[Any]) -> None:
    """Autograd calls hooks with None where a node has no gradient for an input; eager's graph would not lead there."""
    needed = [
        gradient for is_needed, gradient in zip(ctx.needs_input_grad[2:], made, strict=True) if is_needed
    ]
    following = [node for node, _ in ctx.next_functions if node is not None]
    for gradient, node in zip(needed, following, strict=True):
        tensor = getattr(node, "variable", None)
        if gradient is not None or tensor is None:
            continue
        if tensor._backward_hooks or getattr(tensor, "_post_accumulate_grad_hooks", None):
            raise GradientError(
                "FXA404",
                "a parameter or argument that has hooks is not reached by this backward, and the hooks would be called "
                "all the same",
                "remove the hooks, or make an artifact of the results that are used",
            )


def _source(item: Any) -> tuple[str, int]:
    of, number = item
    if of not in (LEAF, WEIGHT, GRAPH) or int(number) < 0:
        raise ValueError(f"{item!r} is no value")
    return str(of), int(number)


def _unexpected(name: str) -> ContractError:
    return ContractError(
        "FXA308",
        f"{name} requires grad, and did not when the artifact was made",
        f"make it with {name} requiring grad, or call {name}.requires_grad_(False)",
    )
