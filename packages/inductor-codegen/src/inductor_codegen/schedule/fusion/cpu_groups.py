"""What shares a kernel on a CPU: what long rows that lie side by side have each stands apart from their points.

Of a channels-last image of 16 channels a kernel that stores a number for each channel, and computes all points from it,
has 16 rows, which threads share and which it goes through side by side. Without that number it goes through memory from
end to end, and threads share all of it.
"""

from __future__ import annotations

from fx_interface.symbols import product
from inductor_codegen.lower.values import Lowered
from inductor_codegen.lower.views import is_one
from inductor_codegen.schedule.fusion.groups import Group, Position

SHORT_COLUMN = 64
"""Points of a row up to which one kernel computes what the row has, and then its points."""


def has_long_columns(group: Group, lowered: Lowered) -> bool:
    """Whether a group stores a value whose neighbours in memory belong to different rows, of many points each."""
    domain = group.domain
    if domain.outer is None:
        return False
    points = product([size for size, keep in zip(domain.dims, domain.outer, strict=True) if not keep])
    if isinstance(points, int) and points <= SHORT_COLUMN:
        return False
    for number, position in group.stored.items():
        value = lowered.values[number]
        along = [
            dim for dim, stride in enumerate(value.strides) if is_one(stride) and not is_one(value.sizes[dim])
        ]
        if position is Position.FULL and along:
            axes = domain.select(value.sizes, along)
            return axes is not None and set(axes) <= set(domain.outer_axes)
    return False
