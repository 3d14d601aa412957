"""Numbers that differ from call to call are computed as Python computes them, by one version for all values."""

import math

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import HealthCheck, given, settings

from dynamo_capture import export, optimize, run_graph
from dynamo_capture.sources.formulas import same
from fx_interface.source import Scope

X = torch.arange(12.0).reshape(4, 3) + 0.5

_BINARY = ["+", "-", "*", "/", "//", "%", "**"]
_BITS = ["<<", ">>", "&", "|", "^"]
_OF_ONE = [
    "math.sqrt", "math.exp", "math.log", "math.cos", "math.atan", "math.floor", "math.ceil", "math.trunc", "math.log1p",
    "float", "int", "abs", "round", "-", "+", "bool", "math.isfinite", "math.degrees", "math.gamma",
]  # fmt: skip
_OF_TWO = ["math.pow", "math.atan2", "math.fmod", "math.copysign", "min", "max", "math.hypot", "divmod"]
_LEAVES = ["a", "b", "i", "j", "2", "0.5", "-3", "1e300"]
_VALUES = st.tuples(
    st.floats(-4, 4) | st.sampled_from([0.0, -0.0, math.inf, math.nan, 1e308, 0.5]),
    st.floats(-4, 4) | st.sampled_from([0.0, 1.0, -1.0, 1e-320]),
    st.integers(-5, 40),
    st.integers(-3, 3),
)


def _grow(parts):
    return st.one_of(
        st.builds("({} {} {})".format, parts, st.sampled_from(_BINARY), parts),
        st.builds("({} {} {})".format, parts, st.sampled_from(_BITS), parts),
        st.builds("{}({})".format, st.sampled_from(_OF_ONE), parts),
        st.builds("{}({}, {})".format, st.sampled_from(_OF_TWO), parts, parts),
        st.builds("({} if {} < {} else {})".format, parts, parts, parts, parts),
        st.builds("round({}, 2)".format, parts),
    )


_TEXTS = st.recursive(st.sampled_from(_LEAVES), _grow, max_leaves=6)


def _outcome(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error), str(error)


def _alike(one, other):
    if isinstance(one, tuple):
        return type(other) is tuple and len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one.nan_to_num(7.25), other.nan_to_num(7.25))
    return one is other or (repr(one) == repr(other) if type(one) is complex else same(one, other))


def _made(text):
    space = {"math": math}
    exec(
        f"def f(x, log, a, b, i, j):\n    log.append(1)\n    n = {text}\n    log.append(2)\n    return n, x + i",
        space,
    )
    return space["f"]


@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(text=_TEXTS, values=st.lists(_VALUES, min_size=3, max_size=5))
def test_any_formula_gives_what_python_gives(text, values):
    """Values, types, signs, exceptions and the effects before them."""
    program = _made(text)
    fast = optimize(run_graph)(program)
    for given_values in [*values, *values]:
        logs = [], []
        expected = _outcome(program, X, logs[0], *given_values)
        found = _outcome(fast, X, logs[1], *given_values)
        assert _alike(expected, found), (text, given_values, expected, found)
        assert logs[0] == logs[1], (text, given_values)
    assert not [reason for _, reason in fast.__fxstack_capture__.report.eager if "failed" in reason]


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(text=_TEXTS, values=st.lists(_VALUES, min_size=3, max_size=4))
def test_any_formula_beside_a_tensor(text, values):
    space = {"math": math}
    exec(f"def f(x, a, b, i, j):\n    return x * ({text}) + 1", space)
    fast = optimize(run_graph, dynamic=True)(space["f"])
    for given_values in values:
        expected = _outcome(space["f"], X, *given_values)
        found = _outcome(fast, X, *given_values)
        assert _alike(expected, found), (text, given_values, expected, found)


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("(a + b) * i", 2),
        ("math.sqrt(a * a + i) + math.hypot(a, b)", 2),
        ("(a if a < b else b) * 2", 3),
        ("min(a, b, 0.5), max(a, b)", 2),
        ("divmod(i, 7), i // -3, i % j", 2),
        ("i**j, 0.9**i, (-2)**i", 2),
        ("round(a, 1) + int(b * 3) + round(b)", 2),
        ("a // b, a % b, abs(-a)", 2),
        ("1 << i, i & 3, i ^ j, ~i", 2),
        ("bool(i & 1)", 3),
        ("a.is_integer(), i.bit_length()", 3),
        ("math.isclose(a, b), a in (1.0, 2.0), i == a", 3),
        ("math.comb(i, 2), pow(i, 2, 7), float(i) / 3", 2),
        ("[k * a for k in range(int(b))]", 4),
    ],
)
def test_versions(text, most):
    """So many versions serve all values."""
    space = {"math": math}
    exec(f"def f(x, a, b, i, j):\n    return x + 1, {text}", space)
    fast = optimize(run_graph)(space["f"])
    for k in range(10):
        values = 0.31 + k * 0.23, 1.1 + k * 0.1, k + 2, k + 3
        assert repr(fast(X, *values)) == repr(space["f"](X, *values))
    report = fast.__fxstack_capture__.report
    assert len(report.replacements) <= most
    assert not report.eager


@pytest.mark.parametrize("dynamic", [None, True])
def test_when_a_number_is_left_open(dynamic):
    fast = optimize(run_graph, dynamic=dynamic)(lambda x, a, i: x * a / (i + 3))
    counts = []
    for k in range(2, 7):
        fast(X, 0.1 * k, k)
        counts.append(len(fast.__fxstack_capture__.report.replacements))
    assert counts == ([1] * 5 if dynamic else [1, 2, 2, 2, 2])


def test_export_says_where_a_computed_number_comes_from():
    exported = export(lambda x, a: x * (math.sqrt(a) + 1), dynamic=True)(X, 4.0)
    scope = Scope({"x": X, "a": 9.0}, {})
    inputs = {item.source.expression: item.source.fetch(scope) for item in exported.signature.inputs}
    assert inputs["torch.tensor(math.sqrt(a) + 1, dtype=torch.float64)"] == 4.0
