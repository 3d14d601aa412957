"""A comparison of training and inference backends that anyone can run: suites, measurements, results, pages.

A user's own file of models (``fxstack dashboard run --suite FILE.py``) needs ``Workload``; the rest is the command
line ``fxstack dashboard``.
"""

from fxstack_dashboard.__about__ import __version__
from fxstack_dashboard.suites.workload import Workload

__all__ = ["Workload", "__version__"]
