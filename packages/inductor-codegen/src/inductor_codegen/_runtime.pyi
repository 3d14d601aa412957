from collections.abc import Callable, Sequence
from typing import Any

ENTRY_ABI: int

def calibrate(
    tensor_type: type, parameter_type: type, examples: tuple[Any, ...], use_slot: bool = True, /
) -> int: ...
def scalar_type(name: str, /) -> int: ...
def exports(name: str, /) -> bool: ...
def described(values: Sequence[Any], positions: tuple[int, ...], addresses: bool, /) -> bytes: ...
def watch(begins: bool, /) -> None: ...
def watched(on_gpu: bool, /) -> dict[str, tuple[int, int, int]]: ...

class CompiledGraph:
    path: str
    metadata: Any
    input_count: int
    output_count: int
    def __new__(
        cls,
        path: str,
        input_kinds: str,
        output_kinds: str,
        operators: tuple[Callable[..., Any], ...],
        release_gil: bool = False,
        scratch_limit: int = 0,
        metadata: Any = None,
        prepare: Callable[[int, int, int, int], tuple[int, ...]] | None = None,
    ) -> CompiledGraph: ...
    def __call__(self, *inputs: Any) -> tuple[Any, ...]: ...
    def call_owning(self, inputs: list[Any], positions: tuple[int, ...], /) -> tuple[Any, ...]: ...
    @property
    def artifact_key(self) -> str: ...
