"""The conformance suite: a third-party backend subclasses ``BackendConformance`` and runs it with pytest.

from fx_interface.conformance import BackendConformance

class TestMyBackend(BackendConformance):
    backend = staticmethod(my_backend)
"""

from fx_interface.conformance.cases import CASES, Case
from fx_interface.conformance.dynamic_cases import DYNAMIC_CASES, DynamicCase
from fx_interface.conformance.recorder import Recorder
from fx_interface.conformance.suite import BackendConformance

__all__ = ["CASES", "DYNAMIC_CASES", "BackendConformance", "Case", "DynamicCase", "Recorder"]
