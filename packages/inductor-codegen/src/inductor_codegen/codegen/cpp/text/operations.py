"""C++ text of each pointwise primitive, by the dtype that it computes in."""

from __future__ import annotations

import torch

from inductor_codegen.codegen.cpp.text.dtypes import COMPUTED, converted, text_of_float
from inductor_codegen.ir.scalar import Apply, Constant, Guarded, IndexValue, Scalar

MATH_FUNCTIONS = frozenset((
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "lgamma", "pow",
    "atan2", "fmod",
))  # fmt: skip
"""Primitives that are a function of the C library of the same name. Each has a vector form: that of glibc's libmvec
(since 2.35), or of ``math_functions.py``."""

WIDE = "wide_"
"""Before the name of such a function: with the same result in every vector (``math_functions.py`` defines it)."""

_SINGLE = frozenset({"exp", "erf", "tanh", "log", "log10", "log1p"})
"""Functions of a float that ``single_functions.py`` defines."""
_OF_VECTORS = {"tanh_of_vectors": "tanhf", "erf_of_vectors": "erff", "log_of_vectors": "logf"}
"""Operations of ``analysis/called_functions.py``."""

CHECKED_INTEGER = frozenset({"floor_div", "trunc_div", "remainder", "fmod"})
"""Primitives that on integers report a division by zero."""

_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
}
_WRAPPING = {"add": "+", "sub": "-", "mul": "*", "neg": "-"}
_BOOL_INFIX = {"add": "|", "mul": "&", "maximum": "|", "minimum": "&", "sub": "^"}
_ROUNDING = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "nearbyint"}
_ROUNDED_PLAINLY = {
    "round_bfloat16": "bfloat16_rounded_plainly",
    "bits_of_bfloat16": "bfloat16_bits_plainly",
    "upper_bits": "upper_bits",
}
"""Operations of ``analysis/plain_roundings.py``."""
_PREAMBLE = frozenset({"sign", "maximum", "minimum", "trunc_div", "shift_left", "shift_right"})
_BY_REMAINDER = {"remainder": "floor_remainder", "floor_div": "floor_div_floating"}
"""What is computed from the remainder towards zero."""
_LIMITS = {"maximum": "<", "minimum": ">"}
"""Of two equal numbers, zeros of both signs, the second is the result, as of the vector instructions torch uses."""
_POWERS = {
    2.0: "({0} * {0})",
    3.0: "({0} * {0} * {0})",
    1.0: "{0}",
    -1.0: "(1 / {0})",
    -2.0: "(1 / ({0} * {0}))",
}


def operation(node: Apply, args: list[str]) -> str:
    """The expression of one pointwise operation; ``args`` are the C++ names of its arguments."""
    compute = node.args[0].dtype
    if node.op == "where":
        return f"{args[0]} ? {args[1]} : {args[2]}"
    if node.op == "convert_dtype":
        to_integer = compute.is_floating_point and not node.dtype.is_floating_point
        return converted(args[0], compute, node.dtype, may_fold=to_integer and is_foldable(node.args[0]))
    if node.op in _ROUNDED_PLAINLY:
        return f"{_ROUNDED_PLAINLY[node.op]}({text_of_float(args[0], compute)})"
    if node.op in _OF_VECTORS:
        return f"{WIDE}{_OF_VECTORS[node.op]}({args[0]})"
    if node.op in ("wrap_index", "check_index"):
        return f"{node.op}({args[0]}, {args[1]}, bad)"
    if compute == torch.bool and node.op in _BOOL_INFIX:
        return f"(bool)({args[0]} {_BOOL_INFIX[node.op]} {args[1]})"
    if node.op in _WRAPPING and compute in (torch.int64, torch.int32):
        return _wrapping(node.op, args, compute)
    if node.op in _INFIX:
        return _result(node, f"{args[0]} {_INFIX[node.op]} {args[1]}", compute)
    return _result(node, _call(node.op, node.args, args, compute), compute)


def is_foldable(node: Scalar) -> bool:
    """Whether the C++ compiler may know the number, or one that is chosen for it: no memory has a part in it."""
    known: dict[Scalar, bool] = {}

    def found(one: Scalar) -> bool:
        if one not in known:
            known[one] = decided(one)
        return known[one]

    def decided(one: Scalar) -> bool:
        match one:
            case Constant() | IndexValue():
                return True
            case Apply("where", (_, left, right)) | Guarded(_, left, right):
                return found(left) or found(right)
            case Apply(_, args):
                return all(map(found, args))
            case _:
                return False

    return found(node)


def _wrapping(op: str, args: list[str], compute: torch.dtype) -> str:
    """Arithmetic modulo 2^n, as torch's integers have it; signed overflow is undefined in C++."""
    kind = COMPUTED[compute]
    operands = [f"(u{kind}){arg}" for arg in (args if op != "neg" else ["0", *args])]
    return f"({kind})({operands[0]} {_WRAPPING[op]} {operands[1]})"


def _result(node: Apply, text: str, compute: torch.dtype) -> str:
    """Integers narrower than int are computed as int by C++: cut them back."""
    narrow = not compute.is_floating_point and compute.itemsize < 4 and node.dtype == compute
    return f"({COMPUTED[compute]})({text})" if narrow else text


def _call(op: str, nodes: tuple[Scalar, ...], args: list[str], compute: torch.dtype) -> str:
    floating = compute.is_floating_point
    suffix = "" if compute == torch.float64 else "f"
    one = args[0]
    match op:
        case "neg":
            return f"-{one}"
        case "abs" if floating:
            return f"__builtin_fabs{suffix}({one})"
        case "abs":
            return f"{one} < 0 ? -{one} : {one}"
        case "sqrt":
            return f"__builtin_sqrt{suffix}({one})"
        case "rsqrt":
            return f"1 / __builtin_sqrt{suffix}({one})"
        case "reciprocal":
            return f"1 / {one}"
        case "sigmoid":
            return f"1 / (1 + {'single_exp' if suffix else f'{WIDE}exp'}(-{one}))"
        case _ if op in _SINGLE and suffix:
            return f"single_{op}({one})"
        case "isnan":
            return f"{one} != {one}"
        case "isinf":
            return f"__builtin_fabs{suffix}({one}) == __builtin_inf{suffix}()" if floating else "false"
        case "logical_not":
            return f"!{one}"
        case "bitwise_not":
            return f"!{one}" if compute == torch.bool else f"~{one}"
        case "pow":
            return _power(nodes, args, compute, suffix)
    if op in _ROUNDING:
        return f"__builtin_{_ROUNDING[op]}{suffix}({one})" if floating else one
    if op in CHECKED_INTEGER and not floating:
        return f"{op}_integer({', '.join(args)}, bad)"
    if op in _BY_REMAINDER:
        return f"{_BY_REMAINDER[op]}({', '.join(args)}, {WIDE}fmod{suffix}({', '.join(args)}))"
    if op in _LIMITS and floating and _is_number(nodes[1]):
        return f"{one} {_LIMITS[op]}= {args[1]} ? {args[1]} : {one}"  # a NaN compares false, and stays
    if op in _LIMITS and floating and _is_number(nodes[0]):
        return f"{args[1]} {_LIMITS[op]} {one} ? {one} : {args[1]}"
    if op in _PREAMBLE:
        return f"{op}({', '.join(args)})"
    assert op in MATH_FUNCTIONS, op
    return f"{WIDE}{op}{suffix}({', '.join(args)})"


def _is_number(node: Scalar) -> bool:
    return isinstance(node, Constant) and node.value == node.value


def _power(nodes: tuple[Scalar, ...], args: list[str], compute: torch.dtype, suffix: str) -> str:
    exponent = nodes[1]
    if not compute.is_floating_point:
        return f"power_integer({args[0]}, {args[1]})"
    if isinstance(exponent, Constant):
        if exponent.value in _POWERS:
            return _POWERS[exponent.value].format(args[0])
        if exponent.value == 0.5:
            return f"__builtin_sqrt{suffix}({args[0]})"
        if exponent.value == -0.5:
            return f"1 / __builtin_sqrt{suffix}({args[0]})"
    return f"{WIDE}pow{suffix}({args[0]}, {args[1]})"
