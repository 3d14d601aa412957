"""From a shared library and a small record to a callable graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from fx_interface.errors import CorruptArtifactError
from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.native_errors import ArtifactLoadError
from inductor_codegen.runtime.binding import ENTRY_ABI, CompiledGraph
from inductor_codegen.runtime.operator_call import OperatorCall

SCRATCH_LIMIT = 128 << 20
"""Bytes of scratch memory that are kept from one call to the next; more is given back after every call."""


@dataclass(frozen=True, slots=True)
class GraphRecord:
    """All that the runtime must know of a compiled graph besides its library.

    ``input_kinds`` has a letter for each input: t tensor, i integer, f float, u unused. ``output_kinds``: t, i, f, or n
    for None. ``operators`` are the calls made through Python; ``release_gil`` says whether other Python threads may run
    during a call; ``key`` is the artifact's key. ``gpu``: the CUDA device that it runs on, None for the CPU;
    ``not_recorded``: why no CUDA graph may be recorded of it (both are the artifact's to tell).
    """

    key: str
    input_kinds: str
    output_kinds: str
    operators: tuple[OperatorCall, ...] = ()
    release_gil: bool = False
    scratch_limit: int = SCRATCH_LIMIT
    gpu: int | None = None
    not_recorded: str = ""

    def to_data(self) -> dict[str, Any]:
        """JSON data."""
        return {
            "abi": ENTRY_ABI,
            "key": self.key,
            "inputs": self.input_kinds,
            "outputs": self.output_kinds,
            "operators": [call.to_data() for call in self.operators],
            "release_gil": self.release_gil,
            "scratch_limit": self.scratch_limit,
        }

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> GraphRecord:
        """What ``to_data`` wrote. ArtifactLoadError IND401 for anything else."""
        try:
            if data["abi"] != ENTRY_ABI:
                raise ValueError(f"made for runtime ABI {data['abi']}, this is {ENTRY_ABI}")
            return GraphRecord(
                data["key"],
                data["inputs"],
                data["outputs"],
                tuple(OperatorCall.from_data(call) for call in data["operators"]),
                data["release_gil"],
                data["scratch_limit"],
            )
        except (KeyError, TypeError, ValueError, CorruptArtifactError) as error:
            raise ArtifactLoadError(
                "IND401", f"the record of a compiled graph cannot be read: {error}"
            ) from error


Prepare: TypeAlias = Callable[[int, int, int, int], tuple[int, ...]]
"""How the runtime asks for a kernel of a GPU (``csrc/gpu.h``): (its number, bits of rows, bits of points, traits) ->
(loaded function, rows of a block, threads, bytes of shared memory), and if it is split (..., parts, points of a block,
and the first four for the function that joins the parts), or for a kernel of tiles (..., 0, points of a tile)."""


def load(record: GraphRecord, library: Path, prepare: Prepare | None = None) -> CompiledGraph:
    """The callable graph; ``prepare`` for one that runs on a GPU.

    ArtifactLoadError IND401 when the library cannot be loaded or bound.
    """
    try:
        return CompiledGraph(
            str(library),
            record.input_kinds,
            record.output_kinds,
            tuple(call.bind() for call in record.operators),
            record.release_gil,
            record.scratch_limit,
            record,
            prepare,
        )
    except OSError as error:
        raise ArtifactLoadError(
            "IND401", str(error), action="delete the cache entry; the graph is compiled again"
        ) from error
