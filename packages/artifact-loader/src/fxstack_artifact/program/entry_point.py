"""One way into a program: called like what it was made from, it checks its arguments and runs a compiled graph."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from fxstack_artifact import _native
from fxstack_artifact.errors import ArtifactError, ContractError, unreadable
from fxstack_artifact.program.operators import operator_call
from fxstack_artifact.program.parameters import Parameters
from fxstack_artifact.program.results import result_maker
from fxstack_artifact.program.sizes import reader
from fxstack_artifact.program.structure import maker

_native.bind(torch.Tensor, torch.nn.Parameter, ArtifactError, ContractError)


class EntryPoint:
    """A compiled function. A call that does not fit the contract is a ``ContractError`` before anything happens.

    It computes what the function computed when the artifact was made, and records nothing for autograd. ``training``:
    the mode of the module it was made of; None if it was made of no module.
    """

    def __init__(
        self,
        name: str,
        data: Mapping[str, Any],
        constants: Sequence[torch.Tensor],
        content: bytes,
    ) -> None:
        try:
            self._build(name, data, constants, content)
        except ArtifactError:
            raise
        except (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError) as error:
            raise unreadable(f"entry point {name}: {error!r}") from error

    def _build(
        self, name: str, data: Mapping[str, Any], constants: Sequence[torch.Tensor], content: bytes
    ) -> None:
        self.name = name
        self.training: bool | None = data.get("mode")
        self._parameters = Parameters(data["parameters"])
        names = [*self._parameters.leaf_names, *map(str, data["symbols"]["names"])]
        graph = data["graph"]
        held = tuple(constants[index] for index in graph["constants"])
        self._run: Callable[..., Sequence[Any]] = compiled_graph(graph, names, held, content)
        sizes = reader(data["symbols"]["sources"])
        self._results = result_maker(data["results"]["makes"], held, sizes)
        self._written = [int(leaf) for leaf in data["written"]]
        self._node = data["results"]["node"]
        self._make = maker(self._node)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it. ContractError (FXA3xx) if the arguments do not fit."""
        leaves = self._parameters.leaves(args, kwargs)
        found = self._run(*leaves)
        if self._written:
            torch.autograd.graph.increment_version(
                [leaves[i] for i in self._written if not leaves[i].is_inference()]
            )
        return self._make(self._results(leaves, found))

    def __repr__(self) -> str:
        return f"<EntryPoint {self.name}({', '.join(self._parameters.leaf_names)})>"


def compiled_graph(
    data: Mapping[str, Any], names: Sequence[str], constants: tuple[torch.Tensor, ...], content: bytes
) -> _native.Graph:
    """A native object with its contract; ``names`` are those of its leaves and symbols."""
    return _native.Graph(
        array("q", data["contract"]).tobytes(),
        "".join(f"{one.translate(_ONE_LINE)}\n" for one in names),
        content,
        constants,
        tuple(map(operator_call, data["operators"])),
        bool(data["release_gil"]),
        int(data["scratch_limit"]),
    )


_ONE_LINE = {ord("\n"): " ", 0: " "}
