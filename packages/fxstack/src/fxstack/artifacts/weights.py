"""Constants of artifacts: named after the model's parameters and buffers, each memory stored once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from fxstack.artifacts.errors import ExportError
from fxstack_artifact.program.constants import BUFFER, PARAMETER


class Store:
    """What safetensors is given for the programs of a file: ``tensors`` by name, and those that are ``left_out``, as
    they are in the model."""

    def __init__(self) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self.left_out: dict[str, torch.Tensor] = {}
        self._by_content: dict[tuple[Any, ...], str] = {}

    def add(self, flat: torch.Tensor, name: str, *, alone: bool) -> str:
        """The name under which these bytes are stored: ``name``, or one like it where another program of the file has
        other bytes of that name. ``alone``: they are not those of a tensor of another name."""
        if alone:
            return self._stored(flat, name)
        content = _bytes(flat).numpy().data if flat.numel() else b""
        key = (flat.dtype, tuple(flat.shape), hashlib.sha256(content).digest())
        if key not in self._by_content:
            self._by_content[key] = self._stored(flat, name)
        return self._by_content[key]

    def _stored(self, flat: torch.Tensor, name: str) -> str:
        while name in self.tensors and not _are_same(self.tensors[name], flat):
            name += "_"
        self.tensors[name] = flat
        return name


def _are_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """To the bit."""
    return (one.dtype, one.shape) == (other.dtype, other.shape) and torch.equal(_bytes(one), _bytes(other))


def _bytes(flat: torch.Tensor) -> torch.Tensor:
    return flat.reshape(-1).view(torch.uint8)


class Weights:
    """The constants of the entry points of a program. ``described`` is what the loader's ``constants`` reads. Those
    that have names in a model are ``inside`` or left out, to be bound when the artifact is loaded. ``trained``: an
    optimizer will write to them, so that they share no memory."""

    def __init__(self, store: Store, *, inside: bool = True, trained: bool = False) -> None:
        self._store, self._inside, self._trained = store, inside, trained
        self.described: list[dict[str, Any]] = []
        self._numbers: dict[int, int] = {}
        self._held: list[torch.Tensor] = []
        self._taken: set[str] = set()

    def add(self, tensor: torch.Tensor, names: dict[int, list[str]], *, written: bool) -> int:
        """The number of a constant; ``names`` are those of a model's tensors, by identity. ``written`` ones share their
        memory with nothing."""
        known = self._numbers.get(id(tensor))
        if known is not None:
            return known
        number = self._numbers[id(tensor)] = len(self.described)
        self._held.append(tensor)
        known_as = names.get(id(tensor), [f"constant.{number}"])
        name = self._unique(known_as[0])
        aliases = [alias for alias in known_as[1:] if self._is_free(alias)]
        self._taken.update(aliases)
        flat = _in_memory_order(tensor, name)
        is_left_out = not self._inside and id(tensor) in names
        role = None if id(tensor) not in names else PARAMETER if isinstance(tensor, nn.Parameter) else BUFFER
        written = written or (self._trained and role is not None)
        place = None if is_left_out else self._store.add(flat, name, alone=written)
        if is_left_out:
            self._store.left_out.setdefault(name, tensor.detach())
        self.described.append(
            {
                "name": name,
                "tensor": place,
                "dtype": str(tensor.dtype).removeprefix("torch."),
                "sizes": list(tensor.shape),
                "strides": list(tensor.stride()),
                "role": role,
                **({} if tensor.device.type == "cpu" else {"device": str(tensor.device)}),
                **({"aliases": aliases} if aliases else {}),
                **({"requires_grad": True} if self._trained and tensor.requires_grad else {}),
            }
        )
        return number

    def _unique(self, name: str) -> str:
        """``name``, or one like it where another model of the artifact has a weight or a module of that name."""
        while not self._is_free(name):
            name += "_"
        self._taken.add(name)
        return name

    def _is_free(self, name: str) -> bool:
        parts = name.split(".")
        above = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
        below = f"{name}."
        return not above & self._taken and not any(taken.startswith(below) for taken in self._taken)


def names_of(model: Any) -> dict[int, list[str]]:
    """The names of a model's parameters and buffers, by identity: those of a shared one are several."""
    if not isinstance(model, nn.Module):
        return {}
    found: dict[int, list[str]] = {}
    for name, tensor in (
        *model.named_parameters(remove_duplicate=False),
        *model.named_buffers(remove_duplicate=False),
    ):
        found.setdefault(id(tensor), []).append(name)
    return found


def check_written(written: Sequence[torch.Tensor], constants: Sequence[torch.Tensor]) -> None:
    """ExportError FXS508 where memory that the graph writes is seen by another constant too."""
    memory = [tensor.untyped_storage()._cdata for tensor in constants]
    for tensor in written:
        if memory.count(tensor.untyped_storage()._cdata) > 1:
            raise ExportError(
                "FXS508",
                "a buffer that the model writes shares memory with another one",
                action="give it memory of its own (.clone())",
            )


def _in_memory_order(tensor: torch.Tensor, name: str) -> torch.Tensor:
    """What is stored, on the CPU: the tensor itself if it is contiguous, else its elements in the order of memory."""
    if type(tensor) not in (torch.Tensor, nn.Parameter) or tensor.layout is not torch.strided:
        raise ExportError("FXS505", f"{name} is a {type(tensor).__name__} of layout {tensor.layout}")
    if tensor.device.type not in ("cpu", "cuda") or tensor.is_conj() or tensor.is_neg():
        raise ExportError(
            "FXS505",
            f"{name} is on {tensor.device}, or a lazy conjugate; artifacts are for the CPU and for CUDA",
        )
    plain = tensor.detach()
    if plain.is_contiguous():
        return plain.cpu()
    extent = (
        0
        if 0 in plain.shape
        else 1 + sum((n - 1) * s for n, s in zip(plain.shape, plain.stride(), strict=True))
    )
    return plain.as_strided((extent,), (1,)).clone().cpu()
