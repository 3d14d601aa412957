"""What is tried: operator, dtype, functional or in place; and the samples of each, made from fixed seeds."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

DTYPES = (
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.bool,
    torch.complex64,
)


@dataclass(frozen=True)
class Case:
    """One pair: an entry of the database (``info``) at a dtype, as a function or in place; ``how`` it is called, and of
    tensors on which device."""

    info: Any
    dtype: torch.dtype
    in_place: bool = False
    how: str = "plain"
    device: str = "cpu"

    @property
    def operator(self) -> str:
        """The entry's name with its variant."""
        how = "" if self.how == "plain" else f"@{self.how}"
        return str(self.info.formatted_name) + ("_" if self.in_place else "") + how

    @property
    def key(self) -> str:
        """Operator and dtype."""
        return f"{self.operator} {str(self.dtype).removeprefix('torch.')}"

    @property
    def differentiable(self) -> bool:
        """Whether torch has gradients here."""
        if self.how == "twice" and not self.info.supports_gradgrad:
            return False
        allowed = self.info.supports_inplace_autograd if self.in_place else self.info.supports_autograd
        return bool(allowed and self.dtype in self.info.supported_backward_dtypes(self.device))

    @property
    def values_are_arbitrary(self) -> bool:
        """Whether the result's content is not defined (``empty``)."""
        return "empty" in self.info.name and self.info.name != "nn.functional.embedding_bag"

    @property
    def memory_is_arbitrary(self) -> bool:
        """Whether a program may not rely on what the result shares memory with, as the operator's name tells."""
        return str(self.info.name).startswith("unsafe_")


@dataclass(frozen=True)
class Sample:
    """One call: a function of tensors (nested in lists, tuples, dicts) and its arguments.

    ``finish`` is applied to results before gradients are taken: it leaves out what is defined up to a phase only.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    finish: Callable[[Any], Any]


def cases(
    operators: Sequence[str] = (),
    dtypes: Sequence[torch.dtype] = DTYPES,
    how: str = "plain",
    device: str = "cpu",
) -> Iterator[Case]:
    """All pairs of the database, or those of the named operators only (with or without variant).

    Called with ``out=`` those that take it; differentiated twice those that can be.
    """
    from torch.testing._internal import common_methods_invocations

    database: Any = common_methods_invocations
    # The entries of random operators set a seed in each call; as a side effect that would happen in tracing only.
    database.wrapper_set_seed = lambda operator, *args, **kwargs: operator(*args, **kwargs)
    for info in database.op_db:
        if operators and not {info.name, info.formatted_name} & set(operators):
            continue
        supported = info.supported_dtypes(device)
        for dtype in dtypes:
            if dtype not in supported:
                continue
            for in_place in (False, True) if info.inplace_variant is not None else (False,):
                case = Case(info, dtype, in_place, how, device)
                if how.startswith("out") and (in_place or not info.supports_out):
                    continue
                if how == "twice" and not case.differentiable:
                    continue
                yield case


def samples(case: Case, count: int) -> Iterator[Sample]:
    """The first ``count`` samples of a pair."""
    seed()
    info, grad = case.info, case.differentiable
    given = info.sample_inputs(case.device, case.dtype, requires_grad=grad)
    if case.in_place:
        given = (sample for sample in given if not sample.broadcasts_input)
    function = _in_place(info.inplace_variant, grad) if case.in_place else info.get_op()
    for sample in itertools.islice(given, count):
        args = (sample.input, *sample.args)
        yield Sample(function, args, dict(sample.kwargs), sample.output_process_fn_grad)


def _in_place(operator: Callable[..., Any], grad: bool) -> Callable[..., Any]:
    """A leaf that requires grad may not be written: its copy is."""

    def function(x: Any, *args: Any, **kwargs: Any) -> Any:
        return operator(x.clone() if grad else x, *args, **kwargs)

    return function


def seed() -> None:
    """The same random numbers from here on, in every run."""
    torch.manual_seed(0)
    random.seed(0)
    try:
        import numpy
    except ImportError:  # the database then has no samples that are made by it
        return
    numpy.random.seed(0)


def copy_arguments(value: Any) -> Any:
    """Arguments in memory of their own, of the same layout; what shared memory shares it again."""
    storages: dict[int, torch.UntypedStorage] = {}
    made: dict[int, torch.Tensor] = {}

    def copied(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if id(leaf) not in made:
            made[id(leaf)] = _copied_tensor(leaf, storages)
        return made[id(leaf)]

    return pytree.tree_map(copied, value)


def _copied_tensor(tensor: torch.Tensor, storages: dict[int, torch.UntypedStorage]) -> torch.Tensor:
    if tensor.layout is not torch.strided or tensor.is_quantized:
        return tensor.detach().clone().requires_grad_(tensor.requires_grad)
    plain = tensor.detach()
    memory = plain.untyped_storage()
    owned = storages.setdefault(memory.data_ptr(), memory.clone())  # type: ignore[no-untyped-call]
    fresh = torch.empty(0, dtype=plain.dtype, device=plain.device)
    fresh.set_(owned, plain.storage_offset(), plain.size(), plain.stride())
    if plain.is_conj():
        fresh = fresh.conj()
    if plain.is_neg():
        fresh = fresh._neg_view()
    return fresh.requires_grad_(tensor.requires_grad)
