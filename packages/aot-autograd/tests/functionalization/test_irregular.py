"""Operators whose schema does not tell the whole story."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from aot_autograd import trace_joint
from fx_interface.errors import UnsupportedProgramError


def test_polygamma_in_place(check: Any) -> None:
    check(lambda x: x.clone().polygamma_(1), torch.rand(4, dtype=torch.float64) + 1)


def test_content_that_a_kernel_reads_is_refused(compiled: Any) -> None:
    with pytest.raises(UnsupportedProgramError) as refusal:
        compiled(lambda x, places: torch.tensor_split(x, places))(torch.randn(6), torch.tensor([2, 4]))
    assert refusal.value.code == "AOT106"


def test_what_torch_writes_through_an_unsafe_view_arrives(check: Any) -> None:
    """``kron`` gives its ``out`` another shape and writes there."""
    check(
        lambda x, y, out: torch.kron(x, y, out=out) * 2,
        torch.ones(2, 3),
        torch.arange(6.0).view(3, 2),
        torch.zeros(6, 6),
    )


_SPECTRA = {
    "svdvals": lambda x: torch.linalg.svdvals(x),
    "eigvalsh": lambda x: torch.linalg.eigvalsh(x, UPLO="U"),
    "eigvals": lambda x: torch.linalg.eigvals(x),
    "cond": lambda x: torch.linalg.cond(x, -2),
    "rank": lambda x: torch.linalg.matrix_rank(x, hermitian=True),
    "norm": lambda x: torch.linalg.norm(x, 2),
    "norm of a tensor": lambda x: x.norm("nuc"),
}


@pytest.mark.parametrize("name", _SPECTRA)
def test_spectra_need_no_vectors(name: str, library: Any) -> None:
    """Eager computes them where a gradient is wanted, and torch where a subclass of tensors is given: other bits."""
    x = torch.randn(9, 9)
    graph = torch.fx.symbolic_trace(_SPECTRA[name])
    forward = trace_joint(graph, [x], operators=library).forward
    (call,) = (node for node in forward.graph.nodes if "aten._linalg" in str(node.target))
    assert "eigvals" in str(call.target) or False in call.kwargs.values()
    assert torch.equal(forward(x)[0], _SPECTRA[name](x))
    if name != "rank":
        forward = trace_joint(graph, [x.clone().requires_grad_()], operators=library).forward
        (call,) = (node for node in forward.graph.nodes if "linalg_" in str(node.target))
        assert "eigvals" not in str(call.target)
        assert False not in call.kwargs.values()
