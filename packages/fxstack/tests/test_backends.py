from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import fxstack
from fx_interface.errors import UnknownBackendError
from fx_interface.plugins import list_backends
from fxstack import backends
from fxstack.backends import Inductor, resolve
from fxstack.options import Options

OURS = ("eager", "aot_eager", "inductor")


def _function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x @ w).sum(dim=-1)


@pytest.mark.parametrize("name", OURS)
def test_every_backend_gives_eagers_values_and_gradients(name: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    weights = [torch.randn(4, 5).requires_grad_() for _ in range(1)]
    twin = weights[0].detach().clone().requires_grad_()
    expected = _function(x, weights[0])
    found = fxstack.compile(_function, backend=name, fullgraph=True)(x, twin)
    torch.testing.assert_close(found, expected)
    expected.sum().backward()
    found.sum().backward()
    torch.testing.assert_close(twin.grad, weights[0].grad)


def test_the_backends_are_found_as_plug_ins() -> None:
    assert {info.name for info in list_backends()} >= {*OURS, "inductor_stock"}


def test_a_callable_is_the_backend_itself() -> None:
    seen: list[Any] = []

    def own(graph_module: torch.fx.GraphModule, example_inputs: Any) -> Callable[..., Any]:
        seen.append(example_inputs)
        return graph_module.forward

    assert resolve(own, Options.make(None)).backend is own
    torch.testing.assert_close(fxstack.compile(torch.sin, backend=own)(torch.ones(2)), torch.ones(2).sin())
    compiled = fxstack.compile(lambda x: x.cos() + 1.0, backend=own)
    torch.testing.assert_close(compiled(torch.ones(2)), torch.ones(2).cos() + 1.0)
    assert len(seen) >= 1


def test_options_reach_a_backend_that_takes_them(tmp_path: Path) -> None:
    found = fxstack.backend("inductor", {"cache_dir": tmp_path})
    assert isinstance(found, Inductor)
    assert found.options.cache_dir == tmp_path


def test_an_unknown_name_is_refused_when_compile_is_called() -> None:
    with pytest.raises(UnknownBackendError, match="FXI202"):
        fxstack.backend("inductr")


@pytest.mark.parametrize("name", OURS)
def test_our_names_are_ours_where_nothing_says_what_is_installed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(name: str) -> Any:
        raise UnknownBackendError("FXI202", f"no backend is named {name!r}")

    monkeypatch.setattr(backends, "load_backend", unknown)
    import torch._dynamo  # whose backends have two of these names

    assert resolve(name, Options()).interface_version == backends.inductor.interface_version
    captured = fxstack.compile(_function, backend=name)
    x, w = torch.ones(3, 4), torch.ones(4, 5)
    assert torch.equal(captured(x, w), _function(x, w))
    with pytest.raises(UnknownBackendError):
        fxstack.compile(_function, backend="nowhere")(x, w)
