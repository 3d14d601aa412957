"""One recording of one graph: for these numbers, these settings, and inputs in these places."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import Enum
from typing import Any

import torch

from fx_interface.python_runtime.gc_pause import collector_paused
from inductor_codegen.runtime.binding import described
from inductor_codegen.runtime.cuda_graphs.pool import Pool
from inductor_codegen.runtime.cuda_graphs.recorder import NotRecordedError, Recorder

_FEW = 3
"""Copies that are not worth putting together."""


class Recording:
    """``fixed``: positions of inputs whose memory the recording reads; other tensors are copied to where it reads.
    ``kept`` and ``copied``: numbers of results, as ``GivenOut`` has them."""

    def __init__(
        self,
        run: Callable[..., tuple[Any, ...]],
        inputs: Sequence[Any],
        fixed: Collection[int],
        kept: frozenset[int],
        copied: Iterable[int],
        recorder: Recorder,
        pool: Pool,
    ) -> None:
        tensors = [place for place, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
        self.fixed = tuple(place for place in tensors if place in fixed)
        self._copied = tuple(place for place in tensors if place not in fixed)
        self._expanded = [_expanded(inputs[place]) for place in self._copied]
        self._buffers = [_like(inputs[place]) for place in self._copied]
        self._places = described(inputs, self.fixed, True)
        self._forms = described(inputs, self._copied, False)
        self._single = [described(inputs, (place,), True) for place in self.fixed]
        arguments = list(inputs)
        for place, buffer in zip(self._copied, self._buffers, strict=True):
            arguments[place] = buffer
        with collector_paused(), torch.no_grad():
            self._fill(inputs)
            captured = recorder.capture(run, arguments, pool)
        self._replay = captured.replay
        kinds = _sorted(captured.results, arguments, set(self.fixed))
        new = {what: captured.results[what] for kind, what in kinds if kind is _Kind.NEW}
        self._new = list(new.items())
        self._same = [what if kind is _Kind.NUMBER else None for kind, what in kinds]
        self._others = [
            (number, kind, what)
            for number, (kind, what) in enumerate(kinds)
            if number not in new and kind is not _Kind.NUMBER
        ]
        for tensor in new.values():
            _expanded(tensor)  # callers may have to be given a copy
        views = [what for kind, what in kinds if kind is _Kind.VIEW]
        self.results = pool.add(new, kept, new.keys() & set(copied), views, recorder.uses)
        weakref.finalize(self, pool.drop, self.results).atexit = False

    def fits(self, inputs: Sequence[Any]) -> bool:
        """Whether tensors that are copied have the form that they had. Of others ``moved`` tells."""
        return described(inputs, self._copied, False) == self._forms

    def moved(self, inputs: Sequence[Any]) -> list[int]:
        """The inputs that are in another place than when this was recorded, or have another form."""
        if described(inputs, self.fixed, True) == self._places:
            return []
        return [
            place
            for place, before in zip(self.fixed, self._single, strict=True)
            if described(inputs, (place,), True) != before
        ]

    def _fill(self, inputs: Sequence[Any]) -> None:
        """Copy the inputs that are copied."""
        pairs = zip(self._buffers, [inputs[place] for place in self._copied], self._expanded, strict=True)
        ends = [
            (_narrowed(buffer, dims), _narrowed(value, dims)) if dims else (buffer, value)
            for buffer, value, dims in pairs
        ]
        copy_all([target for target, _ in ends], [content for _, content in ends])

    def replay(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """The results for these inputs, which fit and have not moved; the pool is free for it and locked."""
        given = self.results
        results = list(self._same)
        with torch.no_grad():
            self._fill(inputs)
            kept = [given.tensors[number] for number in given.copied]
            copies = [_like(tensor) for tensor in kept]  # what may fail comes before the replay
            self._replay()
            for number, tensor in self._new:
                results[number] = tensor.data
            if copies:
                copy_all([distinct(copy) for copy in copies], [distinct(tensor) for tensor in kept])
                for number, copy in zip(given.copied, copies, strict=True):
                    results[number] = copy
        given.is_out = True
        for number, kind, what in self._others:
            match kind:
                case _Kind.INPUT:
                    results[number] = inputs[what]
                case _Kind.NEW:  # a result that comes twice
                    results[number] = results[what]
                case _Kind.VIEW:
                    results[number] = what.data
        return tuple(results)


class _Kind(Enum):
    """What a result is: the input of a number, the new memory of the result of a number, a view of an input that stays
    where it is, or a value that is always the same."""

    INPUT = "input"
    NEW = "new"
    VIEW = "view"
    NUMBER = "number"


def _sorted(
    results: Sequence[Any], arguments: Sequence[Any], fixed: Collection[int]
) -> list[tuple[_Kind, Any]]:
    """What each result is. NotRecordedError for one in the memory of an input that is copied."""
    inputs = {id(value): place for place, value in enumerate(arguments) if isinstance(value, torch.Tensor)}
    memory = {arguments[place].untyped_storage()._cdata: place in fixed for place in inputs.values()}
    seen: dict[int, int] = {}

    def kind_of(number: int, result: Any) -> tuple[_Kind, Any]:
        if not isinstance(result, torch.Tensor):
            return _Kind.NUMBER, result
        stays = memory.get(result.untyped_storage()._cdata)
        if stays is False:
            raise NotRecordedError("a result shares the memory of an input that is now here, now there")
        if id(result) in inputs:
            return _Kind.INPUT, inputs[id(result)]
        return (_Kind.VIEW, result) if stays else (_Kind.NEW, seen.setdefault(id(result), number))

    return [kind_of(number, result) for number, result in enumerate(results)]


def _like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)


def _expanded(tensor: torch.Tensor) -> tuple[int, ...]:
    """The dimensions along which there is one element over and over. NotRecordedError where others share memory too."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    dims = tuple(dim for dim, (size, stride) in enumerate(pairs) if size > 1 and stride == 0)
    if torch._debug_has_internal_overlap(_narrowed(tensor, dims)) == 1:
        raise NotRecordedError("elements of a tensor that would be copied share memory")
    return dims


def _narrowed(tensor: torch.Tensor, dims: Iterable[int]) -> torch.Tensor:
    for dim in dims:
        tensor = tensor.narrow(dim, 0, 1)
    return tensor


def distinct(tensor: torch.Tensor) -> torch.Tensor:
    """Each element of the tensor's memory once."""
    return _narrowed(tensor, _expanded(tensor))


def copy_all(targets: Sequence[torch.Tensor], contents: Sequence[torch.Tensor]) -> None:
    """Each target gets its content; many at once."""
    if len(targets) < _FEW:
        for target, content in zip(targets, contents, strict=True):
            target.copy_(content)
        return
    by_dtype: dict[torch.dtype, tuple[list[torch.Tensor], list[torch.Tensor]]] = {}
    for target, content in zip(targets, contents, strict=True):
        pairs = by_dtype.setdefault(target.dtype, ([], []))
        pairs[0].append(target)
        pairs[1].append(content)
    for one, other in by_dtype.values():
        torch._foreach_copy_(one, other)
