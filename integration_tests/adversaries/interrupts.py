"""Programs interrupted at a random moment: while a function is compiled, is compiled again, or runs.

An interrupt (``KeyboardInterrupt``) arrives where a Python function begins or a builtin has returned, as Python's own
does that a signal brings: here by a profile function that counts calls and raises at one of them, so that the same
seed interrupts at the same place. Eager is interrupted at each instruction in turn, which gives the states that a
program can be left in.

A program that is interrupted while it is compiled must be left in one of them: effects in order and each of them once,
tensors written or not, blocks and locks left, the interrupt raised or caught. Where it runs compiled, effects of a
graph may be done in part (docs/soundness.md): none of them twice. Whatever the process has
beside (the collector, random states, hooks) must be as before, and the next call must do what eager does.
"""

from __future__ import annotations

import gc
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from driver import main, module_of
from torch.amp import autocast_mode

from dynamo_capture.hook.frame_hook import FrameCallback
from fx_interface.backend import STACK_PACKAGES

PROGRAM = "<adversary "
"""How the names of files begin that hold programs."""
_INTERRUPTED = (PROGRAM, autocast_mode.__file__)
"""The same of those whose instructions eager is interrupted at: autocast stays on where its beginning is."""
_COMPILES = FrameCallback.__call__.__code__
PREAMBLE = """
import contextlib
import threading
import torch

LOG, TABLE = [], {}
LOCK = threading.Lock()
BUFFER = torch.zeros(3)

class Box:
    count = 0

BOX = Box()

@contextlib.contextmanager
def noted(name):
    LOG.append(f"into {name}")
    try:
        yield
    finally:
        LOG.append(f"out of {name}")

class Held:
    def __enter__(self):
        BOX.count += 100
    def __exit__(self, *raised):
        BOX.count -= 100

def brk():
    print(end="")

def called(x):
    LOG.append("called")
    y = x * 3
    brk()
    TABLE["called"] = len(LOG)
    return y + 1

def going(x):
    for k in range(2):
        LOG.append(f"going {k}")
        yield x * k

def clear():
    LOG.clear()
    TABLE.clear()
    BOX.count = 0
    BUFFER.zero_()
    if LOCK.locked():
        LOCK.release()
    torch.set_grad_enabled(True)
    torch.set_autocast_enabled("cpu", False)

def state():
    modes = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
    return (*LOG, dict(TABLE), BOX.count, LOCK.locked(), str(BUFFER.tolist()), modes)

"""
EFFECTS = (
    "LOG.append({n})",
    "BOX.count += {n}",
    "TABLE[{n}] = {n}",
    "BUFFER.add_({n})",
    "BUFFER[0] = x.sum().detach()",
    "x = x * 2 + {n}",
    "x = (x @ x.t()).relu() @ x",
    "brk()",
    "brk()",
    "x = called(x)",
    "x = x + sum(going(x))",
    "print({n}, end='')",
)
BLOCKS = (
    "with noted('{n}'):",
    "with torch.no_grad():",
    "with LOCK:",
    "with Held():",
    "with torch.autocast('cpu', torch.bfloat16):",
    "with noted('{n}'), torch.no_grad():",
    "for k in range(2):",
    "if x.sum() > -1e9:",
    "try:",
    "try: # caught",
)


def draw(random: Random) -> str:
    """A program of effects, breaks and blocks."""
    lines = ["def program(x):"]
    _block(random, lines, "    ", random.randint(3, 6), 2)
    lines += ["    return x * 2", ""]
    calls = "CALLS = [lambda: (torch.ones(2, 3),), lambda: (torch.ones(3, 3),), lambda: (torch.ones(4, 3),)]"
    return "\n".join([PREAMBLE, *lines, calls, ""])


def _block(random: Random, lines: list[str], indent: str, count: int, depth: int) -> None:
    for _ in range(count):
        number = len(lines)
        if depth and random.random() < 0.4:
            head = random.choice(BLOCKS).format(n=number)
            free = head == "with LOCK:" and any("with LOCK" in line for line in lines)
            lines.append(indent + ("with noted('other'):" if free else head))
            _block(random, lines, indent + "    ", random.randint(1, 3), depth - 1)
            if head == "try:":
                lines += [f"{indent}finally:", f"{indent}    LOG.append('finally {number}')"]
            elif head.startswith("try"):
                lines += [
                    f"{indent}except KeyboardInterrupt:",
                    f"{indent}    LOG.append('caught {number}')",
                ]
        else:
            lines.append(indent + random.choice(EFFECTS).format(n=number))


def _is_own(asking: Any) -> bool:
    """Whether the hook is asked about a function which compiled code itself calls while it runs: of the stack, or of a
    manager of torch's that is made again for what follows the graph."""
    package = str(asking.f_locals["frame"].globals.get("__name__")).partition(".")[0]
    return package == "torch" or package in STACK_PACKAGES


class _Interrupt:
    """A profile function that raises where the call of this number begins, or ends if it is a builtin's; 0: never.
    ``place``: where that was; ``compiles``: whether something was being compiled."""

    def __init__(self, number: int) -> None:
        self.number, self.calls, self.place, self.compiles = number, 0, "", False

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        if event != "c_return" and (event != "call" or frame.f_code.co_filename.startswith(PROGRAM)):
            return
        self.calls += 1
        if self.calls == self.number:
            sys.setprofile(None)
            names = []
            while frame is not None:
                self.compiles = self.compiles or (frame.f_code is _COMPILES and not _is_own(frame))
                names.append(f"{frame.f_code.co_qualname}:{frame.f_lineno}")
                frame = frame.f_back
            self.place = " < ".join(names[:6])
            raise KeyboardInterrupt


class _Instructions(_Interrupt):
    """A trace function that does so at an instruction of the program, or of autocast."""

    def __call__(self, frame: Any, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(_INTERRUPTED):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.calls += 1
            if self.calls == self.number:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


def _run(program: Callable[..., Any], arguments: tuple[Any, ...], interrupt: _Interrupt) -> Any:
    """What the program gives; the interrupt if that arrived, whatever swallowed it if Python tells about that."""
    swallowed: list[Any] = []
    before, sys.unraisablehook = sys.unraisablehook, swallowed.append
    start = sys.settrace if isinstance(interrupt, _Instructions) else sys.setprofile
    sys._getframe().f_trace_opcodes = (
        True  # CPython 3.12 tells of instructions if a frame wants that as tracing begins
    )
    try:
        start(interrupt)
        try:
            return program(*arguments)
        finally:
            start(None)
    except KeyboardInterrupt as error:
        return error
    finally:
        sys.unraisablehook = before


def _surroundings() -> dict[str, Any]:
    """What a program, interrupted or not, does not change here."""
    import torch

    from dynamo_capture.hook import frame_hook

    return {
        "collector": gc.isenabled(),
        "callback": frame_hook.get_callback(),
        "function modes": torch._C._len_torch_function_stack(),
        "dispatch modes": torch._C._len_torch_dispatch_stack(),
        "functions of classes": torch._C._is_torch_function_enabled(),
        "hooks on saved tensors": torch._C._autograd._top_saved_tensors_default_hooks(True),
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),
        "inference mode": torch.is_inference_mode_enabled(),
        "multithreaded backwards": torch._C._is_multithreading_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "filters of warnings": list(warnings.filters),
        "random state": torch.get_rng_state().tolist(),
        "recursion": sys.getrecursionlimit(),
    }


def judge(source: str, name: str, backend: str) -> list[str]:
    """Where a program that is interrupted at some random moments is left otherwise than eager could be."""
    import fxstack

    random = Random(name)
    plain, fast = module_of(source, name), module_of(source, name)
    options = {"cache": False} if backend == "inductor" else None
    warm = random.randint(
        0, len(fast.CALLS)
    )  # calls before the one that is interrupted; all: it is compiled for it
    place = min(warm, len(fast.CALLS) - 1)
    states = _states(plain, plain.CALLS[place])
    found: list[str] = []

    def compiled() -> Any:
        fxstack.reset()
        made = fxstack.compile(fast.program, backend=backend, options=options)
        for make in fast.CALLS[:warm]:
            fast.clear()
            made(*make())
        fast.clear()
        return made

    counting = _Interrupt(0)
    _run(compiled(), fast.CALLS[place](), counting)
    for _ in range(3):
        interrupt = _Interrupt(random.randint(1, max(counting.calls, 1)))
        program = compiled()
        before = _surroundings()
        result = _run(program, fast.CALLS[place](), interrupt)
        outcome = _outcome(fast, result)
        del result  # its traceback holds generators, which would note their end in the next run
        gc.collect()
        after = _surroundings()
        text = f"{warm} calls before, call {interrupt.number} of {counting.calls}, {interrupt.place}"
        if interrupt.place:
            judged = _among if interrupt.compiles else _like
            found += [f"{one} ({text}): {outcome}" for one in judged(outcome, states)]
        found += [
            f"{what} ({text}): {after[what]} was {before[what]}"
            for what in before
            if before[what] != after[what]
        ]
        found += [f"the next call ({text}): {one}" for one in _next(plain, fast, program, place)]
    return found


def _outcome(module: Any, result: Any) -> Any:
    """How a call ended, and the state that it left."""
    ended = "interrupted" if isinstance(result, KeyboardInterrupt) else str(result.tolist())  # NaN is NaN
    return ended, module.state()


def _among(outcome: Any, states: list[Any]) -> list[str]:
    return [] if outcome in states else ["left in a state that eager cannot be in"]


def _like(outcome: Any, states: list[Any]) -> list[str]:
    """No effect more often than in a state, but for those of generators that are closed, whether or not the graph has
    gone on with them; locks and modes as in one."""
    log, wrong = outcome[1][:-5], []
    most: Counter[Any] = Counter()
    for _, state in states:
        most |= Counter(state[:-5])
    more = {
        what: times for what, times in (Counter(log) - most).items() if not str(what).startswith("out of")
    }
    if more:
        wrong.append(f"did more often than eager: {more}")
    if not any(outcome[1][-3] == state[-3] and outcome[1][-1] == state[-1] for _, state in states):
        wrong.append("holds locks or modes that eager cannot be left with")
    return wrong


def _states(module: Any, make: Callable[[], tuple[Any, ...]]) -> list[Any]:
    """How eager can end, interrupted anywhere."""
    found: list[Any] = []
    number = 1
    while True:
        interrupt = _Instructions(number)
        module.clear()
        outcome = _outcome(module, _run(module.program, make(), interrupt))
        if outcome not in found:
            found.append(outcome)
        if interrupt.calls < number:
            module.clear()
            return found
        number += 1


def _next(plain: Any, fast: Any, program: Callable[..., Any], place: int) -> list[str]:
    """What a later call does otherwise than eager."""
    outcomes = []
    for module, function in ((plain, plain.program), (fast, program)):
        module.clear()
        try:
            ended = str(function(*module.CALLS[place]()).tolist())
        except Exception as error:
            ended = repr(error)
        outcomes.append((ended, module.state()))
        module.clear()
    return [] if outcomes[0] == outcomes[1] else [f"{outcomes[1]} is not {outcomes[0]}"]


if __name__ == "__main__":
    main(draw, compare=judge)
