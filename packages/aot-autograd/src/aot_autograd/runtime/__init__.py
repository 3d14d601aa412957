"""The runtime: compiled graphs plugged into torch's autograd, with mutation and aliasing as eager has them."""

from aot_autograd.runtime.finish import finish

__all__ = ["finish"]
