"""A compiled module is usable as the module: state, modes, hooks, copies and pickles."""

from __future__ import annotations

import copy
import io
import pickle

import torch
from torch import nn

import fxstack


def _model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.ReLU())


def test_parameters_and_state_dict_keys_are_the_modules() -> None:
    plain = _model()
    compiled = fxstack.compile(plain)
    assert list(compiled.state_dict()) == list(plain.state_dict())
    assert all(a is b for a, b in zip(compiled.parameters(), plain.parameters(), strict=True))
    assert isinstance(compiled, nn.Sequential)


def test_loading_a_state_dict_changes_the_result() -> None:
    plain = _model().eval()
    compiled = fxstack.compile(plain)
    x = torch.ones(2, 4)
    compiled(x)
    compiled.load_state_dict({key: value + 1.0 for key, value in plain.state_dict().items()})
    torch.testing.assert_close(compiled(x), plain(x))


def test_train_and_eval_are_followed() -> None:
    plain = _model()
    compiled = fxstack.compile(plain)
    x = torch.ones(64, 4)
    compiled.eval()
    assert not plain.training
    torch.testing.assert_close(compiled(x), plain(x))
    compiled.train()
    torch.manual_seed(3)
    expected = plain(x)
    torch.manual_seed(3)
    torch.testing.assert_close(compiled(x), expected)


def test_hooks_run() -> None:
    compiled = fxstack.compile(_model().eval())
    seen: list[str] = []
    handle = compiled.register_forward_hook(lambda module, args, result: seen.append("after") or result * 2.0)
    x = torch.ones(2, 4)
    plain = _model().eval()
    torch.testing.assert_close(compiled(x), plain(x) * 2.0)
    assert seen == ["after"]
    handle.remove()
    torch.testing.assert_close(compiled(x), plain(x))
    assert seen == ["after"]


def test_deepcopy_is_independent_and_compiled() -> None:
    compiled = fxstack.compile(_model().eval())
    twin = copy.deepcopy(compiled)
    with torch.no_grad():
        twin[0].weight.zero_()
        twin[0].bias.zero_()
    x = torch.ones(2, 4)
    assert not twin(x).any()
    torch.testing.assert_close(compiled(x), _model().eval()(x))


def test_pickles_are_the_plain_modules() -> None:
    compiled = fxstack.compile(_model().eval())
    restored = pickle.loads(pickle.dumps(compiled))
    assert type(restored) is nn.Sequential
    stream = io.BytesIO()
    torch.save(compiled, stream)
    stream.seek(0)
    loaded = torch.load(stream, weights_only=False)
    assert type(loaded) is nn.Sequential
    x = torch.ones(2, 4)
    torch.testing.assert_close(loaded(x), compiled(x))


def test_decorator_with_and_without_arguments() -> None:
    @fxstack.compile
    def plain(x: torch.Tensor) -> torch.Tensor:
        return x.sin() + 1.0

    @fxstack.compile(fullgraph=True)
    def full(x: torch.Tensor) -> torch.Tensor:
        return x.sin() + 1.0

    x = torch.randn(5)
    torch.testing.assert_close(plain(x), x.sin() + 1.0)
    torch.testing.assert_close(full(x), x.sin() + 1.0)
    assert plain.__name__ == "plain"
