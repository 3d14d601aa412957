"""Partitioning: which forward values are kept for the backward; whatever is not kept is computed again there."""

from aot_autograd.partition.save_everything import Partitioner, save_everything

__all__ = ["Partitioner", "save_everything"]
