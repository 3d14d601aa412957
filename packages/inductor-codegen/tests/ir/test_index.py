"""Index algebra: every simplification keeps the value."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from fx_interface.symbols import ShapeEnv, symbol
from inductor_codegen.ir.index import (
    Index,
    Quotient,
    Remainder,
    as_index,
    divide,
    flatten,
    modulo,
    rejoined,
    rewrite,
    unflatten,
    variable,
)

ENV = ShapeEnv()
A = variable("i", 6)
J = variable("j", 4)
K = variable("k", 5)


def value(index: Index, at: dict[str, int]) -> int:
    total = index.const
    assert isinstance(total, int)
    for atom, coefficient in index.terms:
        assert isinstance(coefficient, int)
        match atom:
            case Quotient(numerator, denominator):
                total += coefficient * (value(numerator, at) // denominator)  # type: ignore[operator]
            case Remainder(numerator, denominator):
                total += coefficient * (value(numerator, at) % denominator)  # type: ignore[operator]
            case _:
                total += coefficient * at[atom.name]  # type: ignore[union-attr]
    return total


def points() -> list[dict[str, int]]:
    return [{"i": i, "j": j, "k": k} for i in range(6) for j in range(4) for k in range(5)]


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 10**6), divisor=st.integers(1, 30))
def test_division_keeps_values(seed: int, divisor: int) -> None:
    rand = random.Random(seed)
    index = Index(rand.randrange(20))
    for loop in (A, J, K):
        index = index + loop * rand.choice([0, 1, 2, 4, 5, 20, 30])
    if rand.random() < 0.5:
        index = divide(index, rand.choice([2, 3, 5]), ENV) * rand.choice([1, 3])
    for at in points():
        assert value(divide(index, divisor, ENV), at) == value(index, at) // divisor
        assert value(modulo(index, divisor, ENV), at) == value(index, at) % divisor


def test_unflatten_inverts_flatten() -> None:
    flat = flatten([A, J, K], [6, 4, 5])
    assert unflatten(flat, (6, 4, 5), ENV) == (A, J, K)
    assert unflatten(flat, (24, 5), ENV) == (A * 4 + J, K)
    assert unflatten(flat, (6, 20), ENV) == (A, J * 5 + K)


def test_unflatten_in_a_block_without_elements() -> None:
    assert unflatten(A * 4 + J, (3, 0), ENV) == unflatten(as_index(0), (0, 3), ENV) == (as_index(0),) * 2


def test_unflatten_inverts_flatten_of_symbolic_sizes() -> None:
    env = ShapeEnv()
    s = env.create_symbol(7, low=2)
    a, b = variable("a", s), variable("b", 3)
    assert unflatten(flatten([a, b], [s, 3]), (s, 3), env) == (a, b)
    assert unflatten(flatten([b, a], [3, s]), (3, s), env) == (b, a)


def test_what_lies_within_a_unit_of_the_divisor() -> None:
    position = variable("c", 16) * 6 + K
    assert divide(position, 24, ENV) == divide(variable("c", 16), 4, ENV)
    assert modulo(position, 24, ENV) == modulo(variable("c", 16), 4, ENV) * 6 + K
    reaching = variable("c", 16) * 4 + K  # 5 is more than a unit
    assert divide(reaching, 16, ENV) == as_index(Quotient(reaching, 16))


def test_groups_of_channels_of_symbolic_sizes() -> None:
    """An image's position, split into groups and joined again, is the position: whole rows are read in one loop."""
    env = ShapeEnv()
    channels, height, width = (env.create_symbol(n, low=2) for n in (16, 7, 9))
    of_group = channels // 4 * height * width
    flat = flatten(
        [variable("c", channels), variable("i", height), variable("j", width)], [channels, height, width]
    )
    group, inside = divide(flat, of_group, env), modulo(flat, of_group, env)
    assert group == divide(variable("c", channels), channels // 4, env)
    assert rejoined(group * of_group + inside) == flat
    point = variable("p", height * width)
    assert rejoined(flatten(unflatten(point, (height, width), env), (height, width))) == point


def test_order_of_terms_does_not_matter() -> None:
    assert A + J == J + A
    assert hash(A + J) == hash(J + A)
    assert A - A == Index(0)


def test_loop_of_one_turn_is_zero() -> None:
    assert variable("x", 1) == Index(0)


def test_rewriting_simplifies() -> None:
    whole = as_index(Quotient(A, 2))
    (loop, _) = A.terms[0]
    outer, inner = variable("o", 3), variable("n", 2)
    assert rewrite(whole, lambda atom: outer * 2 + inner if atom == loop else None, ENV) == outer


def test_text() -> None:
    assert str(A * 4 + J + Index(3)) == "4*i + j + 3"
    assert str(A * symbol("s0")) == "s0*i"


def test_a_quotient_and_its_remainder_are_the_number() -> None:
    position = variable("i", 30) * 49 + variable("j", 49)
    row, column = unflatten(position, (49, 30), ENV)
    assert rejoined(row * 30 + column) == position
    assert rejoined(row * 60 + column * 2 + 5) == position * 2 + 5
    assert rejoined(row * 31 + column) == row * 31 + column
    assert rejoined(row + column * 49) == row + column * 49


def test_digits_of_a_number_are_the_number() -> None:
    env = ShapeEnv()
    n = env.create_symbol(6, low=2)
    position = variable("i", 99) + 1
    digits = unflatten(position, (20, 3, 2), ENV)
    assert rejoined(flatten(digits, (20, 3, 2))) == position
    assert rejoined(flatten(unflatten(position, (9, n, n), env), (9, n, n))) == position
    outer, middle, inner = digits
    assert rejoined(outer * 6 + middle + inner) == outer * 6 + middle + inner
