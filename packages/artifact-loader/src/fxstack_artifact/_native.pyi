from collections.abc import Callable
from typing import Any

ENTRY_ABI: int

def bind(tensor_type: type, parameter_type: type, artifact_error: type, contract_error: type, /) -> None: ...
def cpu_levels() -> list[str]: ...
def checksum(content: bytes | bytearray | memoryview, level: str = ..., /) -> str: ...
def digest(content: bytes | bytearray | memoryview, level: str = ..., /) -> str: ...

class Graph:
    def __new__(
        cls,
        contract: bytes,
        names: str,
        content: bytes,
        constants: tuple[Any, ...],
        operators: tuple[Callable[..., Any], ...],
        release_gil: bool = False,
        scratch_limit: int = 0,
    ) -> Graph: ...
    def __call__(self, *leaves: Any) -> tuple[Any, ...]: ...
