"""Programs about what is asked of whom: uses of tensors under ``TorchFunctionMode``s and of classes of tensors with a
``__torch_function__``, which note each function that they are asked about, beside containers, texts, indices, arrays,
copies and loops, around graph breaks.
"""

from __future__ import annotations

from random import Random

from driver import Comparing, main

PREAMBLE = """\
import contextlib, copy, math, operator
import numpy
import torch
import torch.nn.functional as F
LOG = []
WATCHED = {"log": LOG}
class Noting(torch.overrides.TorchFunctionMode):
    def __init__(self, name):
        super().__init__()
        self.name = name
    def __torch_function__(self, function, types, args=(), kwargs=None):
        LOG.append((self.name, getattr(function, "__name__", str(function))))
        return function(*args, **(kwargs or {}))
class Noted(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        LOG.append(("class", getattr(function, "__name__", str(function))))
        return super().__torch_function__(function, types, args, kwargs or {})
class Sized(torch.Tensor):
    def __len__(self):
        LOG.append("len")
        return super().__len__()
class Plain(torch.Tensor):
    pass
def attempt(function):
    try:
        return function()
    except Exception as error:
        return type(error).__name__, str(error)
def brk():
    print(end="")
"""
NUMBERS = (
    "[1] * x", "x * (1, 2)", "'ab' * x", "[5][x - x]", "'%s' % 3", "x == [2]", "x in [2, 3]",
    "[1, 2, 3][:x]", "range(x)", "x ** 2", "2 ** x", "2 - x", "-x", "~x", "x << 1", "abs(x)", "bool(x)",
    "int(x)", "float(x)", "round(x.float())", "format(x, 'd')", "x.item()", "max(x, 1)", "[x].index(x)",
    "sorted([x, x + 1])", "not x", "x and 5", "[*range(x)]", "f'{x}'", "'%s' % x", "x != (1,)", "x < 'a'",
    "1 if x else 2", "any([x])", "sum([x,x])", "min([x,x])", "[1,2,3][x]", "{1:2}.get(x)", "torch.zeros(x)",
    "x[None]", "len(x[None])", "list(x[None])", "tuple(x[None])", "[*x[None], 1]", "set(x[None]) and 1",
    "dict(a=x)['a']", "x.shape[0:1]", "x.T", "complex(x)", "x.reshape(-1)[0]", "reversed(x[None])",
    "list(reversed(x[None]))", "list(zip(x[None]))", "next(iter(x[None]))", "list(map(abs, x[None]))",
    "list(enumerate(x[None]))", "x[None].tolist()", "(lambda *a: a)(*x[None])", "x in x[None]",
    "2 in x[None]", "x.requires_grad", "x.grad", "x.dtype", "x.data", "isinstance(x, torch.Tensor)",
    "pow(x, 2)", "x.__class__", "repr(x)", "str(x)", "x == None", "x != 'a'", "x == {}", "x == object",
    "x in [[1]]", "None == x", "x == (x,)", "x is not None", "(x, 1) == (x, 1)", "[x] == [x]",
    "[x] == [x + 0]", "(x, 2) < (x, 3)", "round(x.float(), 1)", "x.__index__()", "slice(x).indices(5)",
    "'abc'[x:]", "'a'.ljust(x)", "torch.tensor(x)", "torch.stack([x, x])", "torch.as_tensor(x)",
    "torch.tensor([x, x])", "torch.is_tensor(x)", "x.size()", "x.numel()", "x.ndim", "x.device", "x.is_leaf",
    "x.add_(1)", "x.__add__(1)", "x.new_zeros(2)", "x.type(torch.float32)", "torch.add(x, 1, alpha=x)",
    "x.float().__round__()", "int.__add__(1, int(x))", "operator.index(x)", "operator.concat([1],[x])",
    "operator.iadd([1],x[None])", "operator.contains(x[None], 2)", "operator.truth(x)", "operator.not_(x)",
    "divmod(x, 2)", "(1,) - x", "[1] + x", "x // 'a'", "math.floor(x.float())", "math.gcd(x, 4)",
    "copy.copy(x)", "copy.deepcopy(x)",
)  # fmt: skip
"""Uses of a tensor of one integer."""
MATRICES = (
    "F.gelu(x)", "F.dropout(x, 0.0)", "F.softmax(x, -1)", "F.linear(x, x)",
    "torch.einsum('ij,jk->ik', x, x)", "torch.nn.functional.interpolate(x[None], scale_factor=2)",
    "F.pad(x, (1, 1))", "F.pad(x, (1, 1), mode='reflect')", "torch.stack([x, x])",
    "torch.cat((x, x), dim=0)", "torch.where(x > 0, x, 0)", "x.view(-1)", "x[0]", "x[..., None]", "x[x > 1]",
    "x[[0, 1]]", "x[0, 1]", "x.T @ x", "x.mT", "x.sum().item()", "x.split(1)", "x.unbind()",
    "torch.split(x, [1, 2])", "x.norm()", "torch.norm(x)", "x.unique()",
    "torch.unique(x, return_counts=True)", "torch.broadcast_tensors(x, x[0])", "torch.cdist(x, x)",
    "torch.tensordot(x, x, 1)", "F.cross_entropy(x, torch.tensor([0, 1, 2]))", "F.mse_loss(x, x)",
    "F.layer_norm(x, (3,))", "F.normalize(x)", "F.one_hot(x.long().abs())", "torch.nn.ReLU()(x)", "x.shape",
    "len(x)", "x.shape[0]", "x.size(0)", "x.requires_grad_()", "x.clone().requires_grad", "x.detach()",
    "x.to(torch.float64)", "x.double().dtype", "x.cpu()", "x.numpy().sum()", "x.tolist()",
    "torch.zeros_like(x)", "torch.ones(3)", "torch.arange(3)", "torch.tensor([1.])", "torch.as_tensor([1.])",
    "torch.is_tensor(x)", "torch.is_floating_point(x)", "torch.numel(x)", "torch.allclose(x, x)",
    "torch.equal(x, x)", "x.equal(x)", "x.isnan().any()", "bool(x.any())", "x.__setitem__(0, 1.0)",
    "x.copy_(x * 2)", "x.mul_(2)", "x.clamp_(0)", "x.fill_(1)", "torch.add(x, x, out=torch.empty(3, 3))",
    "x.expand(2, 3, 3)", "x.permute(1, 0)", "x.flatten()", "x.reshape(9)", "x.chunk(3)", "x.max(0)",
    "x.max(0).values", "torch.max(x)", "torch.max(x, x)", "x.sort()", "x.topk(1)", "torch.linalg.norm(x)",
    "torch.linalg.inv(x + torch.eye(3) * 20)", "torch.fft.fft(x)", "x.index_select(0, torch.tensor([0]))",
    "x.gather(0, torch.zeros(1, 3, dtype=torch.long))", "x.masked_fill(x > 0, 0)", "torch.atleast_1d(x)",
    "torch.block_diag(x, x)", "torch.cartesian_prod(x[0], x[1])", "torch.chain_matmul(x, x)",
    "torch.broadcast_shapes((1, 3), (3, 1))", "torch.result_type(x, 1)",
    "torch.promote_types(torch.int8, torch.float16)", "torch.can_cast(torch.int, torch.float)",
    "torch.get_default_dtype()", "torch.nn.Parameter(x)", "torch.nn.init.zeros_(x)",
    "torch.nn.utils.clip_grad_norm_([x], 1.0)", "torch.autograd.grad((x.requires_grad_() * 2).sum(), x)",
    "torch.func.grad(lambda t: t.sum())(x)", "torch.func.vmap(torch.sin)(x)",
    "torch.no_grad()(torch.sin)(x)", "x.grad_fn", "x.is_contiguous()", "x.stride()", "x.storage_offset()",
    "x.element_size()", "x.is_cuda", "x.layout", "x.names", "x.itemsize", "x.nbytes", "x._base", "x.real",
    "x.H", "x.sum(dim=0, keepdim=True)", "sum(x)", "max(x[0])", "sorted(x[0])", "zip(*x).__next__()",
    "dict(enumerate(x))", "{i: v for i, v in enumerate(x[0])}", "[a + b for a, b in zip(x, x)]",
    "a if (a := x[0]) is not None else 0", "x.__class__.__name__", "getattr(x, 'ndim')", "hasattr(x, 'foo')",
    "getattr(x, 'foo', 5)", "type(x) is torch.Tensor", "isinstance(x, torch.nn.Parameter)",
    "x is x.view(3, 3)", "'%d' % x[0, 0]", "f'{x[0, 0]:.1f}'", "f'{x.shape}'", "str(x.shape)", "repr(x)",
    "round(float(x[0, 0]), 1)", "min(x[0, 0], 1)", "x[0, 0] < 1 < x[2, 2]", "not x[0, 0]", "x[0, 0] or 3",
    "[1, 2, 3, 4][x[0, 0].long()]", "range(int(x[1, 1]))", "x.new_tensor([1.])", "x.type_as(x)",
    "x.long() // 2", "x % 2", "-x", "abs(x)", "x ** 2", "2 ** x", "1 / x[1:]", "x @ x", "x.__deepcopy__({})",
    "x.contiguous(memory_format=torch.contiguous_format)", "torch.Tensor.add(x, 1)",
    "torch.Tensor.__add__(x, 1)", "torch.Tensor.shape.__get__(x)", "torch._C._nn.gelu(x)",
    "torch.ops.aten.sin(x)", "torch.ops.aten.sin.default(x)", "torch.Size([1]) + x.shape",
    "x.__format__('')", "iter(x).__next__()", "x.__contains__(1.0)", "1.0 in x", "x.dim()", "x.ndimension()",
    "x.nelement()", "x.is_same_size(x)", "x.is_set_to(x)", "x.get_device()", "x.t()", "torch.t(x)",
    "x.swapaxes(0, 1)", "x.movedim(0, 1)", "torch.vstack([x, x])", "torch.hstack((x, x))",
    "torch.column_stack((x, x))", "F.embedding(torch.tensor([0]), x)", "F.conv1d(x[None], x[None])",
    "F.scaled_dot_product_attention(x[None], x[None], x[None])", "F.max_pool1d(x[None], 2)",
    "F.adaptive_avg_pool1d(x[None], 1)", "torch.nn.functional.relu_(x)", "F.leaky_relu(x, inplace=True)",
    "F.hardtanh(x)", "F.silu(x)", "F.glu(torch.cat([x, x], 1))", "F.cosine_similarity(x, x)",
    "F.pairwise_distance(x, x)", "F.binary_cross_entropy_with_logits(x, x)",
    "F.nll_loss(x, torch.tensor([0, 1, 2]))", "F.kl_div(x, x.softmax(1), reduction='batchmean')",
    "F.smooth_l1_loss(x, x)", "F.unfold(x[None, None], 2)",
    "F.pixel_shuffle(x[None, None].expand(1, 4, 3, 3), 2)", "F.batch_norm(x, None, None, training=True)",
    "F.group_norm(x[None], 3)", "F.instance_norm(x[None])", "F.threshold(x, 1, 0)", "F.tanh(x)",
    "F.log_softmax(x, 0)", "F.prelu(x, torch.tensor([.1]))", "F.elu(x)", "F.celu(x)",
    "F.bilinear(x, x, x[None])", "F.upsample(x[None], scale_factor=2)",
    "F.embedding_bag(torch.tensor([[0, 1]]), x)", "F.triplet_margin_loss(x, x, x)", "copy.copy(x)",
    "numpy.asarray(x).max()", "numpy.abs(x.numpy())",
)  # fmt: skip
"""Uses of a matrix of three by three floats."""
GROWING = (
    "items += x",
    "items.extend(x)",
    "items[1:] = x",
    "items = [*items, *x]",
    "items.append(x)",
    "items *= 2",
)
CLASSES = ("", "", ".as_subclass(Noted)", ".as_subclass(Noted)", ".as_subclass(Sized)", ".as_subclass(Plain)")
BLOCKS = (
    "contextlib.nullcontext()", "Noting('a')", "Noting('a')", "Noting('a'), Noting('b')",
    "torch.no_grad(), Noting('a')",
    "torch._C.DisableTorchFunctionSubclass()",
)  # fmt: skip


def draw(random: Random) -> str:
    """A program of some uses under a block."""
    is_number = random.random() < 0.4
    cls = random.choice(CLASSES)
    one, other = ("tensor(2)", "tensor(3)") if is_number else ("arange(9.).view(3, 3).clone()", "ones(3, 3)")
    calls = ", ".join(f"lambda: (torch.{made}{cls},)" for made in (one, other, one))
    lines = ["def program(x):", "    items, seen = [1], []", f"    with {random.choice(BLOCKS)}:"]
    for _ in range(random.randint(1, 4)):
        chosen = random.random()
        if chosen < 0.12:
            lines.append("        brk()")
        elif chosen < 0.3 and not is_number:
            lines.append(f"        {random.choice(GROWING)}")
        else:
            use = random.choice(NUMBERS if is_number else MATRICES)
            lines.append(f"        seen.append(attempt(lambda: {use}))")
    lines.append("    return seen, items")
    return f"{PREAMBLE}CALLS = [{calls}]\n" + "\n".join(lines) + "\n"


IGNORED = {
    name: frozenset({"own version", "version", "all warnings", "warnings", "all strides", "refused backward"})
    for name in ("eager", "aot_eager", "inductor")
}

if __name__ == "__main__":
    main(draw, Comparing(IGNORED, {"inductor": (1e-4, 1e-5)}, gradients={"aot_eager": (1e-4, 1e-5)}))
