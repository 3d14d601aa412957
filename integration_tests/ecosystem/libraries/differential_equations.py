"""torchdiffeq: solvers of fixed and of adaptive steps, with gradients through them and by the adjoint."""

from __future__ import annotations

from typing import Any

import torch
from programs import Compile, Program, Step, training_step
from torch import Tensor, nn


class _Field(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 8))

    def forward(self, t: Tensor, y: Tensor) -> Tensor:
        return self.net(y) * 0.5 + t * 0.01


def _solved(compile: Compile, whole: bool, adjoint: bool = False, **how: Any) -> Step:
    """``whole``: the function that solves is compiled, else only the field."""
    from torchdiffeq import odeint, odeint_adjoint

    field, y, times = _Field(), torch.randn(32, 8), torch.linspace(0, 1, 5)
    solve: Any = odeint_adjoint if adjoint else odeint

    def solution(y: Tensor) -> Tensor:
        return solve(field, y, times, **how)

    def by_field(y: Tensor) -> Tensor:
        return solve(compiled, y, times, **how)

    compiled = compile(solution if whole else field)
    run = compiled if whole else by_field
    return training_step(field, lambda: run(y)[-1].square().mean())


def rk4(compile: Compile) -> Step:
    return _solved(compile, True, method="rk4")


def dopri5(compile: Compile) -> Step:
    return _solved(compile, True, method="dopri5")


def dopri5_of_field(compile: Compile) -> Step:
    return _solved(compile, False, method="dopri5")


def adjoint(compile: Compile) -> Step:
    return _solved(compile, True, adjoint=True, method="rk4")


def adjoint_of_field(compile: Compile) -> Step:
    return _solved(compile, False, adjoint=True, method="dopri5")


NEEDS = ("torchdiffeq",)
PROGRAMS = (
    Program("torchdiffeq, rk4", rk4, NEEDS),
    Program("torchdiffeq, dopri5", dopri5, NEEDS, 22, 24),
    Program("torchdiffeq, dopri5 over a compiled field", dopri5_of_field, NEEDS, 2),
    Program("torchdiffeq, adjoint of rk4", adjoint, NEEDS),
    Program("torchdiffeq, adjoint over a compiled field", adjoint_of_field, NEEDS, 2),
)
