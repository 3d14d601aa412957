"""A call whose intermediate values are not kept for the backward but computed again (activation checkpointing).

Run as it is, it does so with torch's hooks on saved tensors: what autograd would save is replaced by its position, and
the first one that the backward asks for runs the sub-graph again, under the random state and the autocast settings of
the first run. (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016.)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils.checkpoint import create_selective_checkpoint_contexts

from fx_interface.dialects.dialect import broken
from fx_interface.regions.region import RegionCall, code_of, region, results_of

_POLICIES: dict[str, Callable[[], Any]] = {}


def name_policy(name: str, make: Callable[[], Any]) -> None:
    """Let calls with this ``policy`` save what that of ``make`` says: it gives the function anew for each run."""
    _POLICIES[name] = make


def policy_named(name: str) -> Any:
    """What says, of an operator, whether its result is saved (as torch's selective checkpoints ask it); None where no
    policy has the name in this process."""
    make = _POLICIES.get(name)
    return None if make is None else make()


def _check(call: RegionCall) -> None:
    (body,) = call.bodies
    call.takes(body, call.arguments)
    call.gives(results_of(body))
    saved: Any = call.node.kwargs.get("saved", ())
    if not all(isinstance(index, int) and 0 <= index < len(call.arguments) for index in saved):
        broken("FXI113", call.node, f"saved={saved!r} of {len(call.arguments)} arguments")


@region("checkpointed", parts=("checkpoint_body",), check=_check)
def checkpointed(
    body: Callable[..., Sequence[Any]], *args: Any, saved: Sequence[int] = (), policy: str | None = None
) -> Sequence[Any]:
    """``body(*args)``, of which autograd keeps only ``args``, and what the ``policy`` of this name saves. ``body`` has
    no effects but drawing random numbers.

    The arguments ``saved`` are refused in a backward if they were overwritten; of the others it takes what they are
    then.
    """
    run: Callable[..., Sequence[Any]] = code_of(body)
    if not torch.is_grad_enabled():
        return run(*args)
    asked = None if policy is None else policy_named(policy)
    modes: Any = (contextlib.nullcontext(), contextlib.nullcontext())
    if asked is not None:
        modes = create_selective_checkpoint_contexts(asked)  # type: ignore[no-untyped-call]
    again = _Recomputation(run, args, saved, modes[1])
    with torch.autograd.graph.saved_tensors_hooks(again.pack, again.unpack), modes[0]:
        return run(*args)


class _Arguments(torch.autograd.Function):
    """A node that only saves tensors, so that autograd refuses to hand out one that was overwritten since, and a
    program's hooks on saved tensors see them."""

    @staticmethod
    def forward(ctx: Any, anchor: torch.Tensor, *tensors: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(*tensors)
        return anchor.new_empty(0)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise AssertionError("no result depends on this node")


_apply: Any = super(torch.autograd.Function, _Arguments).apply


def _save(tensors: Sequence[torch.Tensor]) -> Any:
    """The result of a node that has saved the tensors: torch before 2.13 lets go of them with the result."""
    return _apply(torch.empty(0, requires_grad=True), *tensors)


class _Recomputation:
    """Owner of one call: its arguments, the surroundings it ran in, and what the last second run saved."""

    def __init__(
        self, body: Callable[..., Sequence[Any]], args: tuple[Any, ...], saved: Sequence[int], mode: Any
    ) -> None:
        self._body = body
        self._mode = mode
        self._args = [None if index in saved else a for index, a in enumerate(args)]
        self._places = saved
        self._saved = _save([args[index] for index in saved]) if saved else None
        self._devices = sorted(
            {a.device.index or 0 for a in args if isinstance(a, torch.Tensor) and a.is_cuda}
        )
        self._cpu_state = torch.get_rng_state()
        self._cuda_states = [torch.cuda.get_rng_state(device) for device in self._devices]
        self._autocast = [
            (kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind))
            for kind in ("cpu", "cuda")
        ]
        self._count = 0
        self._found: dict[int, torch.Tensor] = {}

    def pack(self, tensor: torch.Tensor) -> int:
        """Instead of a tensor, its position among those saved."""
        self._count += 1
        return self._count - 1

    def unpack(self, position: int) -> torch.Tensor:
        """The tensor of that position, each time handed out once, so that it is freed after its use."""
        if position not in self._found:
            self._run_again()
        return self._found.pop(position)

    def _run_again(self) -> None:
        found: list[torch.Tensor] = []

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            found.append(tensor.detach())
            return tensor

        args = list(self._args)
        if self._saved is not None:
            for index, tensor in zip(self._places, self._saved.grad_fn.saved_tensors, strict=True):
                args[index] = tensor
        detached = [
            a.detach().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a for a in args
        ]
        with (
            self._surroundings(),
            torch.enable_grad(),
            torch.autograd.graph.saved_tensors_hooks(keep, _same),
            self._mode,
        ):
            self._body(*detached)
        self._found = dict(enumerate(found))

    @contextlib.contextmanager
    def _surroundings(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.random.fork_rng(devices=self._devices))
            torch.set_rng_state(self._cpu_state)
            for device, state in zip(self._devices, self._cuda_states, strict=True):
                torch.cuda.set_rng_state(state, device)
            for kind, enabled, dtype in self._autocast:
                stack.enter_context(torch.autocast(kind, dtype=dtype, enabled=enabled))
            yield


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor
