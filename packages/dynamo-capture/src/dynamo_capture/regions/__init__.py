"""Regions: parts of the program that become sub-graphs of one node. One file for each kind."""

from dynamo_capture.regions.body import Body
from dynamo_capture.regions.tracing import call_region, trace_body

__all__ = ["Body", "call_region", "trace_body"]
