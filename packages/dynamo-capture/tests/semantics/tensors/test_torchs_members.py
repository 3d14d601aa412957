"""What torch has of its own, and what the program has put in its place."""

from __future__ import annotations

import subprocess
import sys


def test_a_member_that_the_program_replaced_before_the_import():
    """By a function of a module that is not to be found by its name, as of a text that was executed."""
    code = (
        "import torch\n"
        "exec('def cuda(self): return self', names := {'__name__': 'nowhere'})\n"
        "torch.Tensor.cuda = names['cuda']\n"
        "from dynamo_capture import optimize\n"
        "f = optimize(lambda graph_module, inputs: graph_module.forward)(lambda x: x.cuda() + 1)\n"
        "assert torch.equal(f(torch.ones(2)), torch.full((2,), 2.0))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
