"""What was measured before, under the device and the libraries that it was measured with."""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
from collections.abc import Callable, Iterator
from typing import Any

import torch

from fx_interface.torch_internals.dispatch_mode import without_dispatch_modes
from inductor_codegen.cache import ArtifactStore, content_key

logger = logging.getLogger("inductor_codegen")
_FORMAT = "1"


class Measured:
    """The choices of one device in a store; they travel with it, as all of its entries do."""

    def __init__(self, device: torch.device, store: ArtifactStore) -> None:
        self.device, self._store = device, store
        told = torch.cuda.get_device_properties(device)
        versions = importlib.metadata.version("triton"), torch.__version__
        self._where = (_FORMAT, told.name, str(told.multi_processor_count), *versions)

    def choice(self, what: str, text: str, measure: Callable[[], Any]) -> Any:
        """What was chosen for ``what`` with this ``text``, as JSON data; measured if it was not yet."""
        key = content_key("measured", what, *self._where, text)
        found = self._store.get(key)
        if found is not None:
            return found.metadata
        made = measure()
        try:
            self._store.put(key, made)
        except OSError as error:
            logger.warning("a measured choice is not kept: %s", error)
        return made


@contextlib.contextmanager
def unseen() -> Iterator[None]:
    """Nothing that the program has entered sees what is measured inside."""
    with torch._C.DisableTorchFunction(), without_dispatch_modes():
        yield


def can_measure(device: torch.device) -> bool:
    """Whether anything may be measured now: not while a CUDA graph is recorded."""
    return (
        device.type == "cuda"
        and torch.version.hip is None
        and torch.cuda.is_available()
        and not torch.cuda.is_current_stream_capturing()
    )
