"""When kernels are compiled: at their first launch, out of a file that may be gone by then."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest
import torch

from inductor_codegen.cache import content_key, temporary_store
from inductor_codegen.codegen.triton.launch import kernels
from inductor_codegen.codegen.triton.launch.images import load_image, read, written
from inductor_codegen.codegen.triton.launch.kernels import (
    POINTERS_ALIGNED,
    KernelLoader,
    KernelRecord,
    form_of,
)
from inductor_codegen.toolchain.kernel_processes import Image


def test_kernels_outlive_the_store_that_they_were_made_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with temporary_store() as passing:
        made = passing.put(content_key("kernels"), None, {"kernels.py": b"MEANING = 42\n"})
        loader = KernelLoader(made.files["kernels.py"], (), 0)
    assert not made.files["kernels.py"].exists()
    assert loader._module.MEANING == 42


def test_images_are_read_as_they_were_written() -> None:
    images = {
        ("one", 64, 1, 4, 0, 3): Image(b"first" * 100, "one", 128, 0),
        ("two", 1, 1024, 8, 2, 1): Image(b"second", "two_", 256, 50000),
    }
    table, content = written(images)
    found = read(json.loads(json.dumps(table)), content)
    assert list(found) == list(images)
    for form, image in found.items():
        assert image._replace(content=zlib.decompress(image.content)) == images[form]
    with pytest.raises(ValueError, match="images"):
        read(table, content[:-1])


@pytest.mark.skipif(torch.cuda.is_available(), reason="the driver is there")
def test_without_a_driver_no_image_is_loaded() -> None:
    ((_, image),) = read(*written({("one", 64, 1, 4, 0, 3): Image(b"first", "one", 128, 0)})).items()
    assert load_image(image) is None


def test_an_image_is_taken_for_its_form_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    record = KernelRecord("one", ("*fp32", "*fp32"), reduces=False, along_rows=False)
    file = tmp_path / "kernels.py"
    file.write_text("")
    form = form_of(record, record.launch(12, 0), POINTERS_ALIGNED)
    monkeypatch.setattr(kernels, "load_image", lambda image: 4711 if image.name == "one" else None)
    loader = KernelLoader(file, (record,), 0, {form: Image(b"", "one", 128, 0)})
    assert loader(0, 12, 0, POINTERS_ALIGNED) == (4711, 1024, 128, 0)
    with pytest.raises(AttributeError, match="one"):  # the module has no such function
        loader(0, 12, 0, 0)
