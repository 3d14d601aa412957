"""What is raised while the rest of a function is compiled: it leaves the blocks that the rest begins in."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import warnings

import pytest
import torch

import dynamo_capture
from dynamo_capture import CaptureError, optimize
from dynamo_capture.foundation.part_options import part_option, patch_options
from fx_interface.errors import UnsupportedProgramError

LOG: list[str] = []


@contextlib.contextmanager
def noted(name):
    LOG.append(f"into {name}")
    try:
        yield
    except BaseException as error:
        LOG.append(f"{name}: {type(error).__name__}")
        raise
    finally:
        LOG.append(f"out of {name}")


def brk():
    print(end="")


def inner(x):
    with noted("inner"), torch.no_grad():
        brk()
        return x * 2


def in_one_block(x):
    with noted("outer"), torch.no_grad():
        y = x + 1
        brk()
        return y * 2


def in_blocks_of_two_frames(x):
    with noted("outer"):
        return inner(x + 1) + 1


def caught_inside(x):
    for scale in range(2):
        try:
            with noted("outer"):
                x = x + scale
                brk()
                x = x * 3
        except (KeyboardInterrupt, SystemExit) as error:
            LOG.append(f"caught {error}")
    return x + 1


class Interrupting:
    """A backend that raises where it is given its ``place``-th graph."""

    def __init__(self, kind: type[BaseException], place: int) -> None:
        self.kind, self.left = kind, place

    def __call__(self, graph, inputs):
        self.left -= 1
        if self.left == 0:
            raise self.kind("now")
        return graph


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("place", [1, 2, 3, 4])
@pytest.mark.parametrize("program", [in_one_block, in_blocks_of_two_frames, caught_inside])
def test_blocks_are_left(program, place, kind):
    x = torch.arange(3.0)
    LOG.clear()
    expected = program(x)
    whole = list(LOG)
    backend = Interrupting(kind, place)
    captured = optimize(backend)(program)
    LOG.clear()
    with contextlib.suppress(kind):
        captured(x)
    backend.left = 0  # raises no more
    assert torch.is_grad_enabled()
    assert sum("into" in line for line in LOG) == sum("out of" in line for line in LOG)
    assert LOG.count(f"outer: {kind.__name__}") <= 1
    LOG.clear()
    assert torch.equal(captured(x), expected)
    assert whole == LOG


def test_the_frames_of_callers_leave_theirs_innermost_first():
    captured = optimize(Interrupting(KeyboardInterrupt, 2))(in_blocks_of_two_frames)
    LOG.clear()
    with pytest.raises(KeyboardInterrupt):
        captured(torch.ones(2))
    assert LOG == [
        "into outer", "into inner", "inner: KeyboardInterrupt", "out of inner", "outer: KeyboardInterrupt", "out of outer",
    ]  # fmt: skip


def test_a_lock_is_given_back_where_compiling_again_is_refused():
    lock = threading.Lock()

    def program(x, y):
        with lock:
            brk()
            return x * y

    captured = optimize(lambda graph, inputs: graph)(program)
    captured(torch.ones(2), 2.0)
    with (
        dynamo_capture.set_stance("fail_on_recompile"),
        pytest.raises((CaptureError, UnsupportedProgramError)),
    ):
        captured(torch.ones(2), torch.ones(2))
    assert not lock.locked()
    assert captured(torch.ones(2), torch.ones(2)).tolist() == [1.0, 1.0]


class Interrupt:
    """A profile function that raises where the first call of a function begins, and counts down to it."""

    def __init__(self, names, skipped=0):
        self.names, self.skipped, self.arrived = names, skipped, False

    def __call__(self, frame, event, argument):
        if event == "call" and frame.f_code.co_qualname in self.names:
            self.skipped -= 1
            if self.skipped < 0:
                sys.setprofile(None)
                self.arrived = True
                raise KeyboardInterrupt


def interrupted(function, *args, at, skipped=0):
    interrupt = Interrupt(at, skipped)
    sys.setprofile(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            function(*args)
    finally:
        sys.setprofile(None)
    assert interrupt.arrived


@pytest.mark.parametrize("skipped", range(8))
def test_what_compiling_sets_aside_is_put_back_where_a_managers_end_is_interrupted(skipped):
    """An interrupt that arrives where a manager's ``__exit__`` begins keeps the manager from doing anything."""
    captured = optimize(lambda graph, inputs: graph)(lambda x: x.sin() + 1)
    collecting, dtype = gc.isenabled(), torch.get_default_dtype()
    gc.enable()
    try:
        ends = {"_GeneratorContextManager.__exit__", "TorchDispatchMode.__exit__"}
        interrupted(captured, torch.ones(2), at=ends, skipped=skipped)
        assert gc.isenabled()
        assert torch.is_grad_enabled()
        assert torch.get_default_dtype() == dtype
        assert torch._C._len_torch_function_stack() == torch._C._len_torch_dispatch_stack() == 0
    finally:
        (gc.enable if collecting else gc.disable)()
    assert torch.equal(captured(torch.ones(2)), torch.ones(2).sin() + 1)


def in_blocks_that_a_trace_enters(x):
    with torch.autocast("cpu", torch.bfloat16), torch.device("meta"), patch_options(dynamic=False):
        y = x @ x
    return y.float() + 1


def entered():
    """What of torch and Python those blocks change."""
    depth = torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
    autocast = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), depth
    return autocast, torch.empty(0).device, part_option("dynamic", None), list(warnings.filters)


@pytest.mark.parametrize(
    ("at", "skipped"),
    [
        ("GraphOutput.call", 0),  # the trace is in the block, and has not noted that
        ("GraphOutput.call", 1),
        ("_Answering.__exit__", 0),
        ("_Answering.__exit__", 1),
        ("patch_options.__enter__", 0),
        ("patch_options.__exit__", 0),
        ("autocast.__exit__", 0),
        ("autocast.__exit__", 1),
        ("Block.end", 0),
        ("Block.end", 1),
    ],
)
def test_what_a_trace_enters_for_real_is_left_where_it_is_interrupted(at, skipped):
    captured = optimize(lambda graph, inputs: graph)(in_blocks_that_a_trace_enters)
    before = entered()
    interrupted(captured, torch.ones(2, 2), at={at}, skipped=skipped)
    assert entered() == before
    assert torch.equal(captured(torch.ones(2, 2)), torch.full((2, 2), 3.0))


class Counter:
    count = 0


COUNTER = Counter()


def breaking_in_a_block(x):
    with torch.no_grad():
        y = x + 1
        COUNTER.count += 1
        brk()
        y = y * 2
        COUNTER.count += 1
        brk()
    COUNTER.count += 1
    return y


@pytest.mark.parametrize("place", [0, 1, 2])
def test_modes_are_left_where_effects_are_interrupted(place):
    captured = optimize(lambda graph, inputs: graph)(breaking_in_a_block)
    captured(torch.ones(2))
    interrupted(captured, torch.ones(2), at={"set_attribute"}, skipped=place)
    assert torch.is_grad_enabled()
    before = COUNTER.count
    assert torch.equal(captured(torch.ones(2)), torch.full((2,), 4.0))
    assert COUNTER.count == before + 3


def entering_a_block_behind_another(x):
    try:
        brk()
    finally:
        COUNTER.count += 1
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        y = x + 1
        COUNTER.count += 1
        brk()
    COUNTER.count += 1
    return y


@pytest.mark.parametrize("place", [0, 1])
def test_modes_of_later_blocks_are_left_where_effects_are_interrupted(place):
    captured = optimize(lambda graph, inputs: graph)(entering_a_block_behind_another)
    for _ in range(3):
        COUNTER.count = 0
        captured(torch.ones(2))
    COUNTER.count = 0
    interrupted(captured, torch.ones(2), at={"set_attribute"}, skipped=place)
    assert torch.is_grad_enabled()
    assert not torch.is_autocast_enabled("cpu")


LOCK = threading.Lock()


def in_a_lock_and_a_mode(x):
    with noted("first"), torch.no_grad(), LOCK:
        x = x * 2
        brk()
        x = inner(x + COUNTER.count)
        for _ in range(2):
            brk()
    return x * 3


@pytest.mark.parametrize("skipped", range(6))
def test_an_interrupt_that_arrives_as_the_hook_begins_to_ask_leaves_the_blocks(skipped):
    captured = optimize(lambda graph, inputs: graph)(in_a_lock_and_a_mode)
    LOG.clear()
    interrupted(captured, torch.ones(2), at={"FrameCallback.__call__"}, skipped=skipped)
    assert not LOCK.locked()
    assert torch.is_grad_enabled()
    assert sum("into" in line for line in LOG) == sum("out of" in line for line in LOG)


class Arrival:
    """A profile function that raises at one of the places where Python looks for signals: where functions of the stack
    begin, and behind calls."""

    def __init__(self, number):
        self.left, self.arrived = number, False

    def __call__(self, frame, event, argument):
        if event == "c_return" or (
            event in ("call", "return") and frame.f_code.co_filename != __file__ and not self.arrived
        ):
            self.left -= 1
            if self.left == 0:
                sys.setprofile(None)
                self.arrived = True
                raise KeyboardInterrupt


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_arrives_anywhere_in_compiled_code_leaves_the_blocks():
    captured = optimize(lambda graph, inputs: graph)(in_a_lock_and_a_mode)
    expected = captured(torch.ones(2)), captured(torch.ones(2))
    number, kept = 0, []
    while True:
        number += 1
        arrival = Arrival(number)
        try:
            sys.setprofile(arrival)
            captured(torch.ones(2))
        except KeyboardInterrupt:
            assert arrival.arrived
        finally:
            sys.setprofile(None)
        if LOCK.locked() or not torch.is_grad_enabled():
            kept.append(number)
            torch.set_grad_enabled(True)
            if LOCK.locked():
                LOCK.release()
        if not arrival.arrived:
            break
    assert number > 50
    assert kept == []
    assert torch.equal(captured(torch.ones(2)), expected[1])
