"""Operators that stay library calls on purpose: their kernels are algorithms, not formulas over primitives."""

from __future__ import annotations

import re
from typing import Final

_REASONS: Final[dict[str, str]] = {
    "matrix products": r"mm|addmm|bmm|baddbmm|addbmm|addmv|mv|dot|vdot|linear|_int_mm|_trilinear|_addmm_activation",
    "convolution": r"convolution\w*|_slow_conv\w*|mkldnn\w*|im2col|col2im",
    "attention": r"_scaled_dot_product\w*|_flash\w*|_efficient_attention\w*",
    "recurrent networks": r"lstm\w*|gru\w*|rnn\w*|_thnn\w*|mkldnn_rnn\w*",
    "linear algebra": r"linalg_(?!vector_norm|cross)\w+|_linalg\w*|cholesky\w*|lu_\w+|triangular_solve|geqrf|ormqr"
    r"|orgqr|_cdist\w*|_pdist\w*|_euclidean_dist",
    "fast Fourier transform": r"_fft\w*",
    "sorting and searching": r"sort|topk|kthvalue|median|nanmedian|mode|searchsorted|bucketize|isin",
    "histograms": r"histc|histogram\w*|_histogram\w*|bincount",
    "scans": r"cumsum|cumprod|cummax|cummin|logcumsumexp|_cummax_helper|_cummin_helper",
    "writes by index": r"index_(put|add|copy|fill|reduce)|_(unsafe_)?index_put\w*|put|scatter\w*|masked_scatter"
    r"|_unsafe_masked_index_put_accumulate|max_unpool\w*|embedding_dense_backward|as_strided_scatter"
    r"|unfold_backward",
    "pooling by maximum": r"(adaptive_|fractional_)?max_pool\w*",
    "gradients of resampling": r"_?upsample\w*_backward|grid_sampler\w*_backward"
    r"|(reflection|replication)_pad\w*_backward",
    "random numbers": r"bernoulli|normal\w*|uniform|random|rand\w*|exponential|geometric|cauchy|log_normal|multinomial"
    r"|poisson|native_dropout|rrelu_with_noise\w*|binomial|_standard_gamma\w*|_sample_dirichlet\w*|_dirichlet_grad",
    "series and loops": r"gcd|lcm|digamma|polygamma|erfinv|i0|igammac?|special_(bessel|modified|chebyshev"
    r"|scaled_modified|shifted|hermite|laguerre|legendre|airy|spherical)\w*|special_(i0e|i1|i1e|erfcx|log_ndtr|ndtri|zeta)",
    "bits of a number": r"signbit|copysign|nextafter|frexp|hash_tensor",
    "sparse tensors": r"\w*sparse\w*|_to_dense|\w*coalesce\w*|_?values|_?indices|crow_indices|col_indices",
    "bags and sequences": r"_embedding_bag\w*|_ctc_loss\w*|_segment_reduce\w*|segment_reduce",
    "sizes and numbers from data": r"nonzero\w*|masked_select|_?unique\w*|argwhere|_local_scalar_dense|equal|allclose"
    r"|masked_scatter_backward",
    "memory": r"empty\w*|new_empty\w*|as_strided\w*|view_as_real|view_as_complex|set|resize",
    "complex numbers": r"complex|polar|_conj\w*|real|imag",
}
"""Reason, and a pattern that the bare names of its operators match."""

_PATTERNS: Final = {reason: re.compile(pattern) for reason, pattern in _REASONS.items()}


def library_reason(name: str) -> str | None:
    """Why ``aten.mm.default`` (any operator, by its name) is a library call on purpose; None if it is not."""
    bare = name.split(".")[1]
    for reason, pattern in _PATTERNS.items():
        if pattern.fullmatch(bare):
            return reason
    return None
