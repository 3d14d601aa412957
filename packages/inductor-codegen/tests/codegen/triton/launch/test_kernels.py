"""When kernels are compiled: at their first launch, out of a file that may be gone by then."""

from __future__ import annotations

import pytest

from inductor_codegen.cache import content_key, temporary_store
from inductor_codegen.codegen.triton.launch.kernels import KernelLoader


def test_kernels_outlive_the_store_that_they_were_made_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with temporary_store() as passing:
        made = passing.put(content_key("kernels"), None, {"kernels.py": b"MEANING = 42\n"})
        loader = KernelLoader(made.files["kernels.py"], (), 0)
    assert not made.files["kernels.py"].exists()
    assert loader._module.MEANING == 42
