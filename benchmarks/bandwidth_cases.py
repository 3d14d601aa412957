"""Functions whose speed on a GPU is that of its memory, and the bytes that each must move.

Large enough that no input fits into a GPU's cache. ``benchmarks.bandwidth`` times them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

Inputs = tuple[Tensor, ...]


@dataclasses.dataclass(frozen=True)
class Case:
    """A function, what it is given, and the bytes that it must move.

    ``make`` takes a dtype, a device and a divisor of each size (1 when measured). The first ``gradients`` inputs get
    gradients, for which the backward must read the inputs at the places ``reads``. Where the whole of the first input
    decides about each element, and is larger than any cache, it is read in so many ``passes``, as is the result's
    gradient. ``written`` are the places of inputs that are written to. ``picked`` ones read as much as they return.
    """

    run: Callable[..., Tensor]
    make: Callable[[torch.dtype, str, int], Inputs]
    gradients: int
    reads: tuple[int, ...] = ()
    passes: int = 1
    written: tuple[int, ...] = ()
    picked: bool = False

    @property
    def name(self) -> str:
        """What the table calls it."""
        return self.run.__name__

    def forward_bytes(self, inputs: Inputs, result: Tensor) -> int:
        """What any kernels must move: each input read, each result written once."""
        read = result.nbytes + inputs[0].nbytes if self.picked else sum(x.nbytes for x in inputs)
        written = sum(inputs[place].nbytes for place in self.written) or result.nbytes
        return read + (self.passes - 1) * inputs[0].nbytes + written

    def backward_bytes(self, inputs: Inputs, result: Tensor) -> int:
        """The same of the backward: the gradient of the result and what it needs read, gradients written."""
        read = result.nbytes + sum(inputs[place].nbytes for place in self.reads)
        return self.passes * read + sum(x.nbytes for x in inputs[: self.gradients])


def _square(count: int) -> Callable[[torch.dtype, str, int], Inputs]:
    """So many inputs of 8192 x 8192."""

    def make(dtype: torch.dtype, device: str, divisor: int) -> Inputs:
        shape = 8192 // divisor, 8192 // divisor
        return tuple(torch.randn(shape, dtype=dtype, device=device) for _ in range(count))

    return make


def gated(x: Tensor, y: Tensor) -> Tensor:
    """Pointwise, two inputs."""
    return functional.gelu(x) * y + x


def softmax(x: Tensor) -> Tensor:
    """A row at a time."""
    return functional.softmax(x * 0.125, -1)


def layer_norm(x: Tensor, y: Tensor) -> Tensor:
    """A row at a time, of two inputs."""
    return functional.layer_norm(x + y, x.shape[-1:])


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """A row at a time, with a weight that gets a gradient across rows."""
    return functional.rms_norm(x, x.shape[-1:], weight)


def rows(x: Tensor, y: Tensor) -> Tensor:
    """A sum along memory."""
    return (x * y).sum(-1)


def columns(x: Tensor, y: Tensor) -> Tensor:
    """A sum across memory, as a bias's gradient."""
    return (x * y).sum(0)


def transposed(x: Tensor, y: Tensor) -> Tensor:
    """One input against the grain."""
    return x.t() + y


def total(x: Tensor, y: Tensor) -> Tensor:
    """All to one number, as a loss."""
    return (x - y).square().mean()


def running_sum(x: Tensor) -> Tensor:
    """A scan along memory."""
    return (x * 0.5).cumsum(-1)


def largest_place(x: Tensor) -> Tensor:
    """The place of each row's largest number."""
    return x.argmax(-1)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The loss of a language model."""
    return functional.cross_entropy(logits.float(), labels)


def _logits(dtype: torch.dtype, device: str, divisor: int) -> Inputs:
    vocabulary = 32000 // divisor
    labels = torch.randint(0, vocabulary, (4096 // divisor,), device=device)
    return torch.randn(labels.numel(), vocabulary, dtype=dtype, device=device), labels


def group_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Statistics over parts of an image, then an activation."""
    return functional.silu(functional.group_norm(x, 32, weight, bias))


def batch_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Statistics across images, then an activation."""
    return functional.relu(functional.batch_norm(x, None, None, weight, bias, training=True))


def max_pool(x: Tensor) -> Tensor:
    """Windows that overlap."""
    return functional.max_pool2d(x, 3, 2, 1)


def _images(weights: int) -> Callable[[torch.dtype, str, int], Inputs]:
    """Images of 256 channels and as many weights."""

    def make(dtype: torch.dtype, device: str, divisor: int) -> Inputs:
        x = torch.randn(max(64 // divisor, 2), 256, 64, 64 // divisor, dtype=dtype, device=device)
        return x, *(torch.randn(256, dtype=dtype, device=device) for _ in range(weights))

    return make


def rotary(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Positions put into heads: halves are exchanged."""
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat((-second, first), -1) * sine


def _heads(dtype: torch.dtype, device: str, divisor: int) -> Inputs:
    angles = torch.randn(4096 // divisor, 64, device=device)
    x = torch.randn(16, 16, angles.shape[0], 64, dtype=dtype, device=device)
    return x, angles.cos().to(dtype), angles.sin().to(dtype)


def dropout(x: Tensor, y: Tensor) -> Tensor:
    """Random numbers, and a residual."""
    return functional.dropout(x, 0.1, training=True) + y


def embedding(places: Tensor, table: Tensor) -> Tensor:
    """Rows of a table."""
    return functional.embedding(places, table) * 2


def _lookups(dtype: torch.dtype, device: str, divisor: int) -> Inputs:
    places = torch.randint(0, 50257 // divisor, (65536 // divisor,), device=device)
    return places, torch.randn(50257 // divisor, 1024, dtype=dtype, device=device)


def joined(x: Tensor, y: Tensor) -> Tensor:
    """Two tensors side by side."""
    return torch.cat((x * 2, functional.relu(y)), -1)


def adam(parameter: Tensor, gradient: Tensor, mean: Tensor, square: Tensor) -> Tensor:
    """An optimizer's step on one parameter, in place."""
    mean.lerp_(gradient, 0.1)
    square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
    return parameter.addcdiv_(mean, square.abs().sqrt().add(1e-8), value=-1e-3)


def _rows_and_weight(dtype: torch.dtype, device: str, divisor: int) -> Inputs:
    (x,) = _square(1)(dtype, device, divisor)
    return x, torch.randn(x.shape[1], dtype=dtype, device=device)


CASES = (
    Case(gated, _square(2), gradients=2, reads=(0, 1)),
    Case(softmax, _square(1), gradients=1, reads=(0,)),
    Case(layer_norm, _square(2), gradients=2, reads=(0, 1)),
    Case(rms_norm, _rows_and_weight, gradients=2, reads=(0,)),
    Case(rows, _square(2), gradients=2, reads=(0, 1)),
    Case(columns, _square(2), gradients=2, reads=(0, 1)),
    Case(transposed, _square(2), gradients=2),
    Case(total, _square(2), gradients=2, reads=(0, 1)),
    Case(running_sum, _square(1), gradients=1),
    Case(largest_place, _square(1), gradients=0),
    Case(cross_entropy, _logits, gradients=1, reads=(0,)),
    Case(group_norm, _images(2), gradients=3, reads=(0,)),
    Case(batch_norm, _images(2), gradients=3, reads=(0,), passes=2),
    Case(max_pool, _images(0), gradients=1),
    Case(rotary, _heads, gradients=1),
    Case(dropout, _square(2), gradients=2),
    Case(embedding, _lookups, gradients=0, picked=True),
    Case(joined, _square(2), gradients=2, reads=(1,)),
    Case(adam, _square(4), gradients=0, written=(0, 2, 3)),
)
