from __future__ import annotations

import copy
import inspect
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

from dynamo_capture import explain_recompiles, optimize, original_of, run_graph
from dynamo_capture.driver.compiled_module import CompiledModule, compile_module

CALLS: list[str] = []


def _noting(function: Callable[..., Any]) -> Callable[..., Any]:
    """Stands for an optimizer: notes each call that goes through it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        CALLS.append(type(function).__name__)
        return function(*args, **kwargs)

    return call


class Scaled(nn.Module):
    """A module with state beside parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.scale = 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * self.scale


class OfSize(nn.Module):
    """A module whose class wants arguments to make an instance."""

    def __new__(cls, size: int) -> OfSize:
        made = super().__new__(cls)
        object.__setattr__(made, "made_by", "new")
        return made

    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def test_a_class_that_makes_its_instances_itself() -> None:
    plain, x = OfSize(2), torch.ones(1, 2)
    assert optimize(run_graph)(plain)(x).equal(plain(x))


def test_a_graph_module_follows_its_graph() -> None:
    x = torch.linspace(-1, 1, 4)
    traced = torch.fx.symbolic_trace(nn.Sequential(nn.ReLU()))
    compiled = optimize(run_graph, fullgraph=True)(traced)
    assert compiled(x).equal(x.relu())
    (call,) = [node for node in compiled.graph.nodes if node.op == "call_module"]
    call.op, call.target = "call_function", torch.tanh
    compiled.recompile()
    assert compiled(x).equal(x.tanh())
    assert traced(x).equal(x.tanh())
    assert copy.deepcopy(compiled)(x).equal(x.tanh())
    call.target = torch.sin
    compiled.graph = compiled.graph
    assert compiled(x).equal(x.sin())


def test_a_call_goes_through_the_optimizer_and_state_is_shared() -> None:
    plain = Scaled()
    twin = compile_module(plain, _noting)
    CALLS.clear()
    x = torch.ones(1, 2)
    torch.testing.assert_close(twin(x), plain(x))
    assert CALLS == ["Scaled"]
    twin.scale = 5.0
    assert plain.scale == 5.0
    twin.register_buffer("offset", torch.ones(1))
    assert "offset" in dict(plain.named_buffers())
    del twin.offset
    assert not hasattr(plain, "offset")


def test_it_is_an_instance_of_the_modules_class_and_named_like_it() -> None:
    twin = compile_module(Scaled(), _noting)
    assert isinstance(twin, Scaled)
    assert isinstance(twin, CompiledModule)
    assert type(twin).__qualname__ == "Scaled"
    assert repr(twin) == repr(original_of(twin))


def test_copies_are_compiled_anew_and_pickles_are_plain() -> None:
    twin = compile_module(Scaled(), _noting)
    deep, shallow = copy.deepcopy(twin), copy.copy(twin)
    CALLS.clear()
    deep(torch.ones(1, 2))
    shallow(torch.ones(1, 2))
    assert CALLS == ["Scaled", "Scaled"]
    assert deep.linear.weight is not twin.linear.weight
    assert shallow.linear is twin.linear
    restored = pickle.loads(pickle.dumps(twin))
    assert type(restored) is Scaled
    torch.testing.assert_close(restored(torch.ones(1, 2)), twin(torch.ones(1, 2)))


def test_a_module_inside_another_is_moved_and_listed_as_usual() -> None:
    inner = compile_module(Scaled(), _noting)
    outer = nn.Sequential(inner, nn.ReLU())
    assert list(outer.state_dict()) == ["0.linear.weight", "0.linear.bias"]
    outer.double()
    assert inner.linear.weight.dtype == torch.float64
    CALLS.clear()
    outer(torch.ones(1, 2, dtype=torch.float64))
    assert CALLS == ["Scaled"]


def test_a_compiled_module_is_not_wrapped_twice() -> None:
    plain = Scaled()
    twin = compile_module(compile_module(plain, _noting), _noting)
    assert original_of(twin) is plain
    CALLS.clear()
    twin(torch.ones(1, 2))
    assert CALLS == ["Scaled"]


def test_a_compiled_module_explains_its_recompilations() -> None:
    class Moded(nn.Module):
        def forward(self, x: torch.Tensor, mode: str) -> torch.Tensor:
            return x * len(mode)

    fast = optimize(run_graph)(Moded())
    fast(torch.ones(3), "a")
    fast(torch.ones(3), "bc")
    (entry,) = explain_recompiles(fast).entries
    assert entry.new == "'bc'"


# ---- every kind of class ----


class Base(nn.Module):
    """A class with a registry of its subclasses, which it asks for a name."""

    known: dict[str, type] = {}

    def __init_subclass__(cls, *, tag: str, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        Base.known[tag] = cls


class Tagged(Base, tag="tagged"):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


class Slotted(nn.Module):
    __slots__ = ("scale",)

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.scale = 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * self.scale


class Counted(type):
    made: list[str] = []

    def __new__(mcs, name: str, bases: Any, namespace: Any, **keywords: Any) -> Any:
        mcs.made.append(name)
        return super().__new__(mcs, name, bases, namespace)


class OfMetaclass(nn.Module, metaclass=Counted):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 3


class CalledByItself(Scaled):
    def __call__(self, x: torch.Tensor, times: int = 1) -> torch.Tensor:
        return super().__call__(x) * times


X = torch.linspace(-1.0, 1.0, 4).reshape(2, 2)


def _same(compiled: nn.Module, plain: nn.Module, x: torch.Tensor = X) -> None:
    torch.testing.assert_close(compiled(x), plain(x))


def _full(plain: nn.Module) -> nn.Module:
    compiled = optimize(run_graph, fullgraph=True)(plain)
    assert isinstance(compiled, type(plain))
    assert compiled.__class__ is type(plain)
    return compiled


def test_the_fresh_class_is_in_no_registry() -> None:
    plain = Tagged()
    _same(_full(plain), plain)
    assert Base.known == {"tagged": Tagged}
    other = OfMetaclass()
    _same(_full(other), other)
    assert Counted.made == ["OfMetaclass"]


def test_slots_are_the_originals() -> None:
    plain = Slotted()
    compiled = _full(plain)
    _same(compiled, plain)
    plain.scale = 5.0
    assert compiled.scale == 5.0
    _same(compiled, plain)
    compiled.scale = 7.0
    assert plain.scale == 7.0
    _same(compiled, plain)
    del compiled.scale
    assert not hasattr(plain, "scale")


def test_signatures_are_the_originals() -> None:
    for plain in (Scaled(), CalledByItself()):
        compiled = _full(plain)
        assert inspect.signature(compiled) == inspect.signature(plain)
    assert compiled(X, 3).equal(plain(X, 3))


def test_another_class_is_given_to_the_original() -> None:
    plain = nn.Linear(2, 2)
    compiled = _full(plain)
    expected = plain(X)
    parametrize.register_parametrization(compiled, "weight", nn.Hardtanh(-100.0, 100.0))
    assert type(plain).__name__ == type(compiled).__name__ == "ParametrizedLinear"
    torch.testing.assert_close(compiled(X), expected)
    with torch.no_grad():
        compiled.parametrizations.weight.original.zero_()
    torch.testing.assert_close(compiled(X), plain.bias.expand(2, 2))
    twin = copy.deepcopy(compiled)
    _same(twin, plain)
    parametrize.remove_parametrizations(compiled, "weight")
    assert type(plain) is nn.Linear
    assert compiled.__class__ is nn.Linear
    _same(compiled, plain)


def test_calls_pass_on_what_they_are_given() -> None:
    plain = Scaled()
    compiled = _full(plain)
    assert compiled(X).equal(compiled(x=X))
    assert compiled.__call__(X).equal(plain(X))
    assert inspect.signature(compiled.__call__).parameters.keys() == {"args", "kwargs"}
    with pytest.raises(TypeError, match=r"forward\(\) missing 1 required positional argument"):
        compiled()
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'self'"):
        type(compiled).__call__()
    whole = optimize(run_graph, fullgraph=True)
    assert whole(lambda x: compiled(x) + 1)(X).equal(plain(X) + 1)
    assert whole(lambda x: compiled.__call__(x) + 1)(X).equal(plain(X) + 1)


def test_symbolic_tracing_sees_the_module() -> None:
    plain = Scaled()
    compiled = _full(plain)
    for root in (compiled, nn.Sequential(compiled, nn.ReLU()), nn.Sequential(_full(nn.ReLU()))):
        traced = torch.fx.symbolic_trace(root)
        torch.testing.assert_close(traced(X), root(X))
    function = optimize(run_graph)(lambda x: x.sin() + 1)
    traced = torch.fx.symbolic_trace(lambda x: function(x) * 2)
    torch.testing.assert_close(traced(X), (X.sin() + 1) * 2)


def test_a_compiled_method_is_copied_with_its_object() -> None:
    plain = Scaled()
    plain.forward = optimize(run_graph)(plain.forward)  # type: ignore[method-assign]
    twin = copy.deepcopy(plain)
    expected = plain(X)
    with torch.no_grad():
        plain.linear.weight.zero_()
        plain.linear.bias.zero_()
    torch.testing.assert_close(twin(X), expected)
    assert not plain(X).any()


# ---- modules that others made, and changes of all kinds ----


def test_exported_modules_are_one_graph() -> None:
    plain = Scaled()
    exported = torch.export.export(
        plain, (X,), dynamic_shapes=({0: torch.export.Dim("rows", min=2)},)
    ).module()
    compiled = _full(exported)
    for rows in (2, 5, 7):
        _same(compiled, plain, torch.ones(rows, 2))


def test_quantized_modules_observe_and_compute_as_in_eager() -> None:
    from torch.ao.quantization import get_default_qat_qconfig_mapping, get_default_qconfig_mapping
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx, prepare_qat_fx

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        for made in (
            prepare_fx(copy.deepcopy(model).eval(), get_default_qconfig_mapping(), (X,)),
            prepare_qat_fx(copy.deepcopy(model).train(), get_default_qat_qconfig_mapping(), (X,)),
        ):
            plain = copy.deepcopy(made)
            compiled = optimize(run_graph)(made)
            for scale in (1.0, 3.0, 2.0):
                _same(compiled, plain, X * scale)
            for found, expected in zip(made.buffers(), plain.buffers(), strict=True):
                torch.testing.assert_close(found, expected)
        converted = convert_fx(plain.eval())
        _same(optimize(run_graph)(converted), converted)


def test_a_graph_with_other_outputs_and_a_split_one() -> None:
    plain = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    traced = torch.fx.symbolic_trace(plain)
    *_, linear, relu, output = traced.graph.nodes
    output.args = ({"linear": linear, "relu": relu},)
    traced.recompile()
    found, expected = _full(traced)(X), traced(X)
    assert list(found) == ["linear", "relu"]
    torch.testing.assert_close(found, expected)
    from torch.fx.passes.split_module import split_module

    again = torch.fx.symbolic_trace(plain)
    split = split_module(again, plain, lambda node: int(node.target == "1"))
    _same(_full(split), plain)


def test_state_is_loaded_swapped_moved_and_pruned() -> None:
    plain = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).eval()
    compiled = _full(plain)
    _same(compiled, plain)
    state = {name: value + 1 for name, value in plain.state_dict().items()}
    compiled.load_state_dict(state)
    _same(compiled, plain)
    compiled.load_state_dict({name: value * 2 for name, value in state.items()}, assign=True)
    _same(compiled, plain)
    assert plain[0].weight.equal(state["0.weight"] * 2)
    torch.utils.swap_tensors(compiled[0].weight, nn.Parameter(torch.ones(2, 2)))
    _same(compiled, plain)
    assert compiled.double() is compiled
    _same(compiled, plain, X.double())
    compiled.float()
    prune.l1_unstructured(compiled[0], "weight", amount=1)
    _same(compiled, plain)
    prune.remove(compiled[0], "weight")
    parametrizations.weight_norm(compiled[0])
    _same(compiled, plain)
    with torch.device("meta"):
        empty = nn.Linear(2, 2)
    filled = _full(empty).to_empty(device="cpu")
    filled.load_state_dict(nn.Linear(2, 2).state_dict(), assign=True)
    _same(filled, empty)


class Containers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2)])
        self.named = nn.ModuleDict({"relu": nn.ReLU()})
        self.factors = nn.ParameterList([nn.Parameter(torch.ones(2))])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        for layer in self.named.values():
            x = layer(x)
        for factor in self.factors:
            x = x * factor
        return x


def test_containers_are_edited_and_hooks_come_and_go() -> None:
    plain = Containers()
    compiled: Any = _full(plain)
    _same(compiled, plain)
    changes: list[Callable[[], Any]] = [
        lambda: compiled.layers.append(nn.Linear(2, 2)),
        lambda: plain.layers.insert(0, nn.Tanh()),
        lambda: compiled.layers.__setitem__(0, nn.Identity()),
        lambda: compiled.layers.__delitem__(1),
        lambda: compiled.named.__setitem__("tanh", nn.Tanh()),
        lambda: plain.named.pop("relu"),
        lambda: compiled.factors.append(nn.Parameter(torch.full((2,), 2.0))),
        lambda: compiled.set_submodule("named.tanh", nn.Sigmoid()),
        lambda: plain.register_forward_pre_hook(lambda module, args: (args[0] + 1,)),
        lambda: compiled.named["tanh"].register_forward_hook(lambda module, args, result: result * 2),
        lambda: compiled._forward_pre_hooks.clear(),
        lambda: setattr(compiled, "forward", lambda x: x * 5),
        lambda: delattr(plain, "forward"),
    ]
    for change in changes:
        change()
        _same(compiled, plain)
