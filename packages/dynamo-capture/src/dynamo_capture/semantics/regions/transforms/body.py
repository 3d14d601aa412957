"""What the function transforms share: the sub-graph of the function, and the call of a region whose form is learnt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dynamo_capture.foundation.break_kinds import REGION_EFFECT, TRANSFORM
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.graph.graph_builder import WrittenTensor
from dynamo_capture.graph.region_body import Body
from dynamo_capture.semantics.regions.tracing import call_region
from dynamo_capture.values import TensorMeta, TensorValue
from dynamo_capture.values.base import Context
from fx_interface.tensor_spec import SPEC_KEY, SymSpec, TensorSpec, with_grad


class TransformBody(Body):
    """A sub-graph that does not write to its parameters: they stand for tensors of the outside. ``own_rule``: how a
    ``torch.autograd.Function`` says what this means for it, if it is not by its backward."""

    own_rule = ""
    may_write = False
    """Whether it may write to parameters after all: who traces it sees to those."""

    @property
    def is_transformed(self) -> bool:
        return True

    def write(self, written: Sequence[WrittenTensor], lasting: Sequence[WrittenTensor] = ()) -> None:
        super().write(written, lasting)
        if not self.may_write and any(tensor.memory.node in self.parameters for tensor in written):
            raise GraphBreak(REGION_EFFECT, f"{self.what} writes to its argument")

    def argument(self, name: str, meta: TensorMeta) -> TensorValue:
        """A parameter as a value."""
        return TensorValue(self.parameter(name, with_grad(meta.spec, meta.requires_grad)), meta)


def open_transform(
    tx: Context,
    target: Callable[..., Any],
    body: Body,
    leading: list[TensorValue],
    results: list[TensorValue],
    options: dict[str, Any],
    probe: Callable[[Callable[[Callable[..., Any]], Any]], None] | None = None,
) -> list[Any]:
    """Close the sub-graph and put the call into the graph; its results are learnt by running it on specs. ``probe`` is
    called with what runs another function in the place of the target."""
    body.close([body.use(value.node) for value in results])
    tensors = [*leading]
    fakes: dict[int, Any] = {}
    args = [value.fake(tx, fakes) for value in leading]
    for node in body.lifted:
        spec = node.meta.get(SPEC_KEY)
        if isinstance(spec, SymSpec):
            args.append(tx.inference.sizes.to_torch(spec.expr))
            continue
        if not isinstance(spec, TensorSpec):
            raise GraphBreak(TRANSFORM, f"{body.what} uses {node.name}, which is no tensor")
        bare = TensorSpec(spec.sizes, spec.strides, spec.dtype, spec.device)
        tensors.append(TensorValue(node, TensorMeta.of(bare, spec.requires_grad, not spec.requires_grad)))
        args.append(tensors[-1].fake(tx, fakes))
    try:
        if probe is not None:
            probe(lambda other: tx.inference.run(other, [body.finished(), *args], options))
        found = tx.inference.run(target, [body.finished(), *args], options)
    except Exception as error:  # whatever a batching rule or a derivative formula says
        raise GraphBreak(TRANSFORM, f"{body.what} cannot be transformed: {error}") from None
    described = tx.tensors.describe_result(tuple(found), [fakes[id(t)] for t in tensors], [False])
    spec = tx.tensors.spec_tree(described, tensors)
    nodes = [*(tx.output.use(value.node) for value in leading), *body.lifted]
    node = call_region(tx.output, target, [body], nodes, options, spec, tx.where())
    body.end()
    return list(tx.tensors.result_of(node, described, tensors).unpack(tx))
