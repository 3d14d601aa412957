"""Context managers: torch's modes, ``contextlib`` and the program's own."""

import contextlib
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from dynamo_capture import optimize

X = torch.arange(6.0).reshape(2, 3) + 1


def given(shift=0.0):
    return (X + shift).requires_grad_()


def heads(shift=0.0):
    return (torch.linspace(-1, 1, 64) + shift).reshape(1, 2, 4, 8).requires_grad_()


# Inference mode.


def test_inference_mode_makes_inference_tensors(whole):
    def f(x):
        with torch.inference_mode():
            y = x * 2
            on = torch.is_inference_mode_enabled()
        return (
            y.is_inference(),
            y.requires_grad,
            on,
            torch.is_inference_mode_enabled(),
            x.is_inference(),
            x * 2,
        )

    whole(f, (given(),), (given(1),), (X,))


def test_a_result_of_inference_mode_is_one():
    def f(x):
        with torch.inference_mode():
            y = x * 2
        return y, y[0], x * 3

    fast = optimize(lambda gm, ex: gm.forward)(f)
    for x in (X, given()):
        made = fast(x)
        assert [t.is_inference() for t in made] == [t.is_inference() for t in f(x)] == [True, True, False]


def test_inference_mode_nests(whole):
    def f(x):
        with torch.inference_mode():
            with torch.inference_mode(False):
                normal = x * 2
                state = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
            inside = x * 3
        return normal, inside * 1, state, inside.is_inference(), normal.is_inference()

    whole(f, (X,), (given(),))


def test_inference_mode_as_decorator(whole):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.inner = torch.nn.Linear(3, 3)

        @torch.inference_mode()
        def predict(self, x):
            return self.inner(x).argmax(-1)

        def forward(self, x):
            return self.predict(x), self.inner(x)

    whole.made(Model, (given(),), (X + 1,))


def test_an_inference_mode_object_is_used_again(whole):
    quiet = torch.inference_mode()

    def f(x):
        with quiet:
            a = x * 2
        b = x * 3
        with quiet:
            c = x * 4
        return a.requires_grad, b, c.requires_grad

    whole(f, (given(),), (X,))


def test_a_break_inside_inference_mode(same):
    def f(x, log):
        with torch.no_grad(), torch.inference_mode():
            y = x * 2
            log.append(y.sum().item())
            z = y * 3
            state = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
        return z.is_inference(), state, torch.is_grad_enabled(), x * 2

    same(f, (given(), []), (X, []))


def test_an_inference_tensor_in_autograd_is_an_error(same):
    def f(x):
        with torch.inference_mode():
            y = x * 2
        return x * y

    same(f, (given(),), (X,))


# Other modes of torch.


def test_record_function(whole):
    @torch.profiler.record_function("named")
    def helper(x):
        return x * 2

    def f(x):
        with torch.autograd.profiler.record_function("part"), torch.profiler.record_function("inner"):
            y = helper(x)
        return y

    whole(f, (given(),))


def test_profilers_are_left_to_python_with_a_reason(same):
    def f(x):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            y = x * 2
        return y + 1

    f(given())  # torch 2.11 warns of profilers, once in a process
    same(f, (given(),))
    assert any("profiler" in reason for _, reason in same.capture.report.eager)


def test_what_starts_a_profiler_runs_operation_by_operation():
    def f(x):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
            with torch.profiler.record_function("part"):
                _ = x * 2 + 4
        return [event.name for event in seen.events() if event.name in ("part", "aten::mul", "aten::add")]

    assert optimize(lambda graph, inputs: graph)(f)(given()) == ["part", "aten::mul", "aten::add"]


def test_set_grad_enabled_as_function_and_decorator(whole):
    def f(x):
        torch.set_grad_enabled(False)
        a = x * 2
        torch.set_grad_enabled(True)

        @torch.set_grad_enabled(False)
        def quiet(x):
            return x * 3

        return a, quiet(x), x * 4, torch.is_grad_enabled()

    whole(f, (given(),), (X,))


def test_autocast_with_every_argument(whole):
    def f(x):
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16, enabled=True, cache_enabled=False):
            a = x @ x.T
            cached = torch.is_autocast_cache_enabled()
            with torch.autocast("cpu", torch.float16):
                b = x @ x.T
        with torch.amp.autocast("cpu", enabled=x.shape[0] > 5):
            c = x @ x.T
        return a, b, c, cached, torch.is_autocast_cache_enabled()

    whole(f, (given(),), (torch.ones(6, 3),))


def test_an_autocast_object_from_outside(whole):
    def make():
        settings = {"ctx": torch.autocast("cpu", dtype=torch.bfloat16)}

        def f(x, off):
            if off:
                settings["ctx"] = contextlib.nullcontext()
            with settings["ctx"]:
                y = x @ x.T
            return y, x @ x.T

        return f

    whole.made(make, (given(), False), (X, False), (X, True), (X, False))


def test_autocast_of_old_modules(same):
    def f(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = torch.cpu.amp.autocast(dtype=torch.bfloat16)
        with made:
            return x @ x.T

    same(f, (given(),))


def test_a_device_as_context(whole):
    def f(x, name):
        with torch.device(name):
            made = torch.ones(3), torch.zeros(2, device="cpu"), torch.arange(3)
            with torch.device("cpu"):
                inner = torch.full((2,), 3.0)
            like = torch.ones_like(x)
        return [t.device.type for t in made], inner, like, torch.ones(1), x * made[1][0]

    whole(f, (X, "cpu"), (X, "meta"), (X, "cpu"))


def test_a_break_inside_a_device(same):
    def f(x, log):
        with torch.device("meta"):
            a = torch.ones(2)
            log.append(x.sum().item())
            b = torch.ones(3)
        return a.device.type, b.device.type, torch.ones(1).device.type, x * 2

    same(f, (X, []), (given(), []))


def test_fork_rng(same):
    def f(x):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            a = torch.rand(3)
        return x + a, torch.rand(2)

    same(f, (given(),), (X,))


@pytest.mark.parametrize(
    "kernels",
    [
        SDPBackend.MATH,
        [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH],
        [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH],
    ],
)
def test_sdpa_kernel(whole, kernels):
    def f(x):
        with sdpa_kernel(kernels):
            y = F.scaled_dot_product_attention(x, x, x)
            inside = torch.backends.cuda.flash_sdp_enabled()
        return y, inside, torch.backends.cuda.flash_sdp_enabled(), F.scaled_dot_product_attention(x, x, x)

    whole(f, (heads(),), (heads(1),))
    assert torch.backends.cuda.flash_sdp_enabled()


def test_sdpa_kernel_with_priority(whole):
    def f(x):
        with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], set_priority=True):
            return F.scaled_dot_product_attention(x, x, x)

    before = torch._C._get_sdp_priority_order()
    whole(f, (heads(),))
    assert torch._C._get_sdp_priority_order() == before


def test_which_attention_kernels_may_be_used_is_guarded():
    fast = optimize(lambda gm, ex: gm.forward)(lambda x: torch.backends.cuda.flash_sdp_enabled() and x * 2)
    assert fast(X) is not False
    with sdpa_kernel(SDPBackend.MATH):
        assert fast(X) is False
    assert fast(X) is not False


def test_a_break_inside_sdpa_kernel(same):
    def f(x, log):
        with sdpa_kernel(SDPBackend.MATH):
            log.append(torch.backends.cuda.flash_sdp_enabled())
            log.append(x.sum().item())
            log.append(torch.backends.cuda.flash_sdp_enabled())
        return torch.backends.cuda.flash_sdp_enabled()

    same(f, (heads(), []), (heads(), []))


def test_anomaly_detection(same):
    def f(x, on):
        with torch.autograd.set_detect_anomaly(on):
            y = x * 2
            state = torch.is_anomaly_enabled()
        return y, state, torch.is_anomaly_enabled()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(f, (given(), False), (given(), True), (given(), False))


def test_multithreading_of_the_engine(whole):
    def f(x):
        with torch.autograd.set_multithreading_enabled(False):
            y = x * x
        return y, torch.autograd.is_multithreading_enabled() if hasattr(
            torch.autograd, "is_multithreading_enabled"
        ) else 0

    whole(f, (given(),))


# contextlib.


@contextlib.contextmanager
def noted(log, name="b"):
    log.append(f"+{name}")
    try:
        yield len(log)
    except KeyError:
        log.append("key")
    finally:
        log.append(f"-{name}")


class Resource:
    def __init__(self, log):
        self.log = log

    def close(self):
        self.log.append("closed")


def test_null_suppress_and_closing(whole):
    def f(x, log):
        with contextlib.nullcontext(x) as y:
            z = y * 2
        with contextlib.suppress(KeyError, IndexError):
            log.append({}[z.shape])
        with contextlib.closing(Resource(log)) as resource, contextlib.suppress(ValueError):
            raise ValueError(resource.log)
        return z, log

    whole(f, (given(), []), (X, [1]))


def test_exit_stacks(whole):
    def f(x, log):
        with contextlib.ExitStack() as stack:
            number = stack.enter_context(noted(log))
            stack.enter_context(torch.no_grad())
            stack.callback(log.append, number)
            stack.callback(lambda *a, **k: log.append((a, sorted(k))), 2, key=3)
            stack.push(lambda kind, value, trace: log.append(kind))
            y = x * 2
        return y, log, x * 3

    whole(f, (given(), []), (X, [1]))


def test_exit_stacks_and_exceptions(whole):
    def f(x, log, kind):
        try:
            with contextlib.ExitStack() as stack:
                stack.enter_context(noted(log, "outer"))
                stack.push(lambda kind, value, trace: log.append(str(value)))
                stack.enter_context(noted(log, "inner"))
                if kind:
                    raise kind("x")
        except ValueError as error:
            log.append(repr(error))
        return x * 2, log

    whole(f, (given(), [], None), (X, [], ValueError), (X, [], KeyError))


def test_exit_stacks_are_handed_over(whole):
    def f(x, log):
        with contextlib.ExitStack() as stack:
            stack.enter_context(noted(log))
            rest = stack.pop_all()
        log.append("still open")
        rest.close()
        return x * 2, log

    whole(f, (given(), []))


def test_generator_managers_as_decorators(whole):
    def f(x, log):
        @noted(log, "d")
        def helper(x):
            log.append("body")
            return x + 1

        return helper(x) * helper(x), log

    whole(f, (given(), []))


class Quiet(contextlib.ContextDecorator, contextlib.AbstractContextManager):
    def __init__(self, *kinds):
        self.kinds = kinds
        self.seen = []

    def __exit__(self, kind, value, trace):
        self.seen.append(kind)
        return kind is not None and issubclass(kind, self.kinds)


def test_managers_of_the_program(whole):
    def f(x, kind):
        quiet = Quiet(KeyError, ValueError)

        @quiet
        def helper(x):
            if kind:
                raise kind
            return x * 3

        with quiet:
            raise KeyError
        return helper(x), quiet.seen

    whole(f, (given(), None), (X, ValueError), (X, IndexError))


def test_classes_of_a_script(whole):
    made = type("Made", (), {"__init__": lambda self, x: setattr(self, "x", x), "__module__": "__main__"})

    def f(x):
        return made(x * 2).x

    whole(f, (given(),))


def test_what_is_being_handled(whole):
    import sys

    def f(x):
        seen = [sys.exc_info()[0]]
        try:
            raise ValueError(1)
        except ValueError:
            seen.append(sys.exc_info()[0])
            try:
                raise KeyError(2)
            except KeyError:
                seen.append(str(sys.exception()))
            seen.append(str(sys.exc_info()[1]))
        seen.append(sys.exception())
        return x * 2, seen

    whole(f, (given(),))


def test_redirected_output(same):
    import io

    def f(x):
        with contextlib.redirect_stdout(io.StringIO()) as text:
            print("inside")
        return x * 2, text.getvalue()

    same(f, (given(),))


def test_hooks_on_saved_tensors(same):
    def make():
        log = []

        def pack(tensor):
            log.append(tuple(tensor.shape))
            return tensor

        def f(x):
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
                y = x * x
            return y, list(log)

        return f

    same.made(make, (given(),), (given(),))


def test_detected_anomalies_show_the_lines_of_the_program():
    def f(x):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                with torch.autograd.detect_anomaly():
                    y = x + 1
                    z = y**2
                    y += 1
                    torch.autograd.grad(z.sum(), x)
            except RuntimeError:
                pass
        return [str(one.message) for one in seen]

    enabled, detected = optimize(lambda graph, inputs: graph)(f)(given().requires_grad_())
    assert "Anomaly Detection" in enabled
    assert "z = y**2" in detected


def test_profiles_do_not_count_what_compiling_runs():
    def f(x):
        return torch.nn.functional.linear(x, x)

    run = optimize(lambda graph, inputs: graph)(f)
    for _ in range(2):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
            run(given())
        assert sum(event.name == "aten::linear" for event in seen.events()) == 1
