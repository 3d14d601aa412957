"""Our own backends are held to the suite that a third party's is."""

from __future__ import annotations

from fx_interface.conformance import BackendConformance
from fxstack.backends import aot_eager, eager, inductor


class TestEager(BackendConformance):
    backend = staticmethod(eager)


class TestAotEager(BackendConformance):
    backend = staticmethod(aot_eager)


class TestInductor(BackendConformance):
    backend = staticmethod(inductor)
