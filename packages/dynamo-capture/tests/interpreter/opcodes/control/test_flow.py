"""Jumps, conditions, returns and generators on symbolic values."""

import pytest


def conditions(number):
    found = []
    while number:
        number -= 1
        if number % 2 and number != 3:
            continue
        found.append(number if number > 1 else -number)
        if number == 1 or not number:
            break
    else:
        found.append("else")
    return tuple(found), None if found else 1, (number or "zero")


@pytest.mark.parametrize("number", [0, 1, 4, 7])
def test_conditions(agrees, number):
    agrees(conditions, number)


def numbers(log):
    try:
        received = yield 1
        log.append(received)
        yield from (2, 3)
        return "result"
    finally:
        log.append("closed")


def delegated():
    log = []

    def outer():
        log.append((yield from numbers(log)))

    return tuple(outer()), tuple(log)


def sent():
    log = []
    made = numbers(log)
    return next(made), made.send("value"), made.close(), tuple(log)


def sent_too_early():
    return numbers([]).send("value")


def nothing_sent_early():
    return numbers([]).send(None)


def asked_while_it_runs():
    def itself():
        yield next(made)

    made = itself()
    return next(made)


def asked_after_its_end():
    made = (i for i in (1,))
    return tuple(made), next(made, "end"), made.close()


def raises_stop_iteration():
    def wrong():
        yield 1
        raise StopIteration

    return tuple(wrong())


def thrown_into():
    log = []
    made = numbers(log)
    next(made)
    try:
        made.throw(KeyError(1))
    except KeyError as error:
        return error.args, tuple(log)


def thrown_before_it_starts():
    return numbers([]).throw(KeyError(1))


def ignores_its_end():
    def stubborn():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    made = stubborn()
    next(made)
    made.close()


@pytest.mark.parametrize(
    "program",
    [delegated, sent, sent_too_early, nothing_sent_early, asked_while_it_runs, asked_after_its_end]
    + [raises_stop_iteration, thrown_into, thrown_before_it_starts, ignores_its_end],
)
def test_generators(agrees, program):
    agrees(program)
