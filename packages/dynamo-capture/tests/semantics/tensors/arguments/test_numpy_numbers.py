"""Numbers of numpy that only data tell, beside tensors, and how they are taken out of arrays."""

from __future__ import annotations

import numpy
import pytest
import torch

from dynamo_capture import optimize
from primtorch_decomps import LIBRARY

STEPS = (3, 5, 2, 7, 11)
TABLE = numpy.linspace(0.1, 1, 20)
PAIRS = numpy.arange(40.0).reshape(20, 2)
DTYPES = ("float64", "float32", "float16", "int64", "int8", "uint8")
OPERATIONS = [
    lambda x, n: x * n,
    lambda x, n: n * x,
    lambda x, n: n - x,
    lambda x, n: x.div_(n),
    lambda x, n: n / x,
    lambda x, n: (n < x, n == x, x >= n),
    lambda x, n: torch.add(x, n),
    lambda x, n: x.add(x, alpha=n),
    lambda x, n: x.clamp(max=n),
    lambda x, n: torch.where(x > 0, x, n),
    lambda x, n: torch.full((2,), n) + x.sum(),
    lambda x, n: x.long() * n,
    lambda x, n: x.half() * n,
    lambda x, n: x * (n + n) - numpy.negative(n) * x,
]


def _graphs_of(program, calls, rtol=0):
    """How many graphs the calls make; each is compared with eager."""
    graphs = []
    backend = lambda graph_module, _: graphs.append(graph_module) or graph_module.forward
    captured = optimize(backend, operators=LIBRARY)(program)
    for x, step in calls:
        mine, eagers = captured(x.clone(), step), program(x.clone(), step)
        torch.testing.assert_close(mine, eagers, rtol=rtol, atol=0)
    return len(graphs)


def _calls():
    return [(torch.linspace(0.5, 2, 12).view(3, 4), step) for step in STEPS]


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_element_by_a_step_beside_a_tensor(dtype):
    table = (TABLE * 30).astype(dtype)
    for operation in OPERATIONS:
        assert _graphs_of(lambda x, step, do=operation: do(x, table[step]), _calls()) <= 2


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions_of_an_element_are_torchs(dtype):
    """Whose last bit may be another one (docs/soundness.md)."""
    table = (TABLE * 30).astype(dtype)
    assert _graphs_of(lambda x, step: numpy.sqrt(table[step]) * x, _calls(), rtol=1e-6) <= 2


def test_the_element_is_a_number_of_its_own():
    def program(x, step):
        table = TABLE.copy()
        before = table[step]
        table[step] = 0
        return x * before, before, type(before), table[-step], PAIRS[step, 1], x * float(PAIRS[step, 0])

    captured = optimize(lambda graph_module, _: graph_module.forward, operators=LIBRARY)(program)
    for x, step in _calls():
        mine, eagers = captured(x, step), program(x, step)
        assert torch.equal(mine[0], eagers[0])
        assert torch.equal(mine[-1], eagers[-1])
        assert mine[1:-1] == eagers[1:-1]
        assert [type(one) for one in mine] == [type(one) for one in eagers]


def test_what_is_no_float_and_no_integer():
    for table in (TABLE > 0.3, TABLE + 1j):
        _graphs_of(lambda x, step, table=table: x.to(torch.complex64) * table[step], _calls())


def test_an_element_that_does_not_exist():
    captured = optimize(lambda graph_module, _: graph_module.forward, operators=LIBRARY)(
        lambda x, step: x * TABLE[step]
    )
    for step in (3, 5, 20, 7, -21, -20):
        if -20 <= step < 20:
            assert torch.equal(captured(torch.ones(2), step), torch.ones(2) * TABLE[step])
        else:
            with pytest.raises(IndexError, match=f"index {step} is out of bounds"):
                captured(torch.ones(2), step)


STORED = [
    lambda array: array,
    lambda array: array.sum(),
    lambda array: array.max(),
    lambda array: array[0],
    *(
        lambda array, kind=kind: getattr(numpy, kind)(1)
        for kind in (*DTYPES, "bool_", "complex64", "complex128")
    ),
]


@pytest.mark.parametrize("dtype", [*DTYPES, "bool", "complex64"])
def test_what_torch_refuses_to_store_is_refused(dtype):
    array = numpy.ones(4).astype(dtype)
    for make in STORED:

        def program(x, array, make=make):
            x[0] = make(array)
            return x

        captured = optimize(lambda graph_module, _: graph_module.forward, operators=LIBRARY)(program)
        outcomes = []
        for function in (program, captured):
            try:
                outcomes.append(function(torch.zeros(2, 4, dtype=torch.complex64), array).tolist())
            except (TypeError, RuntimeError) as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]
