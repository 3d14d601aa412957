"""Graphs that write to inputs or draw random numbers, and then raise: all effects up to there, none after."""

import traceback

import pytest
import torch

from dynamo_capture import optimize

X = torch.arange(4.0) + 1


INSIDE, OUTSIDE = torch.tensor([1]), torch.tensor([9])


def test_effects_before_a_failure_after_a_write(whole):
    def f(x, i, log):
        log.append("a")
        x.add_(1)
        log.append("b")
        y = x[i]
        log.append("c")
        x.mul_(2)
        return y

    whole(f, (X, INSIDE, []), (X, OUTSIDE, []), (X, INSIDE, []))


def test_random_numbers_before_a_failure(whole):
    def f(x, i, log):
        log.append(len(log))
        noise = torch.rand(4)
        y = x[i] + noise
        log.append(len(log))
        return y * torch.rand(4)

    whole(f, (X, INSIDE, []), (X, OUTSIDE, []), (X, INSIDE, []))


def test_a_handler_in_the_frame_goes_on(whole):
    def f(x, log):
        x.add_(1)
        try:
            log.append("try")
            y = torch.linalg.cholesky(x)
        except RuntimeError as error:
            log.append(type(error).__name__)
            y = x * 0
        finally:
            log.append("finally")
        x.mul_(3)
        return y

    whole(f, (torch.eye(3), []), (-5 * torch.eye(3), []), (torch.eye(3), []))


def test_an_exception_raised_from_the_failure(whole):
    def f(x, i, log):
        try:
            x.sub_(1)
            return x[i]
        except IndexError as error:
            log.append("handled")
            raise KeyError("wrapped") from error

    whole(f, (X, INSIDE, []), (X, OUTSIDE, []))


def test_a_result_that_nobody_uses(whole):
    def f(x, i, log):
        log.append("a")
        x[i]
        log.append("b")
        return x + 1

    whole(f, (X, INSIDE, []), (X, OUTSIDE, []))


def test_a_tensor_gets_a_history_and_loses_it(whole):
    def f(x, w, i, log):
        log.append("a")
        x.mul_(w)
        y = x[i]
        log.append("b")
        return y

    w = torch.full((4,), 2.0, requires_grad=True)
    whole(f, (X, w, INSIDE, []), (X, w, OUTSIDE, []))


class Refused(Exception):
    """What a custom operator raises."""


@torch.library.custom_op("failing_graphs::positive", mutates_args=())
def positive(x: torch.Tensor) -> torch.Tensor:
    if x[0] < 0:
        raise Refused("negative")
    return x.clone()


@positive.register_fake
def _(x):
    return torch.empty_like(x)


def test_a_custom_operator_that_raises(whole):
    def f(x, log):
        log.append("a")
        x.add_(1)
        positive(x)
        log.append("b")
        return x

    whole(f, (X, []), (-9 * X, []))


def test_a_failure_in_a_region_that_nobody_uses(whole):
    from torch.utils.checkpoint import checkpoint

    def part(x, i):
        return x[i]

    def f(x, i, log):
        log.append("a")
        checkpoint(part, x, i, use_reentrant=False)
        log.append("b")
        return x * 2

    leaf = X.clone().requires_grad_()
    whole(f, (leaf, INSIDE, []), (leaf, OUTSIDE, []))


def test_an_interrupt_leaves_the_graph_undone():
    def backend(graph_module, example_inputs):
        def run(*inputs):
            graph_module.forward(*inputs)
            raise KeyboardInterrupt

        return run

    def f(x, i):
        return x.add_(1)[i]

    x = X.clone()
    with pytest.raises(KeyboardInterrupt):
        optimize(backend)(f)(x, INSIDE)
    assert x.tolist() == X.tolist()


def test_a_check_of_a_tensor_in_a_block_that_handles_it(whole):
    def f(x, log):
        try:
            log.append("a")
            x.add_(1)
            torch._check_tensor_all_with(ValueError, x > 0, lambda: f"not {len(log)}")
            log.append("b")
            return x.mul_(2)
        except ValueError as error:
            log.append(str(error))
            return x
        finally:
            log.append("finally")

    whole(f, (X, []), (-9 * X, []), (X, []))


def test_an_assertion_about_a_tensor(whole):
    def f(x, log):
        try:
            x.add_(1)
            torch._assert((x > 0).all(), f"not {len(log)}")
            log.append("a")
            return x * 2
        except AssertionError as error:
            log.append(str(error))
            raise KeyError("wrapped") from error

    whole(f, (X, []), (-9 * X, []), (X, []))


def test_operator_that_fails_at_run_time(same):
    def make():
        log = []

        def f(x, i):
            log.append("before")
            y = x[:, i]
            log.append("after")
            return y, list(log)

        return f

    inside, outside = torch.tensor([0, 1]), torch.tensor([0, 7])
    same.made(make, (X, inside), (X, outside), (X, inside))


def test_failing_operator_is_caught(same):
    def f(x, scale, *rest, jitter=1.0, **more):
        log = []

        def note(word):
            log.append((word, scale))

        try:
            note("try")
            y = torch.linalg.cholesky(x * scale)
            note("fine")
        except RuntimeError:
            note("caught")
            y = torch.linalg.cholesky(x + torch.eye(2) * jitter)
        finally:
            note("finally")
        return y, log, rest, more

    good, bad = torch.eye(2), torch.zeros(2, 2)
    same(f, (good, 2.0), (bad, 2.0), (good, 2.0, 5), (bad, 2.0, 5))


def test_failing_operator_with_closures_and_state(same):
    def make():
        calls = []

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.failures = 0

            def forward(self, x, *, strict=False):
                calls.append(len(calls))
                try:
                    return torch.linalg.cholesky(x), list(calls)
                except RuntimeError:
                    self.failures += 1
                    if strict:
                        raise
                return x * self.failures, list(calls)

        net = Net()
        return lambda x, strict: net(x, strict=strict)

    good, bad = torch.eye(2), torch.zeros(2, 2)
    same.made(make, (good, False), (bad, False), (bad, True), (good, True), (bad, True))


def test_failing_operator_after_a_graph_break(same):
    def f(x, k):
        first = x.sum().tolist()
        log = [first]
        try:
            y = torch.linalg.cholesky(x * k)
        except RuntimeError:
            log.append("caught")
            y = x
        return y + first, log

    good, bad = torch.eye(2), torch.zeros(2, 2)
    same(f, (good, 1), (bad, 1), (good, 1))


@pytest.mark.parametrize("caught", [True, False])
def test_blocks_of_modes_around_a_failure_are_left(same, caught):
    def inside(x):
        with torch.inference_mode(False), torch.autocast("cpu", dtype=torch.bfloat16):
            if x.sum() > 0:
                raise KeyError("positive")
            return x @ x.T

    def f(x):
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
            if not caught:
                return inside(x.sin())
            try:
                return inside(x.sin())
            except KeyError:
                return x

    ones = torch.ones(2, 2)
    same(f, (ones,), (-ones,), (ones,))
    assert not torch.is_inference_mode_enabled()
    assert torch.autocast_increment_nesting() == 1
    torch.autocast_decrement_nesting()


def test_a_view_whose_memory_gets_a_history():
    """Torch refuses the second write: it takes the view, which was made before, for a leaf."""

    def f(x, y, log):
        log.append("before")
        y.flatten().addcmul_(x, x)
        y.sub_(y)
        log.append("after")
        return y * 2

    x = torch.tensor(2.0, requires_grad=True)
    fast = optimize(lambda graph, inputs: graph.forward)(f)
    for program in (f, fast):
        log: list[str] = []
        with pytest.raises(RuntimeError, match="a leaf Variable") as caught:
            program(x, torch.ones(1).reshape(()), log)
        assert log == ["before"]
        assert traceback.extract_tb(caught.value.__traceback__)[-1].line == "y.sub_(y)"


def test_a_tensor_without_data_is_not_copied():
    def f(x, log):
        linear = torch.nn.Linear(2, 2, device="meta")
        for copy in (lambda: linear.to("cpu"), lambda: x.copy_(linear.bias)):
            try:
                copy()
            except NotImplementedError as error:
                log.append(str(error))
        return x + 1

    logs = [], []
    for program, log in zip((f, optimize(lambda graph, inputs: graph.forward)(f)), logs, strict=True):
        assert program(torch.ones(2), log).tolist() == [2, 2]
    assert logs[0] == logs[1]
    assert len(logs[0]) == 2
