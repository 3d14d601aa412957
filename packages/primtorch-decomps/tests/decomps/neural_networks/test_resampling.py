"""Resampling by index, and the layouts of what stays with the library."""

from __future__ import annotations

import pytest
import torch

from fx_interface import GraphBuilder
from fx_interface.dialects import prims as p
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps import decompose
from primtorch_decomps.decomps.neural_networks.resampling import _MOST_TIMES, _NEAR, _single
from primtorch_decomps.testing import (
    aten_graph,
    check_open_spec,
    check_operator,
    check_spec,
    check_values,
)

IMAGE = torch.randn(2, 4, 5, 7)
LAST = IMAGE.to(memory_format=torch.channels_last)


def strided(op, *args):
    """The packet's default overload on real tensors."""
    return getattr(torch.ops.aten, op).default(*args)


@pytest.mark.parametrize("name", ["upsample_nearest2d", "_upsample_nearest_exact2d"])
@pytest.mark.parametrize("size", [[10, 14], [5, 7], [13, 3], [5, 49], [55, 77]], ids=str)
def test_nearest(name: str, size: list[int]) -> None:
    op = getattr(torch.ops.aten, name).default
    for x in (IMAGE, LAST, LAST.bfloat16()):
        check_spec(op, (x, size), {})
        check_values(op, (x, size), {})
    check_values(op, (IMAGE, [int(5 * 1.7), int(7 * 2.3)], 1.7, 2.3), {})


def test_other_ranks() -> None:
    check_values(torch.ops.aten.upsample_nearest1d.default, (torch.randn(2, 3, 5), [11]), {})
    check_values(torch.ops.aten.upsample_nearest3d.default, (torch.randn(2, 3, 4, 5, 3), [7, 5, 9]), {})


@pytest.mark.parametrize("padding", [[1, 2, 3, 0], [0, 0, 1, 1], [2, 2, 2, 2]], ids=str)
@pytest.mark.parametrize("name", ["reflection_pad2d", "replication_pad2d"])
def test_borders(name: str, padding: list[int]) -> None:
    for x in (IMAGE, LAST, IMAGE[0]):
        check_operator(f"aten.{name}.default", x, padding)
        grad = torch.randn_like(strided(name, x, padding))
        check_operator(f"aten.{name}_backward.default", grad, x, padding, library_call=True)


def test_borders_of_sequences() -> None:
    for name in ("reflection_pad1d", "replication_pad1d"):
        check_operator(f"aten.{name}.default", IMAGE[0], [2, 1])


@pytest.mark.parametrize("name", ["reflection_pad2d", "upsample_nearest2d"])
def test_all_dimensions_are_read_by_one_look_up(name: str) -> None:
    argument = [2, 2, 2, 2] if name == "reflection_pad2d" else [9, 8]
    module, _ = aten_graph(getattr(torch.ops.aten, name).default, (IMAGE, argument), {})
    assert [node.target for node in decompose(module).graph.nodes].count(p.index) == 1


def test_pixels() -> None:
    for x in (IMAGE, LAST):
        check_operator("aten.pixel_shuffle.default", x, 2)
    check_operator("aten.pixel_unshuffle.default", torch.randn(2, 3, 6, 4), 2)
    check_operator(
        "aten.pixel_unshuffle.default", torch.randn(2, 3, 6, 4).to(memory_format=torch.channels_last), 2
    )


@pytest.mark.parametrize("name", ["upsample_bilinear2d", "upsample_bicubic2d"])
def test_gradients_of_interpolation_stay_with_the_library(name: str) -> None:
    for x in (IMAGE, LAST):
        grad = torch.randn_like(strided(name, x, [10, 9], False))
        args = (grad, [10, 9], list(x.shape), False)
        if name == "upsample_bilinear2d" or x is IMAGE:
            check_operator(f"aten.{name}_backward.default", *args, library_call=True)
    grad = torch.randn_like(strided("upsample_nearest2d", LAST, [10, 14]))
    check_operator(
        "aten.upsample_nearest2d_backward.default", grad, [10, 14], [2, 4, 5, 7], library_call=True
    )


def test_shuffled_pixels_of_any_size() -> None:
    x = torch.randn(2, 12, 6, 4)
    for layout in (x, x.to(memory_format=torch.channels_last)):
        check_open_spec("aten.pixel_shuffle.default", layout, 2)
        check_open_spec("aten.pixel_unshuffle.default", layout, 2)


@pytest.mark.parametrize("exact", ["", "_exact"])
def test_whole_multiples_of_row_major_images_are_no_look_up(exact: str) -> None:
    op = getattr(torch.ops.aten, f"{'_' if exact else ''}upsample_nearest{exact}2d").default
    for x, size in ((IMAGE, [10, 21]), (IMAGE.bfloat16(), [5, 28]), (IMAGE[:, :, :1], [6, 7])):
        module, _ = aten_graph(op, (x, size), {})
        assert p.index not in [node.target for node in decompose(module).graph.nodes]
        check_spec(op, (x, size), {})
        check_values(op, (x, size), {})
    for x, size, *scales in ((LAST, [10, 14]), (IMAGE, [10, 13]), (IMAGE, [15, 14], 3.1, 2.0)):
        module, _ = aten_graph(op, (x, size, *scales), {})
        assert p.index in [node.target for node in decompose(module).graph.nodes]
        check_values(op, (x, size, *scales), {})


def test_positions_of_whole_multiples() -> None:
    places = torch.arange(_NEAR)
    for factor in range(2, _MOST_TIMES + 1):
        step = _single(1.0 / factor)
        for shift in (0.0, 0.5):
            assert torch.equal(((places.float() + shift) * step).floor().long(), places // factor)


@pytest.mark.parametrize("scale", [1.15, 1.19, 2.1, 2.19])
@pytest.mark.parametrize("exact", ["", "_exact"])
def test_scales_that_sizes_do_not_tell(exact: str, scale: float) -> None:
    """5 * 1.15 is 5 elements, 5 * 2.1 10: torch's kernel of images does not look at the scale then, the others do."""
    size = int(5 * scale)
    for rank, x in ((1, torch.randn(2, 3, 5)), (2, IMAGE), (2, LAST), (3, torch.randn(1, 2, 3, 4, 5))):
        op = getattr(torch.ops.aten, f"{'_' if exact else ''}upsample_nearest{exact}{rank}d").default
        axis = 2 if rank == 2 else rank + 1
        sizes = [size if at == axis else n for at, n in enumerate(x.shape)][2:]
        scales = [scale if at == axis else 1.0 for at in range(x.dim())][2:]
        check_values(op, (x, sizes, *scales), {})


@pytest.mark.parametrize("exact", ["", "_exact"])
@pytest.mark.parametrize(
    ("scales", "is_kernel"), [((2.0, 3.0), True), ((None, None), True), ((2.0, 2.9), False)], ids=str
)
def test_whole_multiples_of_any_size_are_no_look_up(
    exact: str, scales: tuple[float | None, ...], is_kernel: bool
) -> None:
    op = getattr(torch.ops.aten, f"{'_' if exact else ''}upsample_nearest{exact}2d").default
    builder = GraphBuilder("aten")
    height, width = builder.size(8), builder.size(6)
    image, scaled = (
        TensorSpec(sizes, contiguous_strides(sizes), torch.float32, torch.device("cpu"))
        for sizes in ((2, 3, height, width), (2, 3, 2 * height, 3 * width))
    )
    size = [2 * height, 3 * width]
    module = builder.build(builder.call(op, builder.input(image), size, *scales, spec=scaled))
    targets = [node.target for node in decompose(module).graph.nodes]
    assert (op not in targets) is is_kernel
    assert p.index not in targets
    assert [str(guard.relation) for guard in builder.env.guards][: 2 * is_kernel] == (
        [f"2*s0 <= {_NEAR}", f"3*s1 <= {_NEAR}"] if is_kernel else []
    )
