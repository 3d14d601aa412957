"""Selective checkpoints: a policy says of each operator in one whether its result may be kept for the backward."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch._ops import OpOverload
from torch.utils.checkpoint import SAC_IGNORED_OPS, CheckpointPolicy, SelectiveCheckpointContext

from aot_autograd.recording.record import Recorder
from aot_autograd.recording.trace import TracedTensor
from aot_autograd.views.memory import read
from fx_interface.errors import StackError, UnsupportedProgramError
from fx_interface.torch_internals.dispatch_mode import DispatchMode

_SAVED = (True, CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


class Selection(DispatchMode):
    """Asks ``policy`` about each operator while a checkpointed part is traced."""

    def __init__(self, recorder: Recorder, policy: Callable[..., Any]) -> None:
        super().__init__()
        self._recorder = recorder
        self._policy = policy

    def dispatch(self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        result = func(*args, **kwargs)
        if func in SAC_IGNORED_OPS or not self._saves(func, result, args, kwargs):
            return result
        for part in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(part, TracedTensor):
                read(self._recorder, part).recomputed = False
        return result

    def _saves(self, func: OpOverload, result: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        context: Any = SelectiveCheckpointContext(is_recompute=False)
        context.op_output = result
        try:
            return self._policy(context, func, *args, **kwargs) in _SAVED
        except StackError:
            raise
        except Exception as error:
            raise UnsupportedProgramError(
                "AOT129",
                f"the policy of a checkpoint raises {type(error).__name__} for {func}: {error}",
                action="the graph runs as it was captured, and asks it there",
            ) from error
