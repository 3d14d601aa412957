"""Decompositions of ATen onto primitives, and the shape, stride and dtype rules of ATen operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch._ops import OpOverload
from torch.fx import GraphModule

import fx_interface  # noqa: F401  (first: modules that follow get builtins of their own)
from primtorch_decomps import decomps as _families
from primtorch_decomps.__about__ import __version__
from primtorch_decomps.errors import DuplicateDeclarationError
from primtorch_decomps.exact import exact_table
from primtorch_decomps.prims import PrimTensor
from primtorch_decomps.registry import (
    Decomposition,
    OperatorTable,
    decomposes,
    decomposition_table,
    rule_table,
    spec_rule,
)
from primtorch_decomps.rules.arithmetic import pointwise as _pointwise
from primtorch_decomps.rules.arithmetic import reductions as _reductions
from primtorch_decomps.rules.data_movement import bags as _bags
from primtorch_decomps.rules.data_movement import data_sizes as _data_sizes
from primtorch_decomps.rules.data_movement import drawing as _drawing
from primtorch_decomps.rules.data_movement import order_statistics as _order_statistics
from primtorch_decomps.rules.data_movement import scatter as _scatter
from primtorch_decomps.rules.data_movement import searching as _searching
from primtorch_decomps.rules.data_movement import segments as _segments
from primtorch_decomps.rules.data_movement import view_gradients as _view_gradients
from primtorch_decomps.rules.images import grids as _grids
from primtorch_decomps.rules.images import patches as _patches
from primtorch_decomps.rules.images import resampling as _resampling
from primtorch_decomps.rules.images import volumes as _volumes
from primtorch_decomps.rules.linear_algebra import complex_numbers as _complex_numbers
from primtorch_decomps.rules.linear_algebra import factorizations as _factorizations
from primtorch_decomps.rules.linear_algebra import fourier as _fourier
from primtorch_decomps.rules.linear_algebra import matmul as _matmul
from primtorch_decomps.rules.linear_algebra import solving as _solving
from primtorch_decomps.rules.linear_algebra import vectors as _vectors
from primtorch_decomps.rules.neural_networks import attention as _attention
from primtorch_decomps.rules.neural_networks import convolution as _convolution
from primtorch_decomps.rules.neural_networks import cuda_attention as _cuda_attention
from primtorch_decomps.rules.neural_networks import losses as _losses
from primtorch_decomps.rules.neural_networks import normalization as _normalization
from primtorch_decomps.rules.neural_networks import recurrent as _recurrent
from primtorch_decomps.spec_inference.library import Library
from primtorch_decomps.to_prims.decompose import decompose_with

_RULES = (
    *(
        _attention,
        _bags,
        _complex_numbers,
        _convolution,
        _cuda_attention,
        _data_sizes,
        _drawing,
        _factorizations,
    ),
    *(_fourier, _grids, _losses, _matmul, _order_statistics),
    *(_normalization, _patches, _pointwise, _recurrent, _reductions, _resampling, _scatter),
    *(_searching, _segments, _solving, _vectors, _view_gradients, _volumes),
)
_DECLARED = (_families, *_RULES)

DECOMPOSITIONS: OperatorTable = decomposition_table()
"""Decomposition of every operator that has one. ``DECOMPOSITIONS | {op: function}`` overrides, ``without`` removes."""

STRICT: OperatorTable = exact_table(DECOMPOSITIONS)
"""The decompositions that give eager's results to the last bit on a CPU; other operators stay torch's own kernels."""

RULES: OperatorTable = rule_table()
"""Spec rule of every operator whose spec its decomposition does not imply."""

LIBRARY = Library(DECOMPOSITIONS, RULES)
"""The ``fx_interface.operators.OperatorLibrary`` of this package."""


def decompose(graph_module: GraphModule, table: Mapping[OpOverload, Any] = DECOMPOSITIONS) -> GraphModule:
    """``graph_module`` (dialect ``aten``) in dialect ``prims``; see ``primtorch_decomps.to_prims.decompose``."""
    return decompose_with(graph_module, table, LIBRARY)


__all__ = [
    "DECOMPOSITIONS",
    "LIBRARY",
    "RULES",
    "STRICT",
    "Decomposition",
    "DuplicateDeclarationError",
    "Library",
    "OperatorTable",
    "PrimTensor",
    "__version__",
    "decompose",
    "decomposes",
    "spec_rule",
]
