"""normflows: densities by affine couplings and by splines."""

from __future__ import annotations

import torch
from programs import Compile, Program, Step, training_step


def couplings(compile: Compile) -> Step:
    import normflows

    flows: list[torch.nn.Module] = []
    for _ in range(4):
        net = normflows.nets.MLP([1, 32, 2], init_zeros=True)
        flows += [normflows.flows.AffineCouplingBlock(net), normflows.flows.Permute(2, mode="swap")]
    model = normflows.NormalizingFlow(normflows.distributions.base.DiagGaussian(2), flows)
    compiled, x = compile(model.forward_kld), torch.randn(256, 2)
    return training_step(model, lambda: compiled(x))


def splines(compile: Compile) -> Step:
    import normflows

    flows = [
        normflows.flows.AutoregressiveRationalQuadraticSpline(2, 1, 16),
        normflows.flows.LULinearPermute(2),
    ]
    model = normflows.NormalizingFlow(normflows.distributions.base.DiagGaussian(2), flows)
    compiled, x = compile(model.log_prob), torch.randn(256, 2)
    return training_step(model, lambda: -compiled(x).mean())


PROGRAMS = (
    Program("normflows, couplings", couplings, ("normflows",)),
    Program("normflows, splines", splines, ("normflows",)),
)
