"""What programs about gradients consist of: what stands before them, and what is done with their results."""

from __future__ import annotations

HEAD = '''
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

class Log:
    pass


LOG, ORDER, NODES, SAVED = Log(), [], [], []
WATCHED = {"log": LOG, "order": ORDER}
REFUSED = []  # backwards that were refused, because a tensor that was saved for them had been overwritten


def say(name, what):
    LOG.__dict__.setdefault(name, []).append(what)
    ORDER.append(name)


def plain(value):
    """A gradient without its layout, which a compiled backward chooses."""
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value.clone(memory_format=torch.contiguous_format) if isinstance(value, torch.Tensor) else value


def total(value):
    return None if value is None else value.detach().reshape(-1)[:4].clone()


def noting(name):
    def hook(grad):
        say(name, total(grad))
    return hook


def scaling(name, factor):
    def hook(grad):
        say(name, tuple(grad.shape))
        return grad * factor
    return hook


def node_hook(name):
    def hook(inputs, outputs):
        say(name, ([total(part) for part in inputs], [total(part) for part in outputs]))
    return hook


def noting_node(name):
    def hook(inputs, outputs):
        NODES.append((name, [total(part) for part in inputs], [total(part) for part in outputs]))
    return hook


def node_prehook(name, factor):
    def hook(outputs):
        say(name, [total(part) for part in outputs])
        return tuple(None if part is None else part * factor for part in outputs)
    return hook


def accumulated(name):
    def hook(tensor):
        say(name, total(tensor.grad))
    return hook


def multi(name):
    def hook(grads):
        if isinstance(grads, (list, tuple)):
            say(name, [total(part) for part in grads])
        else:  # the first that arrives: the order of hooks on different results is not kept
            say(name, grads is None)
    return hook


def packed(tensor):
    SAVED.append(tuple(tensor.shape))
    return tensor.clone()


def unpacked(tensor):
    SAVED.append(total(tensor))
    return tensor


def watching():
    hooks = torch.autograd.graph.saved_tensors_hooks(packed, unpacked)
    hooks.__enter__()
    return lambda: hooks.__exit__(None, None, None)


class Plain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * b, grad * a


class Partial(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.set_materialize_grads(False)
        return a.clone(), b.clone()

    @staticmethod
    def backward(ctx, one, two):
        return None if one is None else one * 2, None if two is None else two * 3


class Noting(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a + 1

    @staticmethod
    def backward(ctx, grad):
        say("Noting", total(grad))
        return grad * 2


class Counting(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, seen):
        ctx.seen = seen
        return a * 2

    @staticmethod
    def backward(ctx, grad):
        ctx.seen.add_(1)
        return grad * 2, None


class Writing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.mark_dirty(a)
        a.mul_(2)
        return a

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Two(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        order = a.argsort(-1)
        ctx.mark_non_differentiable(order)
        ctx.save_for_backward(a)
        return a.exp(), order

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad, _):
        return grad * ctx.saved_tensors[0].exp()


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.5, -1.5, 2.0]))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        return x * self.weight


MODULE = Hooked()
KEPT = []
WATCHED["module"] = MODULE
SEEN = torch.zeros(())
WATCHED["seen"] = SEEN
WATCHED.update(nodes=NODES, saved=SAVED)
'''

WANTED = """
def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value] if value.requires_grad else []
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors(v)]
    return []


def shaped(tensor, number):  # expanded, transposed in memory, with gaps, within a larger tensor
    match number % 4:
        case 0:
            return torch.tensor(2.0).expand(tensor.shape)
        case 1 if tensor.dim() == 2:
            return torch.arange(1.0, tensor.numel() + 1).view(tensor.shape[1], tensor.shape[0]).t()
        case 2 if tensor.dim() == 2:
            return torch.ones(tensor.shape[0], 2 * tensor.shape[1])[:, ::2] * 0.5
        case 3 if tensor.dim() == 2:
            return torch.ones(3, tensor.shape[0], tensor.shape[1])[1]
    return torch.full(tensor.shape, 0.5)


def attempt(function):
    try:
        return function()
    except RuntimeError as error:
        if "modified by an inplace operation" in str(error):
            REFUSED.append(str(error))
        if str(error).startswith("[AOT"):  # reported: from there on nothing is compared
            raise
        return type(error).__name__


"""

AFTERS = (
    """
def after(result, *args):
    for t in tensors(result):
        attempt(lambda: t.sum().backward(retain_graph=True))
    return plain([t.grad for t in args])
""",
    """
def after(result, *args):
    found = tensors(result)
    if found:
        sum(t.sum() for t in found).backward()
    return plain([t.grad for t in args])
""",
    """
def after(result, *args):
    found = tensors(result)
    if found:
        attempt(lambda: found[0].sum().backward(retain_graph=True))
        attempt(lambda: found[-1].sum().backward(retain_graph=True))
    return plain([t.grad for t in args])
""",
    """
def after(result, *args):
    found, wanted = tensors(result), [t for t in args if t.requires_grad]
    if found and wanted:
        return plain(attempt(lambda: torch.autograd.grad(sum(t.sum() for t in found), wanted, allow_unused=True)))
""",
    """
def after(result, *args):
    found, wanted = tensors(result), [t for t in args if t.requires_grad]
    if found and wanted:
        first = torch.autograd.grad(sum((t * t).sum() for t in found), wanted, create_graph=True, allow_unused=True)
        second = [g for g in first if g is not None and g.requires_grad]
        if second:
            return plain((first, torch.autograd.grad(sum((g * g).sum() for g in second), wanted, allow_unused=True)))
        return plain(first)
""",
    """
def after(result, *args):
    found = tensors(result)
    for number, t in enumerate(found):
        t.register_hook(noting(f"result {number}"))
        if t.grad_fn is not None and number == 0:
            t.retain_grad()
    for number, t in enumerate(args):
        if t.requires_grad:
            t.register_hook(scaling(f"argument {number}", 2))
    if found:
        sum(t.sum() for t in found).backward()
    return plain([t.grad for t in found if t.is_leaf or t.retains_grad])
""",
    """
def after(result, *args):
    found = tensors(result)
    say('results', [t.grad_fn is None for t in found])
    if found:
        loss = sum(t.sum() for t in found)
        loss.backward(retain_graph=True)
        loss.backward()
""",
    """
def after(result, *args):
    found, wanted = tensors(result), [t for t in args if t.requires_grad]
    if found and wanted:
        loss = sum((t * t).sum() for t in found)
        say('first', plain(attempt(lambda: torch.autograd.grad(loss, wanted, allow_unused=True))))
        say('second', plain(attempt(lambda: torch.autograd.grad(loss, wanted, allow_unused=True))))
""",
    """
def after(result, *args):
    found, wanted = tensors(result), [t for t in args if t.requires_grad]
    if found and wanted:
        for t in (found[0], found[-1]):
            given = torch.autograd.grad(t.sum(), wanted, retain_graph=True, materialize_grads=True)
            say('materialized', plain(given))
        return plain(torch.autograd.grad(found, wanted, [shaped(t, n) for n, t in enumerate(found)], allow_unused=True))
""",
    """
def after(result, *args):
    found = tensors(result)
    def removing(name, handles):
        def hook(grad):
            say(name, total(grad))
            for handle in handles:
                handle.remove()
        return hook

    for t in found[:1]:
        of_result = []
        of_result += [t.register_hook(h) for h in (scaling('gone', 3), removing('removing', of_result), noting('last'))]
    for number, t in enumerate(args):
        if t.requires_grad and t.is_leaf:
            of_leaf = []
            of_leaf.append(t.register_post_accumulate_grad_hook(removing(f'removing {number}', of_leaf)))
    if found:
        torch.autograd.backward(found, [shaped(t, n + 1) for n, t in enumerate(found)], retain_graph=True)
        found[-1].sum().backward()
""",
    """
def after(result, *args):
    found, wanted = tensors(result), [t for t in args if t.requires_grad]
    for number, t in enumerate(found):
        t.register_hook(scaling(f"result {number}", 2))
    for number, t in enumerate(found if wanted else ()):
        first = torch.autograd.grad(t, wanted, shaped(t, number), create_graph=True, allow_unused=True)
        say('first', plain(first))
        second = [g.sum() for g in first if g is not None and g.requires_grad]
        if second:
            say('second', plain(torch.autograd.grad(sum(second), wanted, retain_graph=True, allow_unused=True)))
""",
    """
def after(result, *args):
    found, wanted = tensors(result), [t for t in args if t.requires_grad]
    for number, t in enumerate(found[:2]):
        t.register_hook(scaling(f"result {number}", 3))
    if found and wanted:
        (found[-1] * 2).sum().backward(retain_graph=True)
        return plain(torch.autograd.grad(found[-1], wanted[:1], shaped(found[-1], 2), allow_unused=True))
""",
)
