"""Texts that integers which differ between calls are part of."""

from __future__ import annotations

import torch

X = torch.arange(6.0).view(3, 2)
CALLS = [(X, n) for n in (3, 4, 5, 6, 7)]


def test_a_text_that_is_passed_on_fixes_no_number(whole):
    def checked(x, n):
        message = f"{n} rows, {n + 1!r} marks"
        torch._check(n > 0, lambda: message)
        return x + 1

    whole(checked, *CALLS, graphs=2)
    whole(lambda x, n: (x + 1, f"<{f'{n}'}> of {n * 2!s}"), *CALLS, graphs=2)
    whole(lambda x, n: (x + 1, [text := f"{n}", text][0] is text), *CALLS, graphs=2)


def test_whether_a_text_is_a_string_fixes_no_number(whole):
    def program(x, n):
        text = f"{n} rows"
        return x + (1 if isinstance(text, str) else 2), type(text)

    whole(program, *CALLS, graphs=2)


def test_who_asks_for_a_text_gets_that_of_this_call(whole):
    whole(lambda x, n: {f"{n}": x + 1}, *CALLS)
    whole(lambda x, n: x + (1 if f"{n}" == "4" else 2), *CALLS)
    whole(lambda x, n: (x + 1, f"a{n}".upper(), f"{f'{n}':>4}", f"{f'{n}'!r}", len(f"{n}")), *CALLS)
    whole(lambda x, n: (x + 1, {"4": 1}.get(f"{n}"), f"{n}" in ("5", "6"), "7" in f"{n}"), *CALLS)


def test_a_text_over_a_graph_break(same):
    def program(x, n):
        text = f"{n} rows"
        y = x * 2 if x.sum() > 0 else x
        return y, text, f"{text} and {n}"

    same(program, *CALLS)


def test_the_text_of_an_exception(whole):
    def program(x, n):
        try:
            raise ValueError(f"{n} rows")
        except ValueError as error:
            return x + 1, error.args, str(error)

    whole(program, *CALLS)


def test_a_text_of_a_number_from_data_and_one_that_is_open(same):
    same(lambda x, n: (x + 1, f"{n} of {x.argmax().item()}"), *CALLS)
