"""Is a compiled function as good as eager? See ``verify.verify``."""

from fxstack.verification.report import Verification
from fxstack.verification.verify import verify

__all__ = ["Verification", "verify"]
