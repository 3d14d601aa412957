"""Random programs, over several calls with changing arguments and state; and the smallest ones that once failed."""

import contextlib
import importlib.util
import itertools
import pathlib

import pytest
import torch

_SPEC = importlib.util.spec_from_file_location(
    "capture_program_generator", pathlib.Path(__file__).with_name("generator.py")
)
_GENERATOR = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_GENERATOR)

PROGRAMS = 60
X = torch.arange(6.0).reshape(2, 3) + 1


def compiled(text):
    scope = {"torch": torch, "contextlib": contextlib, "itertools": itertools}
    exec(compile(text, "<generated>", "exec"), scope)
    return scope["make"]


def calls():
    return [
        (X, 1, [1, 2], {"a": 1}),
        (X + 1, 2, [3], {"a": 2, "b": 5}),
        (torch.ones(3, 2), 0, [], {}),
        (X, 1, [1, 2], {"a": 1}),
        (X * 2, 5, [4, 4, 1, 0], {1: 2, None: 3}),
    ]


def test_locals_are_freed_when_a_frame_has_broken(same):
    def numbers(log):
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    def f(x, items):
        log = []
        g = numbers(log)
        first = next(g)
        doubled = [i * 2 for i in iter(items)]
        log.append(x.sum().tolist())
        return log, doubled, first

    same(f, (X, [1]), (X, [2, 3]), (X, [1]))


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_program(same, seed):
    same.made(compiled(_GENERATOR.source(seed)), *calls())
