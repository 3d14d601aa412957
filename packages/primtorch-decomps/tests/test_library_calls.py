"""Why an operator stays a library call."""

from __future__ import annotations

from primtorch_decomps import DECOMPOSITIONS
from primtorch_decomps.library_calls import library_reason


def test_reasons() -> None:
    assert library_reason("aten.mm.default") == "matrix products"
    assert library_reason("aten._fft_r2c.default") == "fast Fourier transform"
    assert library_reason("aten.scatter_add.default") == "writes by index"
    assert library_reason("aten.gelu.default") is None
    assert library_reason("aten.linalg_vector_norm.default") is None


def test_what_is_decomposed_is_hardly_ever_a_library_call() -> None:
    """Only operators of which the decomposition covers some arguments, and the rest is an algorithm."""
    both = {str(op) for op in DECOMPOSITIONS if library_reason(str(op)) is not None}
    assert both == {
        "aten._conj_physical.default",
        *("aten.max_pool2d_with_indices.default", "aten.max_pool2d_with_indices_backward.default"),
        *("aten.scatter_add.default", "aten.scatter.src", "aten.scatter.value"),
    }
