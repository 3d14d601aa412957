"""The guard on what torch's dispatch of distributed tensors looks at besides the tensors."""

from __future__ import annotations

from typing import Any, ClassVar

from dynamo_capture.foundation.libraries.distributed_tensors import distributed_class
from fx_guards import GuardRecord, guard_kind
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import ImportedModuleSource

_PLACE = ImportedModuleSource("torch.distributed.tensor._api")


@guard_kind
@dataclass(frozen=True, slots=True)
class DistributedState(GuardRecord):
    """These operators have handlers of their own (``loss_parallel`` adds some), and plain tensors are taken for whole
    ones, or not (``implicit_replication``)."""

    kind: ClassVar[str] = "distributed_state"
    handlers: tuple[tuple[Any, Any], ...]
    replicates: bool

    def holds(self, value: Any) -> bool:
        return _state() == (self.handlers, self.replicates)

    def explain(self, value: Any) -> str:
        return (
            "expected torch to take distributed tensors apart as it did (loss_parallel, implicit_replication)"
        )


def _state() -> tuple[tuple[tuple[Any, Any], ...], bool]:
    dispatcher = distributed_class()._op_dispatcher
    return tuple(dispatcher._custom_op_handlers.items()), dispatcher._allow_implicit_replication


def distributed_state() -> DistributedState:
    """The guard that holds now."""
    return DistributedState(_PLACE, *_state())
