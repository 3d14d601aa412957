"""Which objects are constants of a trace."""

import subprocess
import sys

import torch

from dynamo_capture import optimize


def test_iterators_of_code_objects_end_no_process():
    """CPython 3.11 crashes in ``issubclass`` where nobody has asked for an attribute of their classes before."""
    program = (
        "import abc, dynamo_capture.foundation.known_objects\n"
        "class A(abc.ABC): pass\n"
        "code = (lambda: 0).__code__\n"
        "print(issubclass(type(code.co_lines()), A), issubclass(type(code.co_positions()), A))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout.split()) == (0, ["False", "False"]), ran.stderr


def test_a_function_that_reads_lines_of_code():
    def program(x):
        return x + sum(1 for _ in program.__code__.co_lines())

    fast = optimize(lambda graph, inputs: graph.forward)(program)
    assert torch.equal(fast(torch.ones(2)), program(torch.ones(2)))
