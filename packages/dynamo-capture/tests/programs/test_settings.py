"""Settings of torch that are changed inside: captured, or a reported break; what is seen and computed is eager's."""

import dataclasses
import warnings

import pytest
import torch
from torch.autograd import forward_ad
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from dynamo_capture import CaptureError, optimize

X = torch.arange(12.0).reshape(4, 3) / 7


class Doubling(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        return result * 2 if function is torch.sin else result


class Passing(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


def cudnn(x):
    with torch.backends.cudnn.flags(enabled=False, benchmark=True):
        inside = torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark
        y = x.sin()
    return y, inside, torch.backends.cudnn.enabled


def mkldnn(x):
    with torch.backends.mkldnn.flags(enabled=False):
        y, inside = x @ x.t(), torch.backends.mkldnn.enabled
    return y * 2, inside, torch.backends.mkldnn.enabled


def attention(x):
    q = x[None, None]
    with sdpa_kernel(SDPBackend.MATH):
        y = torch.nn.functional.scaled_dot_product_attention(q, q, q)
        inside = torch.backends.cuda.flash_sdp_enabled()
    return y, inside, torch.backends.cuda.flash_sdp_enabled()


def forked(x):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        a = torch.rand(3)
    return x + a, torch.rand(2)


def seeded(x):
    torch.manual_seed(4)
    return x + torch.rand(3)


def saved(x):
    packed = []

    def pack(tensor):
        packed.append(tuple(tensor.shape))
        return tensor * 1

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = x.sin()
    return y * 2, packed


def saved_elsewhere(x):
    with torch.autograd.graph.save_on_cpu():
        y = x.sin()
    return y * 2


def nothing_saved(x):
    with torch.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
        y = x.sin()
        try:
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                y = y.exp()
        except RuntimeError as error:
            return y, str(error)
    return y


def anomalies(x):
    with torch.autograd.set_detect_anomaly(True):
        y, inside = x.sin(), torch.is_anomaly_enabled()
    return y, inside, torch.is_anomaly_enabled()


def on_meta(x):
    with torch.device("meta"):
        a = torch.zeros(3)
    return x.sin(), a.device.type, torch.ones(2).device.type


def by_default_on_meta(x):
    torch.set_default_device("meta")
    try:
        return x * 2, torch.ones(3).device.type
    finally:
        torch.set_default_device(None)


def in_doubles(x):
    torch.set_default_dtype(torch.float64)
    try:
        return x + torch.ones(3), torch.ones(1).dtype
    finally:
        torch.set_default_dtype(torch.float32)


def deterministic(x):
    torch.use_deterministic_algorithms(True)
    try:
        return x.cumsum(0), torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(False)


def less_precise(x):
    torch.set_float32_matmul_precision("high")
    try:
        return x @ x.t(), torch.get_float32_matmul_precision()
    finally:
        torch.set_float32_matmul_precision("highest")


def one_thread(x):
    with torch.autograd.set_multithreading_enabled(False):
        return x * 2


def function_mode(x):
    y = x * 3
    with Doubling():
        z = torch.sin(y) + 1
    return z.cos() + torch.sin(x)


def dispatch_mode(x):
    y = x * 3
    with Passing():
        z = torch.sin(y) + 1
    return z.cos()


@pytest.fixture(autouse=True, scope="module")
def _derivatives_are_loaded():
    """Torch warns, once in a process, when it loads what computes forward derivatives."""
    with warnings.catch_warnings(action="ignore"), forward_ad.dual_level():
        forward_ad.make_dual(X, X).sin()


def duals(x):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        return forward_ad.unpack_dual(dual.sin()).tangent


def class_body(x):
    y = x * 2

    class Shifted:
        by = 3

        def __call__(self, t):
            return t + self.by

    return Shifted()(y).sin()


def decorated_class(x):
    y = x + 1

    @dataclasses.dataclass
    class Box:
        held: torch.Tensor
        factor: int = 2

        def doubled(self):
            return self.held * self.factor

    return Box(y * 2).doubled()


ALL = [
    cudnn, mkldnn, attention, forked, seeded, saved, saved_elsewhere, nothing_saved, anomalies, on_meta,
    by_default_on_meta, in_doubles, deterministic, less_precise, one_thread, function_mode, dispatch_mode, duals,
    class_body, decorated_class,
]  # fmt: skip


@pytest.mark.parametrize("program", ALL)
def test_settings_are_those_of_eager(same, program):
    same(program, (X,), (X + 1,), (X.clone().requires_grad_(),))


@pytest.mark.parametrize("program", [attention, on_meta, one_thread, cudnn, function_mode])
def test_these_settings_are_in_the_graph(whole, program):
    whole(program, (X,))


def test_a_class_body_is_captured(whole):
    whole(class_body, (X,), (X + 1,), graphs=1)


@pytest.mark.usefixtures("settable_flags")
def test_settings_that_were_read_are_guarded(same):
    def program(x):
        with torch.backends.cudnn.flags(enabled=False):
            return x.sin(), torch.backends.cudnn.allow_tf32

    def changing(x, allowed):
        before = torch.backends.cudnn.allow_tf32
        torch.backends.cudnn.allow_tf32 = allowed
        try:
            return program(x), torch.backends.cudnn.allow_tf32
        finally:
            torch.backends.cudnn.allow_tf32 = before

    same(changing, (X, True), (X, False), (X, True), (X, False))


@pytest.fixture
def restored_determinism():
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    yield
    torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def test_determinism_that_is_given_up_inside(restored_determinism):
    def program(x):
        y = x * 2
        torch.use_deterministic_algorithms(False)
        return y + 1, torch.are_deterministic_algorithms_enabled()

    compiled = optimize(lambda graph, _: graph.forward, fullgraph=True)(program)
    for enabled in (True, True, False):
        torch.use_deterministic_algorithms(enabled, warn_only=enabled)
        result, known = compiled(torch.ones(2))
        assert torch.equal(result, torch.full((2,), 3.0))
        assert known is False
        assert not torch.are_deterministic_algorithms_enabled()
        assert not torch.is_deterministic_algorithms_warn_only_enabled()


def test_determinism_that_is_asked_for_inside_ends_the_graph(restored_determinism):
    def program(x):
        torch.use_deterministic_algorithms(True)
        return x + 1

    torch.use_deterministic_algorithms(False)
    with pytest.raises(CaptureError, match="CAP237"):
        optimize(lambda graph, _: graph.forward, fullgraph=True)(program)(torch.ones(2))
    assert not torch.are_deterministic_algorithms_enabled()
