"""Texts that numbers which differ between calls, or come from data, are part of."""

from __future__ import annotations

import logging
import math

import torch

X = torch.arange(6.0).view(3, 2)
TWO, MIXED = "%d %d", "{} {1}"
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


def test_specifications_fix_no_number(whole):
    def program(x, n, lr):
        return (
            x * lr,
            f"[{n:04d}] lr={lr:.2e} {lr * 10:g} {n / 3:8.1f}% {n:x} {lr} {lr!r:>20} {n!s:>4} {n * lr}",
        )

    whole(program, *((X, n, 0.1 / n) for n in (3, 4, 5, 6, 7)), graphs=2)


def test_other_ways_to_write_numbers(whole):
    def program(x, n, lr):
        texts = ["%d of %5.2f%%, %s" % (n, lr, "on"), f"{n:>5} {lr:.1e} {n + 1}", "%g" % lr]
        texts += [str(n), repr(lr), format(lr, ".3f"), "{0}{1!r}{0}".format("'", lr), "%r" % (n,)]
        return x + 1, ", ".join(texts), " | ".join(f"{k}={v:.3f}" for k, v in {"a": lr, "b": 2 * lr}.items())

    whole(program, *((X, n, 0.1 / n) for n in (3, 4, 5, 6, 7)), graphs=2)


def test_texts_are_put_one_after_the_other(whole):
    def program(x, n):
        text = "n=" + f"{n}"
        text += f", {n / 7:.3f}"
        return x + 1, text + ".", [text] * 2

    whole(program, *CALLS, graphs=2)


def test_specifications_that_python_refuses_for_some_numbers(same):
    same(lambda x, n, s: (x + 1, f"{n:s}"), (X, 3, 0), (X, 4, 0), (X, 5, 0))
    same(lambda x, n, s: (x + 1, f"{n / 2:d}"), (X, 3, 0), (X, 4, 0), (X, 5, 0))
    same(lambda x, n, s: (x + 1, f"{n:c}"), (X, 300, 0), (X, 301, 0), (X, 2**40, 0), (X, 302, 0))
    numbers = (1.5, 2.5, math.inf, 3.5, math.nan, 4.5)
    same(lambda x, a, s: (x * a, "%d" % a), *((X, a, 0) for a in numbers))
    same(lambda x, a, s: (x * a, f"{a:,.1f} {a:+e}"), *((X, a, 0) for a in numbers))
    same(lambda x, a, s: (x * a, TWO % (a,)), *((X, a, 0) for a in numbers))
    same(lambda x, a, s: (x * a, MIXED.format(a, a)), *((X, a, 0) for a in numbers))
    same(lambda x, n, s: (x + 1, ",".join([f"{n}", n])), (X, 3, 0), (X, 4, 0), (X, 5, 0))
    same(lambda x, n, s: (x + 1, f"{n}" + n), (X, 3, 0), (X, 4, 0), (X, 5, 0))


def test_numbers_from_data_with_a_specification(whole):
    def program(x, n):
        mean = x.mean()
        return x + 1, f"{mean.item():.3f} of {mean:8.2e}, {x.argmax().item():>3d}", "%.2f" % mean.item()

    whole(program, *((X * n, n) for n in (3, 4, 5)), graphs=1)
    whole(lambda x, n: [f"{x.sum().item():.1f}", f"{x.sum():.2f}" + "!", str(x.max().item())], (X, 1))


def test_the_text_of_a_number_from_data_that_requires_grad(same):
    x = X.clone().requires_grad_()
    same(lambda x: (x + 1, f"{x.sum():.2f}", f"{x.sum()}"), (x,), (x,))
    same(lambda x: (x + 1, f"{x:.2f}"), (x,), (x,))


def test_what_is_printed_and_logged(same, caplog):
    log = logging.getLogger("training")

    def program(x, step, lr):
        loss = x.pow(2).mean()
        print(f"[{step:04d}] lr={lr:.2e} loss={loss.item():.4f}", f"{step / 3:.1f}%")
        log.info("step %d lr %s " + f"{lr:g}", step, f"{lr:.3f}")
        return loss * lr

    with caplog.at_level(logging.INFO, logger="training"):
        same(program, *((X, n, 0.1 / (n + 1)) for n in range(5)))
    assert "step 4 lr 0.020 0.02" in caplog.messages


def _recorded(x, step, found):
    found[f"loss/{step}"] = x.sum()
    found.setdefault(step, {}).update(rate=0.1 / (step + 1))
    return x * 2


def _looked_up(x, n, found):
    return x * found[f"scale_{n % 3}"] if f"other_{n}" not in found else x


def test_keys_of_each_step_do_not_have_a_version_each(same):
    same(_recorded, *((X, step, {}) for step in range(30)), graphs=14)
    table = {f"scale_{n}": n + 0.5 for n in range(3)} | {"other_12": 1}
    same(_looked_up, *((X, n, table) for n in (4, 5, 6, 7, 8, 9, 10, 12, 11)))
