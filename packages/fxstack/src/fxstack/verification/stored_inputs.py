"""Tensors as text in a script, without pickle: memories as base64, and how each tensor lies in one of them."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

MOST_BYTES = 64 * 2**20
"""Of memories beyond this, together, only the size is stored; the script fills them with random numbers."""

READER = """
def _memory(size, text, dtype):
    if text is None:  # too large to be stored: random numbers
        count = size // dtype.itemsize
        flat = torch.randn(count).to(dtype) if dtype.is_floating_point else torch.zeros(count, dtype=dtype)
        return flat.untyped_storage()
    data = bytearray(zlib.decompress(base64.b64decode(text)))
    return torch.frombuffer(data, dtype=torch.uint8).untyped_storage() if data else torch.UntypedStorage(0)


def _tensor(memory, dtype, device, shape, strides, offset, kind):
    made = torch.empty(0, dtype=dtype).set_(MEMORIES[memory], offset, shape, strides).to(device)
    if kind == "computed":
        return made.requires_grad_().view_as(made)
    return made.requires_grad_(kind == "trained")
"""
"""Functions of the script that read ``MEMORIES`` and make the tensors of ``INPUTS``."""


def stored_inputs(inputs: Sequence[Any]) -> tuple[str, str]:
    """The text of ``MEMORIES`` and that of ``INPUTS``, two Python expressions."""
    memories: dict[int, int] = {}
    texts: list[str] = []
    left = MOST_BYTES
    lines: list[str] = []
    for value in inputs:
        if not isinstance(value, Tensor):
            lines.append(_plain(value))
            continue
        memory = value.untyped_storage()
        if memory._cdata not in memories:
            memories[memory._cdata] = len(texts)
            left -= memory.nbytes()
            text = _encoded(memory) if left >= 0 else "None"
            texts.append(f"_memory({memory.nbytes()}, {text}, {value.dtype})")
        kind = "plain" if not value.requires_grad else "trained" if value.is_leaf else "computed"
        lines.append(
            f"_tensor({memories[memory._cdata]}, {value.dtype}, {str(value.device)!r}, {tuple(value.shape)}, "
            f"{value.stride()}, {value.storage_offset()}, {kind!r})"
        )
    return _listed(texts), _listed(lines)


def _encoded(memory: torch.UntypedStorage) -> str:
    flat = torch.empty(0, dtype=torch.uint8, device=memory.device)
    flat.set_(memory)
    data = base64.b64encode(zlib.compress(flat.cpu().numpy().tobytes())).decode()
    lines = [data[i : i + 100] for i in range(0, len(data), 100)]
    return '"""\n' + "\n".join(lines) + '\n"""'


def _plain(value: Any) -> str:
    if isinstance(value, float) or (isinstance(value, complex) and not isinstance(value, int)):
        return f"{type(value).__name__}({str(value)!r})"
    if isinstance(value, torch.device):
        return f"torch.{value!r}"
    return repr(value)


def _listed(lines: Sequence[str]) -> str:
    return "[\n" + "".join(f"    {line},\n" for line in lines) + "]"
