"""What programs about training consist of: modules with state, optimizers, expressions, what is done with results."""

from __future__ import annotations

HEAD = '''
import warnings

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import clip_grad_norm_, parametrizations, parametrize

class Log:
    pass


LOG = Log()
REFUSED = []  # backwards that were refused, because a tensor that was saved for them had been overwritten


def say(name, what):
    LOG.__dict__.setdefault(name, []).append(what)


def filled(module):
    """The module with parameters that any default dtype holds."""
    with torch.no_grad():
        for parameter in module.parameters():
            count = parameter.numel()
            parameter.copy_((torch.arange(count) % 7 - 3).view(parameter.shape) * 0.25 + 0.5)
    return module


class Symmetric(nn.Module):
    def forward(self, weight):
        return weight + weight.t()


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.calls += 1
        if self.training:
            self.mean = self.mean * 0.5 + x.detach().mean(0) * 0.5
        return x - self.mean


LINEAR = filled(nn.Linear(4, 4))
WEIGHTED = parametrizations.weight_norm(filled(nn.Linear(4, 4)))
SPECTRAL = parametrizations.spectral_norm(filled(nn.Linear(4, 4)))
for buffer in SPECTRAL.buffers():
    buffer.copy_(F.normalize(torch.tensor([1.0, -2.0, 3.0, 0.5]), dim=0))
TIED = filled(nn.Linear(4, 4, bias=False))
parametrize.register_parametrization(TIED, "weight", Symmetric())
BATCH = filled(nn.BatchNorm1d(4))
PLAIN_BATCH = nn.BatchNorm1d(4, affine=False, momentum=None)
IMAGES = nn.Sequential(filled(nn.Conv2d(4, 4, 3, padding=1)), filled(nn.BatchNorm2d(4)), nn.ReLU())
LAYER, GROUP, COUNTING = filled(nn.LayerNorm(4)), filled(nn.GroupNorm(2, 4)), Counting()
INSTANCE = nn.InstanceNorm2d(4, affine=True, track_running_stats=True)
NET = nn.ModuleList([LINEAR, WEIGHTED, SPECTRAL, TIED, BATCH, PLAIN_BATCH, IMAGES, LAYER, GROUP, COUNTING, INSTANCE])
PARAMETERS = list(NET.parameters())


def image(tensor, layout):
    made = tensor[:, :, None, None] * torch.tensor([[1.0, 0.5, -1.0], [2.0, 0.0, 1.0], [-0.5, 1.0, 1.5]])
    return made if layout is None else made.contiguous(memory_format=layout)


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value.clone(memory_format=torch.contiguous_format) if isinstance(value, torch.Tensor) else value


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value] if value.requires_grad else []
    return [t for v in value for t in tensors(v)] if isinstance(value, (list, tuple)) else []


def loss_of(value):
    return sum((t.abs() if t.is_complex() else t.float()).sum() for t in tensors(value))


def attempt(function):
    try:
        return function()
    except RuntimeError as error:
        if "modified by an inplace operation" in str(error):
            REFUSED.append(str(error))
        if str(error).startswith("[AOT"):
            raise
        return type(error).__name__


class Tripled(torch.autograd.Function):
    forward = staticmethod(lambda ctx, t: t * t)
    backward = staticmethod(lambda ctx, gradient: gradient * 2)
    jvp = staticmethod(lambda ctx, change: change * 3)


def pulled_after(change, t, seed):
    """The gradient of a function of which something has changed since it was computed."""
    factors, given = [2.0], t * 1
    value, pull = torch.func.vjp(lambda u: u.sin() * factors[0] * LINEAR.bias, given)
    if change == "list":
        factors[0] = 3.0
    if change == "argument":
        with torch.no_grad():
            given.mul_(2)
    if change == "mode":
        with torch.no_grad():
            return pull(seed)[0]
    return pull(seed)[0]


def pushed(t, change):
    """The change of what a custom function gives of a dual tensor."""
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(t * 1, change * 1)
        return torch.autograd.forward_ad.unpack_dual(Tripled.apply(dual) + dual).tangent


WATCHED = {"log": LOG, "net": NET}

with warnings.catch_warnings(action="ignore"):  # torch imports some of itself in the first call, which warns once
    torch.func.jvp(torch.sin, (torch.ones(1),), (torch.ones(1),))
'''

OPTIMIZERS = (
    "torch.optim.SGD(PARAMETERS, lr=0.125)",
    "torch.optim.SGD(PARAMETERS, lr=0.125, momentum=0.5, nesterov=True, weight_decay=0.25)",
    "torch.optim.Adam(PARAMETERS, lr=0.125, eps=1.0)",
    "torch.optim.AdamW(PARAMETERS, lr=0.125, amsgrad=True, foreach=False, eps=1.0)",
    "torch.optim.RMSprop(PARAMETERS, lr=0.125, centered=True, eps=1.0)",
    "torch.optim.Adagrad(PARAMETERS, lr=0.125, eps=1.0)",
)

MODULES = (
    "LINEAR({a})",
    "WEIGHTED({a})",
    "SPECTRAL({a})",
    "TIED({a})",
    "BATCH({a})",
    "PLAIN_BATCH({a})",
    "LAYER({a})",
    "GROUP({a})",
    "COUNTING({a})",
    "IMAGES(image({a}, {layout})).mean((2, 3))",
    "INSTANCE(image({a}, {layout})).sum(2).sum(2)",
    "F.batch_norm({a}, BATCH.running_mean, BATCH.running_var, training={flag})",
    "LINEAR({a} if {flag} else {b})",
    "F.max_pool2d(image({a}, {layout}), 2).flatten(1)",
    "F.linear({a}, WEIGHTED.weight, LINEAR.bias)",
    "F.interpolate(image({a}, {layout}), scale_factor=2).amax((2, 3))",
    "F.linear(LINEAR({a}), LINEAR.weight.t())",
)

TRANSFORMS = (
    "torch.func.grad(lambda t: (t.sin() * {b}).sum())({a})",
    "torch.func.vmap(lambda t: t * t.sum())({a})",
    "torch.func.vmap(torch.func.grad(lambda t: t.tanh().sum()))({a})",
    "torch.func.vmap(lambda t, u: t @ u * t, in_dims=(0, None))({a}, {b}[0])",
    "torch.func.jvp(lambda t: t.exp(), ({a},), ({b},))[1]",
    "torch.func.vjp(lambda t: t.sigmoid(), {a})[1]({b})[0]",
    "pulled_after('list', {a}, {b})",
    "pulled_after('argument', {a}, {b})",
    "pulled_after('mode', {a}, {b})",
    "pushed({a}, {b})",
    "{a} * torch.func.jacrev(lambda t: t.sin())({a}[0]).diagonal()",
    "{a} @ torch.func.jacfwd(lambda t: t * t.sum())({a}[0])",
    "{a} @ torch.func.hessian(lambda t: (t ** 3).sum())({a}[0])",
    "torch.func.functional_call(LINEAR, {{'weight': LINEAR.weight * 2, 'bias': {a}[0]}}, ({b},))",
    "torch.func.vmap(LINEAR)({a})",
    "torch.func.grad_and_value(lambda t: LINEAR(t).square().sum())({a})[0]",
)

DTYPES = (
    "{a}.half().float()",
    "{a}.bfloat16().float()",
    "({a}.bfloat16() * 2).float()",
    "({a}.half() + {b}.half()).float()",
    "{a}.bfloat16().softmax(-1).float()",
    "{a}.double().sin().float()",
    "({a}.bfloat16() @ LINEAR.weight.bfloat16()).float()",
    "torch.view_as_real(torch.complex({a}, {b})).sum(-1)",
    "torch.complex({a}, {b}).abs()",
    "(torch.complex({a}, {b}) * 1j).real",
    "torch.fft.fft({a}).real",
    "torch.polar({a}.abs(), {b}).imag",
    "torch.complex({a}, {b}).conj().imag",
    "(torch.complex({a}, {b}) * torch.complex({b}, {a})).real",
    "torch.complex({a}, {b}).mean(0).real * {a}",
    "torch.fft.irfft(torch.fft.rfft({a}) * torch.fft.rfft({b}).conj())",
    "({a} + 0j).exp().imag",
)

OTHERS = (
    "{a} * {b}",
    "{a} + {b}",
    "{a}.tanh()",
    "{a} - {a}.mean(0)",
    "{a}.t().contiguous().t()",
    "{a}[:1].expand_as({a})",
    "{a}.detach()",
    "{a} @ LINEAR.weight",
    "torch.where({a} > 0, {a}, {b})",
    "{a}.clamp(-1, 2)",
    "{a}.masked_fill({b} > 0, 0.5)",
    "{a} / ({b}.abs() + 1)",
    "F.normalize({a}, dim={dim})",
    "{a}.norm(dim={dim}, keepdim=True) * {b}",
    "{a}.as_strided({a}.shape, {a}.stride())",
    "torch.cat([{a}, {b}])[: len({a})]",
    "F.gelu({a})",
    "F.cross_entropy({a}, {b}.softmax(-1), reduction='none')[:, None] + {a}",
    "F.embedding({a}.argmax(-1), LINEAR.weight)",
    "torch.einsum('ij,kj->ik', {a}, {b}) @ {b}",
    "F.scaled_dot_product_attention({a}[None], {b}[None], {a}[None])[0]",
    "torch.logsumexp(torch.stack([{a}, {b}]), 0)",
)

STATEMENTS = (
    "print(end='')",
    "NET.train({flag})",
    "BATCH.train({flag})",
    "IMAGES.eval()",
    "BATCH.momentum = 0.5",
    "BATCH.reset_running_stats()",
    "BATCH.running_mean.zero_()",
    "say('training', (BATCH.training, IMAGES[1].training))",
    "say('tracked', BATCH.num_batches_tracked.item())",
    "say('buffers', [name for name, _ in BATCH.named_buffers()])",
    "OPTIMIZER.zero_grad(set_to_none={flag})",
    "OPTIMIZER.step()",
    "if {a}.requires_grad: {a}.square().sum().backward(retain_graph=True)",
    "if {a}.requires_grad: LINEAR({a}).square().sum().backward(retain_graph=True)",
    "clip_grad_norm_(PARAMETERS, 1.0)",
    "with torch.no_grad(): LINEAR.weight.mul_(0.5)",
    "with torch.no_grad(): LINEAR.bias.copy_({a}.detach()[0])",
    "with torch.inference_mode(): say('inference', LINEAR({a}).sum())",
    "with parametrize.cached(): say('cached', WEIGHTED({a}).detach().sum() + WEIGHTED({b}).detach().sum())",
    "for parameter in LINEAR.parameters(): parameter.requires_grad_({flag})",
    "for group in OPTIMIZER.param_groups: group['lr'] = group['lr'] * 0.5",
    "say('grad', None if LINEAR.weight.grad is None else LINEAR.weight.grad.clone())",
    "TIED.weight = torch.eye(4)",
)

AFTERS = (
    """
def after(result, *args):
    if tensors(result):
        loss_of(result).backward()
    OPTIMIZER.step()
    OPTIMIZER.zero_grad()
    return plain([t.grad for t in args])
""",
    """
def after(result, *args):
    if tensors(result):
        say('first', attempt(lambda: loss_of(result).backward()))
        wanted = [t for t in args if t.requires_grad] or PARAMETERS  # a backward that is refused may have added up some
        say('second', plain(attempt(lambda: torch.autograd.grad(loss_of(result), wanted, allow_unused=True))))
    OPTIMIZER.step()
    return plain([t.grad for t in args])
""",
    """
def after(result, *args):
    if tensors(result):
        loss_of(result).backward(inputs=[t for t in (*args, *PARAMETERS) if t.requires_grad])
    clip_grad_norm_(PARAMETERS, 2.0)
    OPTIMIZER.step()
    return plain([t.grad for t in (*args, *PARAMETERS)])
""",
    """
def after(result, *args):
    wanted = [t for t in (*args, *PARAMETERS) if t.requires_grad]
    if tensors(result) and wanted:
        return plain(torch.autograd.grad(loss_of(result), wanted, allow_unused=True))
""",
)
