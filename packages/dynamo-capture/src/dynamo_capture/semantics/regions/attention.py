"""``flex_attention``: what is done with each score, and the mask, become the two sub-graphs of one region.

Torch's function, which checks its arguments, is followed as any other; the higher-order operator at its end is taken
here. The program's functions are traced once, on numbers without dimensions that stand for one point. What they use of
their surroundings becomes an operand: a tensor of it is read at indices, ``bias[h, q]``, and nothing else is done with
it. A function that does something else is traced as torch runs it without a compiler: with all scores at once.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.polyfills.torch import attention as dense
from dynamo_capture.semantics.declared import handles_loaded
from dynamo_capture.semantics.regions.steered.sub_graph import Steered, open_region, require_grad
from dynamo_capture.values import Const, TensorValue, TupleValue, Value, are_tensors, is_none
from dynamo_capture.values.base import Context
from dynamo_capture.values.structures import leaves_of
from fx_interface.regions import attention as region
from fx_interface.regions.attention import BLOCK_TENSORS, POINT_DTYPE, POINTS, result_specs, working_dtype
from fx_interface.tensor_spec import SPEC_KEY, TensorSpec

logger = logging.getLogger("dynamo_capture")
_UNLISTED = 1 << 30
"""The size of torch's blocks where it has no lists of them."""
_LISTS = slice(2, 2 + BLOCK_TENSORS)
"""Where the lists of blocks stand in ``BlockMask.as_tuple()``; the last three are sizes of blocks and the mask."""


class PointBody(Steered):
    """The sub-graph of what is computed at one point, a number of the dtype ``wanted``."""

    def __init__(self, parent: Any, what: str, wanted: torch.dtype) -> None:
        super().__init__(parent, what)
        self.indexes_by_tensors = True
        self._wanted = wanted

    def _in_new_tensors(self, tx: Context, result: Value) -> Value:
        if isinstance(result, TensorValue) and result.meta.spec.dtype is not self._wanted:
            result = result.call_method(tx, "to", [Const(self._wanted)], {})
        return super()._in_new_tensors(tx, result)

    def is_of_points(self) -> bool:
        """Whether all that is computed inside has no dimensions."""
        made = [node for node in self.graph.nodes if node.op not in ("placeholder", "output")]
        specs = [node.meta.get(SPEC_KEY) for node in made]
        return all(isinstance(spec, TensorSpec) and not spec.sizes for spec in specs)


@handles_loaded("torch.nn.attention.flex_attention", "_validate_device")
def check_device(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Torch refuses what it cannot differentiate; a graph on a CPU is differentiated too."""
    tensor = tx.force(args[0])
    if isinstance(tensor, TensorValue) and tensor.meta.spec.device.type not in ("cpu", "cuda"):
        raise GraphBreak(NOT_IN_PYTHON, f"flex_attention on {tensor.meta.spec.device}")
    return Const(None)


@handles_loaded("torch._higher_order_ops.flex_attention", "flex_attention")
def flex_attention(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``flex_attention(query, key, value, score_mod, block_mask, scale, kernel_options, *buffers)``."""
    query, key, value, score_mod, block_mask, scale, options = (tx.force(arg) for arg in args[:7])
    tensors = [query, key, value]
    if any(leaf for rest in args[7:] for leaf in rest.unpack(tx)) or kwargs:
        raise GraphBreak(NOT_IN_PYTHON, "flex_attention is called with buffers of its own")
    parts = [tx.force(part) for part in block_mask.unpack(tx)]
    with_max = tx.truth(options.get_item(tx, Const("OUTPUT_MAX")))
    if are_tensors(tensors):
        given = _in_autocast(tx, tensors)  # type: ignore[arg-type]
        made = _as_region(tx, given, score_mod, parts, scale, with_max)
        if made is not None:
            return made
        tensors = list(given)
    logger.warning(
        "attention keeps all scores in memory: %s or %s is of a form that no tile has",
        score_mod.describe(),
        parts[-1].describe(),
    )
    indexed, tx.output.indexes_by_tensors = tx.output.indexes_by_tensors, True
    try:
        passed = [*tensors, score_mod, parts[-1], scale]
        return tx.inliner.call_function(Const(dense.flex_attention), passed, {})
    finally:
        tx.output.indexes_by_tensors = indexed


def _in_autocast(tx: Context, tensors: list[TensorValue]) -> list[TensorValue]:
    """Queries, keys and values in the dtype that autocast gives them."""
    device = tensors[0].meta.spec.device.type
    if not torch.is_autocast_enabled(device):
        return tensors
    wanted = torch.get_autocast_dtype(device)
    found = []
    for tensor in tensors:
        spec = tensor.meta.spec
        if spec.dtype.is_floating_point and spec.dtype not in (wanted, torch.float64):
            tensor = tensor.call_method(tx, "to", [Const(wanted)], {})  # type: ignore[assignment]
        found.append(tensor)
    return found


def _as_region(
    tx: Context,
    given: Sequence[TensorValue],
    score_mod: Value,
    block_mask: Sequence[Value],
    scale: Value,
    with_max: bool,
) -> Value | None:
    """The region; None where the functions are not of points, or the tensors of a form that it does not take."""
    query, key, value = (tensor.meta.spec for tensor in given)
    forms = result_specs(query, value, with_max, tx.env)
    numbers = [block_mask[-3], block_mask[-2], scale]
    if (
        forms is None
        or not _fits(query, key, value)
        or any(tensor.meta.cls is not torch.Tensor for tensor in given)
    ):
        return None
    if not all(isinstance(number, Const) for number in numbers):
        return None
    lists = list(block_mask[_LISTS])
    sizes: Any = tuple(number.as_constant() for number in numbers[:2])
    if sizes[0] >= _UNLISTED:
        lists, sizes = [Const(None)] * BLOCK_TENSORS, None
    if not all(is_none(part) or isinstance(part, TensorValue) for part in lists):
        return None
    follows = require_grad(tx, [tx.output.use(tensor.node) for tensor in given[:2]])
    working = TensorSpec((), (), working_dtype(query.dtype), query.device)
    score = _traced(tx, score_mod, "score_mod", [(working, follows)], query.device)
    mask = None if score is None else _traced(tx, block_mask[-1], "mask_mod", [], query.device)
    if score is None or mask is None:
        return None
    operands = list(dict.fromkeys(node for body in (score, mask) for node in body.lifted))
    call = {
        "scale": float(numbers[2].as_constant()),
        "block_size": sizes,
        "score_args": tuple(operands.index(node) for node in score.lifted),
        "mask_args": tuple(operands.index(node) for node in mask.lifted),
        "with_max": with_max,
    }
    tensors = [tx.output.use(tensor.node) for tensor in given]
    blocks = [tx.output.use(part.node) if isinstance(part, TensorValue) else None for part in lists]
    shape = TupleValue([TensorValue(tensor.node, tensor.meta) for tensor in (given[0], given[0], given[0])])
    trained = require_grad(tx, [*tensors, *operands])
    made = open_region(tx, region, [score, mask], [*tensors, *blocks, *operands], call, shape, trained, forms)
    out, sums, largest = made.unpack(tx)
    return TupleValue([out, sums, largest.call_method(tx, "detach", [], {}) if trained else largest])


def _fits(query: TensorSpec, key: TensorSpec, value: TensorSpec) -> bool:
    """Whether these are tensors of four dimensions with the same batch, and floats of one dtype."""
    if not query.rank == key.rank == value.rank == 4 or not query.dtype.is_floating_point:
        return False
    if not query.dtype == key.dtype == value.dtype or not query.device == key.device == value.device:
        return False
    if key.sizes[2] == 0:  # torch refuses to look for the largest of no scores
        return False
    return query.dtype.itemsize > 1 and query.sizes[0] == key.sizes[0] == value.sizes[0]


def _traced(
    tx: Context, function: Value, name: str, first: list[tuple[TensorSpec, bool]], device: torch.device
) -> PointBody | None:
    """The sub-graph of one of the functions; None where it is not of points."""
    body = PointBody(tx.output, f"{name} ({function.describe()})", first[0][0].dtype if first else torch.bool)
    point = TensorSpec((), (), POINT_DTYPE, device)
    args: list[Value] = [body.argument(spec, flag) for spec, flag in [*first, *[(point, False)] * POINTS]]
    result = body.trace(tx, function, args)
    if not isinstance(result, TensorValue) or result.meta.spec.sizes:
        return None
    for node in reversed(body.indexed):  # of which only single elements are read
        if not node.users:
            body.graph.erase_node(node)
    body.close([body.use(leaf.node) for leaf in leaves_of(tx, result)])
    return body if body.is_of_points() else None
