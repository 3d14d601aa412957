"""Random programs of pointwise operators, views and in-place writes agree with eager, gradients included."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fx_interface.errors import UnsupportedProgramError

Step = tuple[str, int, int, int]
"""An action, the numbers of two tensors, and a parameter; all are taken modulo what exists."""

VIEWS: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
    "transpose": lambda x, k: x.transpose(0, 1),
    "slice": lambda x, k: x[:, k % 3 :],
    "narrow": lambda x, k: x.narrow(0, 0, 1 + k % x.shape[0]),
    "flip_view": lambda x, k: x.as_strided(x.shape, x.stride()),
    "unsqueeze": lambda x, k: x.unsqueeze(0).squeeze(0),
    "split": lambda x, k: x.split(1 + k % 2, k % 2)[0],
    "detach": lambda x, k: x.detach(),
    "permute": lambda x, k: x.permute(1, 0),
    "diagonal": lambda x, k: x.diagonal().unsqueeze(0),
    "chunk": lambda x, k: x.chunk(2, k % 2)[0],
    "expand": lambda x, k: x[:1].expand(1 + k % 3, -1),
    "movedim": lambda x, k: x.movedim(0, 1),
    "strided": lambda x, k: x[:: 1 + k % 2, ::2],
}
POINTWISE: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y.sum(),
    "sin": lambda x, y: x.sin(),
    "tanh": lambda x, y: x.tanh() * y.mean(),
    "clone": lambda x, y: x.clone(),
    "contiguous": lambda x, y: x.t().contiguous(),
    "cat": lambda x, y: torch.cat([x, x], 1),
}
WRITES: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "add_": lambda x, y: x.add_(y.sum()),
    "mul_": lambda x, y: x.mul_(y.mean()),
    "zero_": lambda x, y: x.zero_(),
    "fill_": lambda x, y: x.fill_(0.5),
    "copy_": lambda x, y: x.copy_(y.sum()),
    "setitem": lambda x, y: x.__setitem__(0, y.sum()),
    "sin_": lambda x, y: x.sin_(),
    "t_": lambda x, y: x.t_(),
    "unsqueeze_": lambda x, y: x.unsqueeze_(0).squeeze_(0),
    "copy_transposed": lambda x, y: x.copy_(y.t().sum(0).sum()),
    "add_itself": lambda x, y: x.add_(x),
    "clamp_": lambda x, y: x.clamp_(-0.5, 0.5),
}
EXAMPLES = int(os.environ.get("RANDOM_PROGRAMS", "500"))
"""Programs to try; the default's are the same in every run."""

REFUSED = ("AOT104", "AOT112", "AOT117")
"""What a program may be refused for: zeros written to elements that share memory, which eager allows, an input's shape
changed in place, a view with a gradient of its own."""

ACTIONS = [*VIEWS, *POINTWISE, *WRITES]

steps = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
    min_size=1,
    max_size=8,
)


def build(actions: list[Step], returned: list[int]) -> Callable[..., Any]:
    def program(*inputs: torch.Tensor) -> Any:
        tensors = list(inputs)
        for action, i, j, k in actions:
            x, y = tensors[i % len(tensors)], tensors[j % len(tensors)]
            if action in VIEWS:
                tensors.append(VIEWS[action](x, k))
            elif action in POINTWISE:
                tensors.append(POINTWISE[action](x, y))
            else:
                WRITES[action](x, y)
        return tuple(tensors[i % len(tensors)] for i in returned) + (tensors[-1],)

    return program


@settings(
    max_examples=EXAMPLES,
    derandomize=EXAMPLES == 500,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    actions=steps,
    returned=st.lists(st.integers(0, 9), max_size=3),
    grads=st.tuples(st.booleans(), st.booleans()),
)
def test_random_programs_agree(
    actions: list[Step], returned: list[int], grads: tuple[bool, bool], outcome: Any, same: Any, compiled: Any
) -> None:
    program = build(actions, returned)
    args = tuple(
        torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(4, 3).clone().requires_grad_(g) for g in grads
    )
    try:
        expected = outcome(program, args)
    except RuntimeError:
        return  # eager refuses it: a write to a leaf, or to what the backward needs
    try:
        actual = outcome(compiled(program), args)
    except UnsupportedProgramError as refusal:
        if refusal.code not in REFUSED and "modified by an inplace operation" not in refusal.what:
            raise
        return
    same(expected, actual)
