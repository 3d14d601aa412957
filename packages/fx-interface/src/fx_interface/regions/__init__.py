"""Regions: nodes that call sub-graphs. One file each; ``REGIONS`` finds the declaration by the node's target."""

from fx_interface.regions import block  # noqa: F401  # declares call_block
from fx_interface.regions.attention import attention
from fx_interface.regions.checkpoint import checkpointed
from fx_interface.regions.control_flow import conditional, loop, scan, slice_of, stacked
from fx_interface.regions.differentiable import differentiable
from fx_interface.regions.region import REGIONS, Region, RegionCall, bodies_of, region, region_of
from fx_interface.regions.transforms import gradient, mapped, moving, pushed

__all__ = [
    "REGIONS",
    "Region",
    "RegionCall",
    "attention",
    "bodies_of",
    "checkpointed",
    "conditional",
    "differentiable",
    "gradient",
    "loop",
    "mapped",
    "moving",
    "pushed",
    "region",
    "region_of",
    "scan",
    "slice_of",
    "stacked",
]
