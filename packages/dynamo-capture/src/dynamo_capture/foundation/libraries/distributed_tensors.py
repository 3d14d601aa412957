"""Torch's distributed tensors: their class, and what says how one is spread over processes.

Nothing is imported for them: where a program has one, their modules are loaded.
"""

from __future__ import annotations

import sys
from typing import Any

from dynamo_capture.foundation.class_members import module_of

_PLACEMENTS = "torch.distributed.tensor.placement_types"


def distributed_class() -> Any:
    """``DTensor``; None where no program can have one."""
    module = sys.modules.get("torch.distributed.tensor._api")
    return getattr(module, "DTensor", None)


def is_distributed(cls: type) -> bool:
    """Whether a class of tensors is ``DTensor`` itself, whose operators C++ takes apart."""
    return cls.__name__ == "DTensor" and cls is distributed_class()


def is_waiting(cls: type) -> bool:
    """Whether a class of tensors is that of results of collectives which are waited for when they are read."""
    module = sys.modules.get("torch.distributed._functional_collectives")
    return cls.__name__ == "AsyncCollectiveTensor" and cls is getattr(module, "AsyncCollectiveTensor", None)


def is_placement(cls: type) -> bool:
    """Whether objects of a class say how a tensor lies in one dimension of a mesh, and do not change."""
    if module_of(cls) != _PLACEMENTS:
        return False
    module = sys.modules[_PLACEMENTS]
    return cls in (module.Shard, module.Replicate, module.Partial, module._StridedShard)


def is_mesh(value: object) -> bool:
    """Whether an object is a mesh of processes."""
    module = sys.modules.get("torch.distributed.device_mesh")
    return module is not None and isinstance(value, module.DeviceMesh)


def is_fake(value: object) -> bool:
    """Whether something is a tensor that torch itself infers the form of a result with."""
    module = sys.modules.get("torch._subclasses.fake_tensor")
    return module is not None and isinstance(value, module.FakeTensor)


def is_spec(value: object) -> bool:
    """Whether an object says of a distributed tensor how it is spread."""
    module = sys.modules.get("torch.distributed.tensor._dtensor_spec")
    return module is not None and isinstance(value, module.DTensorSpec)


def gradient_spec(spec: Any) -> Any:
    """How the gradient of a result is spread: as the result, whole where that is a sum which nobody has taken."""
    types, meta = sys.modules[_PLACEMENTS], spec.tensor_meta
    placements = tuple(types.Replicate() if place.is_partial() else place for place in spec.placements)
    strides = [1]
    for size in reversed(meta.shape[1:]):
        strides.insert(0, strides[0] * max(size, 1))
    return type(spec)(spec.mesh, placements, meta._replace(stride=tuple(strides[: len(meta.shape)])))
