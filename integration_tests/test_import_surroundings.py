"""What the packages' modules hold does not depend on the modes that a program has where it imports them."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import contextlib, importlib, pkgutil, sys
import torch

modes = contextlib.ExitStack()
if sys.argv[1] == "under modes":
    torch.set_default_dtype(torch.float64)
    for mode in (torch.device("meta"), torch.no_grad(), torch.inference_mode(), torch.autocast("cpu")):
        modes.enter_context(mode)
names = ["fx_interface", "fx_guards", "dynamo_capture", "aot_autograd", "primtorch_decomps", "inductor_codegen"]
names.append("fxstack")
left_out = "fxstack.__main__", "inductor_codegen.codegen.triton.launch"  # a program, and what needs Triton
plain = (int, float, complex, bool, str, bytes, type(None), torch.dtype, torch.device)


def described(value):
    if isinstance(value, (tuple, list)):
        return [described(item) for item in value]
    if isinstance(value, torch.Tensor):
        return value.dtype, value.device, value.is_inference(), value.requires_grad
    return repr(value) if isinstance(value, plain) else type(value).__name__


with modes:
    for package in map(importlib.import_module, names):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.startswith(left_out):
                importlib.import_module(found.name)
for name in sorted(sys.modules):
    if name.partition(".")[0] in names:
        for key, value in vars(sys.modules[name]).items():
            if not key.startswith("__"):
                print(name, key, described(value))
"""


def printed(how: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def test_modules_hold_the_same_under_any_modes() -> None:
    plain, under_modes = printed("plain"), printed("under modes")
    assert len(plain) > 1000
    assert plain == under_modes
