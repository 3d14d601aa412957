"""Which functions of a float are called, by vectors of 64 bytes, and which are written out in the loop.

A function of ``vector_functions.py`` takes three quarters of the time of the same function written out. But a call
empties the registers, and what is left of a row behind its vectors calls once for each number. So small loops call:

    out[i] = tanh(x[i])  ->  out[i] = tanh_of_vectors(x[i])

and loops that reduce, or compute much else, do not (a layer norm of a gelu took 1.2 times as long with calls).
"""

from __future__ import annotations

import torch

from fx_interface.symbols import ShapeEnv
from inductor_codegen.ir.kernel import Accumulate, Kernel
from inductor_codegen.ir.scalar import Apply, Scalar, ScalarBuilder
from inductor_codegen.ir.traverse import Rebuilder, postorder, roots_of, statements_of, with_statements

OF_VECTORS = {"tanh": "tanh_of_vectors", "erf": "erf_of_vectors", "log": "log_of_vectors"}
"""Operations that no graph has, by those that they compute."""
_MOST = 10
"""Operations of a loop that calls."""


def with_called_functions(kernel: Kernel) -> Kernel:
    """The kernel with calls of functions of vectors, if it is small and reduces nothing."""
    statements = list(statements_of(kernel.passes))
    if any(isinstance(item, Accumulate) for item in statements):
        return kernel
    nodes = postorder(root for item in statements for root in roots_of(item))
    operations = [node for node in nodes if isinstance(node, Apply)]
    if len(operations) > _MOST or not any(map(_is_called, operations)):
        return kernel
    return with_statements(kernel, _Caller(ScalarBuilder(), ShapeEnv()).statement)


class _Caller(Rebuilder):
    def _node(self, node: Scalar) -> Scalar:
        made = super()._node(node)
        if isinstance(made, Apply) and _is_called(made):
            return self._builder.apply(OF_VECTORS[made.op], made.args, made.dtype)
        return made


def _is_called(node: Apply) -> bool:
    return node.op in OF_VECTORS and node.args[0].dtype is torch.float32
