"""Training from C++: the library, called here through its C interface, and the example program."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import fxstack
import fxstack_artifact

X = torch.arange(24.0).reshape(3, 8) / 24
ROOM = 1024


class Net(nn.Module):
    """With a buffer that is written, an integer one, a frozen weight and one that is shared."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 4)
        self.scale = nn.Parameter(torch.randn(4), requires_grad=False)
        self.again = self.last

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.last(torch.relu(self.norm(self.first(x))))
        return (y * self.scale).square().mean()


@pytest.fixture(scope="session")
def library(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The C++ library in this process, beside torch."""
    path = tmp_path_factory.mktemp("shared") / "libfxstack_artifact.so"
    whole = ("-Wl,--whole-archive", str(programs / "libfxstack_artifact.a"), "-Wl,--no-whole-archive")
    command = ["c++", "-shared", "-Wl,-Bsymbolic", "-o", str(path), *whole, "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = ctypes.CDLL(str(path))
    for name in ("fxa_load", "fxa_entry_point", "fxa_weight"):
        getattr(found, name).restype = ctypes.c_void_p
    for name in ("fxa_gradient_name", "fxa_weight_name", "fxa_result_name", "fxa_input_name"):
        getattr(found, name).restype = ctypes.c_char_p
    for name in ("fxa_gradient_count", "fxa_weight_count", "fxa_result_count"):
        getattr(found, name).restype = ctypes.c_int64
    return found


class Refused(Exception):
    pass


class Loaded:
    """An artifact through the C interface; tensors in and out are torch's own."""

    def __init__(self, library: ctypes.CDLL, path: Path) -> None:
        self.library, self.error = library, ctypes.create_string_buffer(ROOM)
        self.artifact = ctypes.c_void_p(library.fxa_load(str(path).encode(), self.error, ROOM))
        if not self.artifact:
            raise Refused(self.error.value.decode())
        self.entry = ctypes.c_void_p(library.fxa_entry_point(self.artifact, None))

    def names(self, kind: str) -> list[str]:
        of = self.artifact if kind == "weight" else self.entry
        count = getattr(self.library, f"fxa_{kind}_count")(of)
        return [
            getattr(self.library, f"fxa_{kind}_name")(of, ctypes.c_int64(i)).decode() for i in range(count)
        ]

    def forward(self, *inputs: torch.Tensor) -> tuple[list[torch.Tensor], ctypes.c_void_p]:
        handed, results = _Handles(inputs), (ctypes.c_void_p * len(self.names("result")))()
        kept = ctypes.c_void_p()
        code = self.library.fxa_forward(
            self.entry, handed.array, results, ctypes.byref(kept), self.error, ctypes.c_size_t(ROOM)
        )
        self._check(code)
        return [tensor for handle in results if (tensor := _taken(handle)) is not None], kept

    def backward(
        self, kept: ctypes.c_void_p, gradients: Sequence[torch.Tensor | None]
    ) -> dict[str, torch.Tensor | None]:
        names = self.names("gradient")
        handed, made = _Handles(gradients), (ctypes.c_void_p * len(names))()
        code = self.library.fxa_backward(kept, handed.array, made, self.error, ctypes.c_size_t(ROOM))
        self._check(code)
        return dict(zip(names, map(_taken, made), strict=True))

    def weight(self, name: str) -> torch.Tensor:
        """A tensor of the same memory."""
        borrowed = self.library.fxa_weight(self.artifact, name.encode())
        assert borrowed is not None
        another = ctypes.c_void_p()
        _shim().aoti_torch_new_tensor_handle(ctypes.c_void_p(borrowed), ctypes.byref(another))
        taken = _taken(another.value)
        assert taken is not None
        return taken

    def _check(self, code: int) -> None:
        if code:
            raise Refused(self.error.value.decode())


def _shim() -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))


class _Handles:
    """Handles of tensors: the addresses of cells that hold what they point to."""

    def __init__(self, tensors: Sequence[torch.Tensor | None]) -> None:
        self._tensors = tensors
        self._cells = [None if one is None else ctypes.c_void_p(one._cdata) for one in tensors]
        found = [None if cell is None else ctypes.addressof(cell) for cell in self._cells]
        self.array = (ctypes.c_void_p * max(1, len(found)))(*found)


def _taken(handle: int | None) -> torch.Tensor | None:
    if not handle:
        return None
    wrap = ctypes.PyDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_python.so"))
    make = wrap._Z16THPVariable_WrapRKN2at10TensorBaseE
    make.restype = ctypes.py_object
    made: torch.Tensor = make(ctypes.c_void_p(handle))
    _shim().aoti_torch_delete_tensor_object(ctypes.c_void_p(handle))
    return made


@pytest.mark.nightly
def test_gradients_are_those_of_python(library: ctypes.CDLL, tmp_path: Path) -> None:
    x = X.clone().requires_grad_()
    path = fxstack.aot_compile(
        Net().train(), (x,), path=tmp_path / "t.fxa", training=True, dynamic_shapes=[{0: "batch"}]
    )
    loaded, here = Loaded(library, path), fxstack.load(path)
    assert "scale" not in loaded.names("gradient")
    assert "x" in loaded.names("gradient")
    for rows in (3, 2):
        given = x.detach()[:rows].clone()
        (loss,), kept = loaded.forward(given)
        leaf = given.clone().requires_grad_()
        here.zero_grad()
        want = here(leaf)
        want.backward(torch.tensor(0.5))
        assert torch.equal(loss, want)
        wanted = {name: one.grad for name, one in here.named_parameters()} | {"x": leaf.grad}
        for _ in range(2):  # what was kept is there until it is dropped
            made = loaded.backward(kept, [torch.tensor(0.5)])
            for name, gradient in made.items():
                assert gradient is not None
                assert torch.equal(gradient, wanted[name])
                assert gradient.stride() == wanted[name].stride()
        library.fxa_drop_pass(kept)
        for name in ("norm.running_mean", "norm.num_batches_tracked"):
            assert torch.equal(loaded.weight(name), here.get_buffer(name))


def _two(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x * w
    z = y.exp() @ w.t()
    return y, z, x, y[0]


def test_results_without_a_gradient_count_as_zeros(library: ctypes.CDLL, tmp_path: Path) -> None:
    x, w = X.clone().requires_grad_(), torch.randn(3, 8, requires_grad=True)
    path = fxstack.aot_compile(_two, (x, w), path=tmp_path / "t.fxa", training=True)
    loaded = Loaded(library, path)
    (y, z, _, _), kept = loaded.forward(x.detach(), w.detach())
    dy, dz = torch.randn(3, 8), torch.randn(3, 3)
    for gradients in ([dy, dz], [dy, None], [None, dz], [dy.t().contiguous().t(), dz.t()]):
        wanted = torch.autograd.grad(
            [one for one, gradient in zip(_two(x, w), gradients, strict=False) if gradient is not None],
            [x, w],
            [gradient for gradient in gradients if gradient is not None],
        )
        made = loaded.backward(kept, [*gradients, None, None])
        torch.testing.assert_close(list(made.values()), list(wanted))
    assert loaded.backward(kept, [None] * 4) == {"x": None, "w": None}


def test_what_does_not_fit_is_told(library: ctypes.CDLL, tmp_path: Path) -> None:
    x, w = X.clone().requires_grad_(), torch.randn(3, 8, requires_grad=True)
    loaded = Loaded(library, fxstack.aot_compile(_two, (x, w), path=tmp_path / "t.fxa", training=True))
    given = [x.detach().clone(), w.detach().clone()]
    _, kept = loaded.forward(*given)
    for gradients, told in (
        (
            [torch.ones(3, 7), None, None, None],
            r"FXA405\] the gradient of a result is torch.float32 of \[3, 7\] on cpu",
        ),
        (
            [torch.ones(3, 8).double(), None, None, None],
            r"torch.float64 of \[3, 8\] on cpu, the result is torch.float32",
        ),
        ([torch.ones(3, 8).to_sparse(), None, None, None], r"FXA"),
        ([None, None, X, None], r"FXA405\] result\[2\] is an input, a weight or a view"),
        ([None, None, None, X[0]], r"FXA405\] result\[3\] is an input, a weight or a view"),
    ):
        with pytest.raises(Refused, match=told):
            loaded.backward(kept, gradients)
    given[1].mul_(2)
    with pytest.raises(Refused, match=r"^w was written to since the forward"):
        loaded.backward(kept, [torch.ones(3, 8), None, None, None])
    with pytest.raises(Refused, match="FXA305"):
        loaded.forward(X[:, :7], given[1])


def test_a_gradient_shares_no_memory_with_another(library: ctypes.CDLL, tmp_path: Path) -> None:
    def plus(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x + w

    x, w = X.clone().requires_grad_(), X.clone().requires_grad_()
    loaded = Loaded(library, fxstack.aot_compile(plus, (x, w), path=tmp_path / "t.fxa", training=True))
    _, kept = loaded.forward(x.detach(), w.detach())
    arriving = torch.ones(3, 8)
    made = loaded.backward(kept, [arriving])
    assert len({one.data_ptr() for one in (*made.values(), arriving)}) == 3


def test_nan_that_may_come_of_zeros_is_refused(library: ctypes.CDLL, tmp_path: Path) -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.sqrt().sum(), x.sum()

    x = torch.zeros(3, requires_grad=True)
    path = fxstack.aot_compile(f, (x,), path=tmp_path / "t.fxa", training=True)
    here = fxstack.load(path)
    with pytest.raises(fxstack_artifact.GradientError) as refused:
        here(x)[1].backward()
    loaded = Loaded(library, path)
    _, kept = loaded.forward(x.detach())
    with pytest.raises(Refused) as told:
        loaded.backward(kept, [None, torch.tensor(1.0)])
    assert str(told.value) == str(refused.value)


def test_an_entry_point_for_inference_has_no_backward(library: ctypes.CDLL, tmp_path: Path) -> None:
    loaded = Loaded(library, fxstack.aot_compile(Net().eval(), (X,), path=tmp_path / "t.fxa"))
    assert loaded.names("gradient") == []
    with pytest.raises(Refused, match=r"FXA204\] forward is no entry point for training"):
        loaded.forward(X)


def test_a_program_trains(programs: Path, tmp_path: Path) -> None:
    path = fxstack.aot_compile(Net().train(), (X,), path=tmp_path / "t.fxa", training=True)
    names = [item["name"] for item in fxstack_artifact.inspect(path)["constants"]]
    for steps, rate in ((1, 1.0), (5, 0.1)):
        done = subprocess.run(
            [programs / "train", path, str(steps), str(rate), "3", "8"],
            capture_output=True,
            text=True,
            env={},
        )
        assert done.returncode == 0, done.stderr
        found = torch.tensor([float(line) for line in done.stdout.split()])
        here: Any = fxstack.load(path)
        losses = []
        for _ in range(steps):
            here.zero_grad()
            loss = here(X)
            loss.backward()
            losses.append(loss.detach())
            with torch.no_grad():
                for weight in here.parameters():
                    if weight.grad is not None:
                        weight -= rate * weight.grad
        state = here.state_dict()
        wanted = torch.cat([torch.stack(losses), *(state[name].flatten().float() for name in names)])
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-7)
        assert torch.equal(found[:1], wanted[:1])
