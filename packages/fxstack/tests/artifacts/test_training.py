"""A training artifact: gradients, buffers and random numbers are those of the process that made it."""

from __future__ import annotations

import contextlib
import copy
import json
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import fxstack
from fxstack.artifacts.archive import write_archive
from fxstack_artifact import ArtifactError, ContractError, GradientError
from fxstack_artifact.container.reading import open_archive

X = torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
T = torch.tensor([0, 1, 2, 3, 0])


class Classifier(nn.Module):
    """Batch norm, dropout, a loss that is computed from another result, and a view of one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.norm = nn.BatchNorm1d(16)
        self.twin = nn.BatchNorm1d(16)
        self.target = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = F.dropout(self.twin(self.norm(self.first(x))).relu(), 0.2, self.training)
        logits = self.target(hidden)
        return {"loss": F.cross_entropy(logits, t), "logits": logits, "row": logits[0]}


def classifier() -> Classifier:
    torch.manual_seed(0)
    return Classifier()


def two(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return (x * w).sin(), (x * v).exp().sum()


def trained(model: nn.Module, run: Any, steps: int = 4, sizes: tuple[int, ...] = (5,)) -> list[torch.Tensor]:
    """The losses of some steps."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step in range(steps):
        torch.manual_seed(step)
        n = sizes[step % len(sizes)]
        result = run(torch.randn(n, 8), torch.randint(0, 4, (n,)))
        optimizer.zero_grad()
        result["loss"].backward()
        optimizer.step()
        losses.append(result["loss"].detach())
    return losses


def state(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.detach() for name, tensor in model.state_dict().items()}


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor], *, bits: bool) -> None:
    assert set(one) == set(other)
    for name, tensor in one.items():
        if bits:
            assert torch.equal(tensor, other[name]), name
        else:
            torch.testing.assert_close(tensor, other[name])


def test_training_is_the_compiling_process_own(tmp_path: Path) -> None:
    model = classifier()
    eager, compiled = copy.deepcopy(model), copy.deepcopy(model)
    before, random = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    path = fxstack.aot_compile(model, (X, T), path=tmp_path / "m.fxa", training=True)
    assert torch.equal(torch.get_rng_state(), random)
    assert_same(state(model), before, bits=True)
    loaded = fxstack.load(path)
    assert isinstance(loaded, nn.Module)
    ours, theirs = trained(loaded, loaded), trained(compiled, fxstack.compile(compiled))
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    torch.testing.assert_close(ours, trained(eager, eager))
    assert_same(state(loaded), state(compiled), bits=True)
    assert_same(state(loaded), state(eager), bits=False)
    for (_, a), (_, b) in zip(loaded.named_parameters(), compiled.named_parameters(), strict=True):
        assert torch.equal(a.grad, b.grad)
        assert a.grad.stride() == b.grad.stride()
    eager.load_state_dict(loaded.state_dict())


def test_sizes_vary(tmp_path: Path) -> None:
    model = classifier()
    eager = copy.deepcopy(model)
    shapes = {"x": {0: "batch"}, "t": {0: "batch"}}
    path = fxstack.aot_compile(model, (X, T), path=tmp_path / "m.fxa", training=True, dynamic_shapes=shapes)
    loaded = fxstack.load(path)
    torch.testing.assert_close(trained(loaded, loaded, 6, (5, 3, 9)), trained(eager, eager, 6, (5, 3, 9)))
    assert_same(state(loaded), state(eager), bits=False)


def arguments(**frozen: bool) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(1)
    return [torch.randn(4, generator=draw, requires_grad=not frozen.get(name)) for name in ("x", "w", "v")]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return fxstack.load(
        fxstack.aot_compile(two, arguments(), path=tmp_path_factory.mktemp("two") / "m.fxa", training=True)
    )


def gradients(run: Any, use: Any, **frozen: bool) -> list[torch.Tensor | None]:
    given = arguments(**frozen)
    use(*run(*given))
    return [x.grad for x in given]


@pytest.mark.parametrize(
    "use",
    [
        lambda a, b: (a.sum() + b).backward(),
        lambda a, b: b.backward(),
        lambda a, b: a.backward(torch.arange(8.0)[::2]),
        lambda a, b: (a.sum().backward(retain_graph=True), b.backward()),
        lambda a, b: [b.backward(retain_graph=True) for _ in range(3)],
        lambda a, b: a.sum().backward(),
        lambda a, b: a.conj().imag.sum().backward() if a.is_complex() else a.expand(2, 4).sum().backward(),
    ],
)
@pytest.mark.parametrize("frozen", [{}, {"w": True}, {"v": True}, {"x": True, "v": True}])
def test_gradients_are_eagers(pair: Any, use: Any, frozen: dict[str, bool]) -> None:
    def outcome(run: Any) -> Any:
        try:
            return gradients(run, use, **frozen)
        except RuntimeError as error:
            return str(error)

    ours, eagers = outcome(pair), outcome(two)
    if isinstance(eagers, str):
        assert ours == eagers
    else:
        for ours_, eagers_ in zip(ours, eagers, strict=True):
            assert (ours_ is None) == (eagers_ is None)
            if ours_ is not None:
                torch.testing.assert_close(ours_, eagers_)


def test_without_gradients(pair: Any) -> None:
    with torch.no_grad():
        assert not pair(*arguments())[0].requires_grad
    with torch.inference_mode():
        assert not pair(*arguments())[0].requires_grad
    results = pair(*(x.detach() for x in arguments()))
    assert [result.requires_grad for result in results] == [False, False]
    x, w, v = arguments()
    assert [r.requires_grad for r in pair(x.detach(), w.detach(), v)] == [False, True]
    for ours, eagers in zip(results, two(*arguments()), strict=True):
        torch.testing.assert_close(ours, eagers.detach())


def test_what_is_freed_or_changed_is_told(pair: Any) -> None:
    result = pair(*arguments())[1]
    result.backward()
    with pytest.raises(RuntimeError, match="second time"):
        result.backward()
    given = arguments()
    result = pair(*given)[1]
    with torch.no_grad():
        given[2].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


def test_hooks_on_saved_tensors_see_them(pair: Any) -> None:
    seen = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: seen.append(x) or x * 1, lambda x: x):
        result = pair(*arguments())[0]
    result.sum().backward()
    assert seen


def test_threads_share_one(pair: Any) -> None:
    def work(seed: int) -> bool:
        given = [x.detach() + seed for x in arguments()]
        for x in given:
            x.requires_grad_()
        want = torch.autograd.grad(two(*given)[1], given[::2])
        return all(
            torch.allclose(got, expected)
            for _ in range(50)
            for got, expected in zip(torch.autograd.grad(pair(*given)[1], given[::2]), want, strict=True)
        )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_second_derivatives_are_refused(pair: Any) -> None:
    given = arguments()
    with pytest.raises(GradientError, match=r"FXA401.*second derivatives"):
        torch.autograd.grad(pair(*given)[1], given[0], create_graph=True)
    with pytest.raises(GradientError, match="FXA405"):
        torch.autograd.grad(pair(*given)[0], given[0], torch.eye(4), is_grads_batched=True)
    assert all(x.grad is None for x in given)


def test_hooks_that_would_see_something_else_are_refused(pair: Any, tmp_path: Path) -> None:
    given = arguments()
    given[2].register_hook(lambda gradient: gradient * 2)
    with pytest.raises(GradientError, match="FXA404"):
        pair(*given)[0].sum().backward()
    pair(*given)[1].backward()
    x, _, v = arguments()
    want = torch.autograd.grad(two(*arguments())[1], given[2], allow_unused=True)
    assert want == (None,)
    torch.testing.assert_close(given[2].grad, 2 * torch.autograd.grad(two(x, x, v)[1], v)[0])

    model = classifier()
    loaded = fxstack.load(fxstack.aot_compile(model, (X, T), path=tmp_path / "m.fxa", training=True))
    for look in (lambda t: t.retain_grad(), lambda t: t.register_hook(print)):
        result = loaded(X, T)
        look(result["logits"])
        with pytest.raises(GradientError, match="FXA402"):
            result["loss"].backward()
    result = loaded(X, T)
    result["logits"].retain_grad()
    result["logits"].sum().backward()
    assert torch.equal(result["logits"].grad, torch.ones(5, 4))


def test_nan_of_missing_gradients_is_refused(tmp_path: Path) -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x.sqrt()
        return y.sum(), x * 2

    x = torch.zeros(3, requires_grad=True)
    loaded = fxstack.load(fxstack.aot_compile(f, (x,), path=tmp_path / "f.fxa", training=True))
    with pytest.raises(GradientError, match="FXA403"):
        loaded(x)[1].sum().backward()
    y = torch.ones(3, requires_grad=True)
    loaded(y)[1].sum().backward()
    assert torch.equal(y.grad, torch.full((3,), 2.0))


def test_parameters_may_be_bound(tmp_path: Path) -> None:
    path = fxstack.aot_compile(
        classifier(), (X, T), path=tmp_path / "m.fxa", training=True, weights="outside"
    )
    torch.manual_seed(5)
    model, eager = Classifier(), Classifier()
    eager.load_state_dict(model.state_dict())
    weights = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    loaded = fxstack.load(path, weights=weights)
    torch.testing.assert_close(trained(model, loaded), trained(eager, eager))
    assert_same(state(model), state(eager), bits=False)
    copied = copy.deepcopy(eager)
    other = fxstack.load(path, weights=copied.state_dict())  # plain tensors: parameters in their memory
    assert all(parameter.requires_grad for parameter in other.parameters())
    torch.testing.assert_close(trained(other, other), trained(eager, eager))
    assert_same(state(copied), state(eager), bits=False)


def test_frozen_parameters(tmp_path: Path) -> None:
    model = classifier()
    model.first.requires_grad_(False)
    eager = copy.deepcopy(model)
    loaded = fxstack.load(fxstack.aot_compile(model, (X, T), path=tmp_path / "m.fxa", training=True))
    assert not loaded.first.weight.requires_grad
    for run in (loaded, eager):
        dict(run.named_parameters())["target.bias"].requires_grad_(False)  # more of them is no matter
        trained(run, run)
    assert_same(state(loaded), state(eager), bits=False)
    assert loaded.first.weight.grad is None
    assert dict(loaded.named_parameters())["target.bias"].grad is None
    loaded.first.weight.requires_grad_(True)
    with pytest.raises(ContractError, match=r"FXA308.*first\.weight requires grad"):
        loaded(X, T)
    loaded.first.weight.requires_grad_(False)
    with pytest.raises(ContractError, match=r"FXA308.*x requires grad"):
        loaded(X.clone().requires_grad_(), T)


def test_the_mode_of_the_model_is_the_artifacts(tmp_path: Path) -> None:
    model = classifier()
    train = fxstack.export(model, (X, T), training=True)
    path = fxstack.aot_compile(train, path=tmp_path / "train.fxa")
    loaded = fxstack.load(path)
    assert loaded.training
    with pytest.raises(ArtifactError, match="FXA204"):
        loaded.eval()
    evaluate = fxstack.export(model.eval(), (X, T))
    both = fxstack.load(
        fxstack.aot_compile({"forward": train, "evaluate": evaluate}, path=tmp_path / "both.fxa")
    )
    with torch.no_grad():
        torch.testing.assert_close(both.eval()(X, T), model(X, T))
    assert both.train()(X, T)["loss"].requires_grad
    with pytest.raises(ArtifactError, match="FXA203"):
        both.double()
    assert both.float() is both


def test_shared_parameters_have_all_their_names(tmp_path: Path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(7, 4)
            self.head = nn.Linear(4, 7, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.embedding(x)).logsumexp(-1).sum()

    model, x = Tied(), torch.arange(5)
    path = fxstack.aot_compile(model, (x,), path=tmp_path / "m.fxa", training=True)
    loaded = fxstack.load(path)
    assert set(loaded.state_dict()) == set(model.state_dict())
    assert len(list(loaded.parameters())) == 1
    loaded(x).backward()
    model(x).backward()
    torch.testing.assert_close(next(loaded.parameters()).grad, model.head.weight.grad)
    other = torch.randn(7, 4)
    bound = fxstack.load(path, weights={"head.weight": other})
    assert bound.state_dict()["embedding.weight"].data_ptr() == other.data_ptr()


def test_equal_parameters_are_trained_apart(tmp_path: Path) -> None:
    loaded = fxstack.load(fxstack.aot_compile(classifier(), (X, T), path=tmp_path / "m.fxa", training=True))
    places = [p.data_ptr() for p in loaded.parameters()]
    assert len(set(places)) == len(places)


def test_what_cannot_be_trained_is_told(tmp_path: Path) -> None:
    def written(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.mul_(w)
        x.mul_(w)
        return y

    w = torch.ones(3, requires_grad=True)
    with pytest.raises(fxstack.ExportError, match="FXS511"):
        fxstack.aot_compile(two, [x.detach() for x in arguments()], path=tmp_path / "m.fxa", training=True)
    with pytest.raises(fxstack.ExportError, match="FXS508"):
        fxstack.aot_compile(written, (torch.ones(3), w), path=tmp_path / "m.fxa", training=True)


def test_changed_files_are_refused(tmp_path: Path, mutated: Any) -> None:
    """1,000 random changes of a training artifact."""
    path = fxstack.aot_compile(two, arguments(), path=tmp_path / "m.fxa", training=True)
    good, draw = path.read_bytes(), random.Random(1)
    refused = set()
    for _ in range(1000):
        changed = mutated(good, draw)
        if changed != good:
            path.write_bytes(changed)
            with pytest.raises(ArtifactError) as caught:
                fxstack.load(path)
            refused.add(caught.value.code)
    assert refused == {"FXA101", "FXA102", "FXA103"}


def test_a_program_that_means_nothing_is_refused(tmp_path: Path) -> None:
    """Whoever can write hashes can write anything about a backward: an error, and no crash."""
    path = fxstack.aot_compile(two, arguments(), path=tmp_path / "m.fxa", training=True)
    archive = open_archive(path, copy=True)
    contents = archive.contents(lambda name: True)
    targets = archive.manifest.targets
    program = json.loads(contents["program.json"])
    refused = 0
    for key in program["entry_points"]["forward"]["backward"]:
        for wrong in (None, -1, "x", [[99]], [{}], [["leaf", 99]], [["graph", 99]], {"objects": {}}):
            changed = json.loads(contents["program.json"])
            changed["entry_points"]["forward"]["backward"][key] = wrong
            write_archive(path, {**contents, "program.json": json.dumps(changed).encode()}, targets)
            try:
                loaded = fxstack.load(path)
            except ArtifactError as error:
                refused += error.code == "FXA108"
                continue
            with contextlib.suppress(LookupError, RuntimeError, TypeError, ValueError):
                loaded(*arguments())[1].backward()
    assert refused > 50


_FRESH = """
import sys

class Barred:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {stack!r}:
            raise ImportError(f"{{name}} is not installed here")

sys.meta_path.insert(0, Barred())
import os
os.environ["PATH"] = ""
import torch, fxstack_artifact
loaded = fxstack_artifact.load({path!r})
optimizer = torch.optim.SGD(loaded.parameters(), lr=0.1, momentum=0.9)
for step in range(4):
    torch.manual_seed(step)
    result = loaded(torch.randn(5, 8), torch.randint(0, 4, (5,)))
    optimizer.zero_grad()
    result["loss"].backward()
    optimizer.step()
torch.save(loaded.state_dict(), {outputs!r})
"""


def test_torch_and_the_loader_suffice(tmp_path: Path) -> None:
    stack = ("fxstack", "fx_interface", "fx_guards", "dynamo_capture", "aot_autograd", "inductor_codegen")
    model = classifier()
    path = fxstack.aot_compile(model, (X, T), path=tmp_path / "m.fxa", training=True)
    code = _FRESH.format(stack=stack, path=str(path), outputs=str(tmp_path / "state.pt"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    trained(model, fxstack.compile(model))
    assert_same(torch.load(tmp_path / "state.pt"), state(model), bits=True)
