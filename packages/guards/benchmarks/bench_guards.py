"""Times of guard checks and fetches, in microseconds: ``python benchmarks/bench_guards.py [--json FILE]``.

The model has 100 linear layers. "by attribute" guards read ``self.layers[i].weight``, "by dict" guards read
``self.__dict__['_modules']['layers']...``; both check every module's type, training flag and parameter table, and every
parameter's metadata.
"""

from __future__ import annotations

import argparse
import json
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

import fx_guards
from fx_guards import _native
from fx_interface.guard import Guard
from fx_interface.source import AttrSource, InstanceDictSource, ItemSource, LocalSource, Source

LAYERS = 100


class Net(torch.nn.Module):
    """A list of linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(LAYERS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Unused: only its frame's slots matter here."""
        return x


def by_dict(net: Net, root: Source) -> Iterator[Guard]:
    """Guards that read every module through its instance dictionary."""
    modules = ItemSource(InstanceDictSource(root), "_modules")
    layers = ItemSource(modules, "layers")
    table = ItemSource(InstanceDictSource(layers), "_modules")
    yield fx_guards.TypeIs(root, Net)
    yield fx_guards.DictKeys(table, tuple(net.layers._modules))
    for index, layer in enumerate(net.layers):
        source = ItemSource(table, str(index))
        contents = InstanceDictSource(source)
        parameters = ItemSource(contents, "_parameters")
        yield fx_guards.TypeIs(source, torch.nn.Linear)
        yield fx_guards.EqualsConstant(ItemSource(contents, "training"), True)
        yield fx_guards.Length(ItemSource(contents, "_forward_hooks"), 0)
        yield fx_guards.DictKeys(parameters, ("weight", "bias"))
        for name in ("weight", "bias"):
            yield fx_guards.tensor_match(ItemSource(parameters, name), getattr(layer, name))


def by_attribute(net: Net, root: Source) -> Iterator[Guard]:
    """Guards that read every module as a user writes it."""
    table = AttrSource(AttrSource(root, "layers"), "_modules")
    yield fx_guards.TypeIs(root, Net)
    yield fx_guards.DictKeys(table, tuple(net.layers._modules))
    for index, layer in enumerate(net.layers):
        source = ItemSource(table, str(index))
        yield fx_guards.TypeIs(source, torch.nn.Linear)
        yield fx_guards.EqualsConstant(AttrSource(source, "training"), True)
        yield fx_guards.DictKeys(AttrSource(source, "_parameters"), ("weight", "bias"))
        for name in ("weight", "bias"):
            yield fx_guards.tensor_match(AttrSource(source, name), getattr(layer, name))


def microseconds(run: Callable[[], Any], number: int = 2000) -> float:
    """Best time of one call, less that of an empty call."""
    best = min(timeit.repeat(run, number=number, repeat=15)) / number
    empty = min(timeit.repeat(lambda: None, number=number, repeat=15)) / number
    return (best - empty) * 1e6


def model_figures(name: str, make: Callable[[Net, Source], Iterator[Guard]]) -> Iterator[tuple[str, float]]:
    """A model's check, the same without recognising unchanged dicts, and the fetch of its parameters."""
    net, x = Net(), torch.randn(2, 8)
    facts = list(make(net, LocalSource("self")))
    evaluator = fx_guards.build(facts, varnames=Net.forward.__code__.co_varnames)
    assert evaluator.check_call(Net.forward, net, x)
    yield (
        f"module of {LAYERS} layers, {name}",
        microseconds(lambda: evaluator.check_call(Net.forward, net, x)),
    )
    _native.use_dict_versions(False)
    every = microseconds(lambda: evaluator.check_call(Net.forward, net, x))
    _native.use_dict_versions(fx_guards.SKIPS_BY_DICT_VERSION)
    yield f"the same, every dict looked into ({name})", every
    sources = [g.source for g in facts if g.kind == "tensor_match"]
    fetcher = fx_guards.build_fetcher(sources)
    yield f"fetch of {len(sources)} parameters, {name}", microseconds(lambda: fetcher(net))


def measure() -> dict[str, float]:
    """Every figure by name, in microseconds."""
    figures = dict(model_figures("by dict", by_dict))
    figures.update(model_figures("by attribute", by_attribute))
    figures.update(small_figures())
    return figures


def small_figures() -> dict[str, float]:
    """Checks of a few values."""

    def three(a: Any, b: Any, c: Any) -> None: ...

    tensors = [torch.randn(3, 4), torch.randn(4, requires_grad=True), torch.randn(2, 2)]
    facts = [fx_guards.tensor_match(LocalSource(n), t) for n, t in zip("abc", tensors, strict=True)]
    evaluator = fx_guards.build(facts, varnames=("a", "b", "c"))
    a, b, c = tensors
    state = fx_guards.build([fx_guards.global_state()])
    return {
        "three tensors": microseconds(lambda: evaluator.check_call(three, a, b, c), 50_000),
        "global state": microseconds(lambda: state.check_call(three), 50_000),
    }


def main() -> None:
    """Print a table; write JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = measure()
    for name, value in figures.items():
        print(f"{name:<60} {value:8.3f} us")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
