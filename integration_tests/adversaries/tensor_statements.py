"""What the programs of ``tensors.py`` consist of: statements with names left open, arguments and their layouts."""

from __future__ import annotations

DTYPES = (
    "torch.float32",
    "torch.float64",
    "torch.int64",
    "torch.int32",
    "torch.uint8",
    "torch.bool",
    "torch.bfloat16",
)
FLOATS = ("nan", "inf", "-inf", "-0.0", "0.0", "1e-40", "3e38", "1e30", "1.0", "-1.5", "2.0", "0.5", "-3.0")
INTEGERS = ("0", "1", "-1", "2", "7", "127", "-128", "2**31 - 1", "-2**31")
SIZES = (
    ((3, 4), (2, 5), (4, 2)),
    ((3, 4), (3, 4), (5, 4)),
    ((4,), (6,), (5,)),
    ((4,), (1,), (0,)),
    ((2, 3), (1, 3), (3, 1)),
    ((3, 3), (2, 2), (4, 4)),
    ((2, 2, 3), (2, 1, 3), (3, 2, 2)),
    ((3, 0), (2, 0), (2, 2)),
    ((), (), ()),
)
BINARY = ("+", "-", "*", "/", "//", "%", "<", "==")
BINARY_NAMES = ("add", "sub", "mul", "maximum", "fmod", "div")
UNARY = (
    "neg()",
    "abs()",
    "relu()",
    "exp()",
    "sqrt()",
    "sign()",
    "floor()",
    "clone()",
    "contiguous()",
    "sigmoid()",
    "sum()",
    "sum(-1)",
    "amax(-1)",
    "cumsum(-1)",
    "softmax(-1)",
    "sort(-1)[0]",
    "mean()",
    "isnan()",
    "logical_not()",
    "any()",
    "argmax()",
    "flip(0)",
    "nan_to_num()",
    "clamp(-1, 2)",
    "detach()",
    "square()",
)
VIEWS = (
    "t()",
    "flatten()",
    "reshape(-1)",
    "view(-1)",
    "unsqueeze(0)",
    "unsqueeze(-1)",
    "squeeze()",
    "squeeze(-1)",
    "[0]",
    "[..., 0]",
    "[1:]",
    "[:-1]",
    "[::2]",
    "[..., ::2]",
    "[..., None]",
    "expand_as({other})",
    "expand(2, *{self}.shape)",
    "unfold(0, 2, 1)",
    "unfold(-1, 2, 2)",
    "diagonal()",
    "mT",
    "transpose(0, -1)",
    "narrow(0, 0, 1)",
    "narrow(-1, 1, 1)",
    "as_strided((2, 2), (1, 1))",
    "as_strided((2,), (2,))",
    "as_strided((3,), (1,), 1)",
    "as_strided((2, 2), (2, 1))",
    "chunk(2)[0]",
    "split(1)[-1]",
    "unbind()[0]",
    "view_as({self})",
    "movedim(0, -1)",
    "select(-1, 0)",
    "swapaxes(0, -1)",
    "view({self}.shape)",
    "detach()",
    "data",
    "flatten()[0:1]",
    "unbind(-1)[-1]",
    "broadcast_to({other}.shape)",
)
WRITES = (
    "add_(1)",
    "mul_(2)",
    "neg_()",
    "fill_(3)",
    "zero_()",
    "clamp_(-1, 1)",
    "copy_({other})",
    "add_({other})",
    "sub_({other})",
    "mul_({other})",
    "masked_fill_({self} > 0, 5)",
    "relu_()",
    "abs_()",
    "div_(2)",
    "floor_()",
    "exp_()",
    "cumsum_(0)",
    "pow_(2)",
    "lerp_({other}, 0.5)",
    "fill_diagonal_(1)",
    "logical_not_()",
    "addcmul_({other}, {other})",
)
SET_ITEMS = (
    "[0] = {value}",
    "[..., 0] = {value}",
    "[1:] = {value}",
    "[::2] = {value}",
    "[...] = {other}",
    "[0] = {other}",
    "[{self} > 0] = {value}",
    "[{index}] = {value}",
    "[-1] += {value}",
    "[:] = {other}[:1]",
    "[1:] = {self}[:-1]",
)
FORMS = (
    "t_()",
    "unsqueeze_(0)",
    "squeeze_()",
    "transpose_(0, -1)",
    "resize_({self}.numel())",
    "resize_({self}.shape)",
    "squeeze_(0)",
)
OUTS = (
    "torch.add({a}, {b}, out={o})",
    "torch.mul({a}, 2, out={o})",
    "torch.sum({a}, -1, out={o})",
    "torch.abs({a}, out={o})",
    "{new} = torch.cat([{a}, {b}], out={fresh})",
    "{new} = torch.stack([{a}, {b}], out={fresh})",
    "torch.arange({a}.numel(), out={o})",
    "torch.ones({a}.shape, out={o})",
    "torch.full({a}.shape, 2.5, out={o})",
    "torch.cumsum({a}, 0, out={o})",
    "torch.where({a} > 0, {a}, {b}, out={o})",
    "torch.maximum({a}, {b}, out={o})",
    "torch.clamp({a}, 0, 1, out={o})",
    "torch.zeros(2, out={o})",
    "torch.amax({a}, -1, out={o})",
    "torch.gather({a}, 0, torch.zeros_like({a}, dtype=torch.int64), out={o})",
    "torch.exp({a}, out={o})",
    "torch.index_select({a}, 0, {index}, out={o})",
    "torch.linspace(0, 1, 3, out={o})",
)
FRESH = ("torch.empty(0)", "torch.empty(0, dtype={a}.dtype)", "torch.zeros(2)", "torch.zeros(6, 4)")
PAIRS = (
    "torch.max({a}, -1, out=({o}, {p}))",
    "torch.sort({a}, -1, out=({o}, {p}))",
    "torch.topk({a}, 1, out=({o}, {p}))",
)
INDEXING = (
    "{a}[{index}]",
    "{a}.index_select(0, {index})",
    "torch.nn.functional.embedding({index}, {a})",
    "{a}.take({index})",
    "torch.gather({a}, 0, {index})",
    "{a}.scatter(0, {index}, 1.0)",
    "{a}.index_add(0, {index}, {a}[:{index}.numel()])",
    "{a}.index_fill(0, {index}, 2)",
    "{a}.index_copy(0, {index}, {a}[:2])",
    "torch.ones(3, 2)[{index}]",
    "torch.zeros(3).gather(0, {index})",
    "torch.full((3, 2), 2.0).index_select(0, {index})",
    "{a}.expand(3, *{a}.shape)[{index}]",
    "{a}.expand(3, *{a}.shape).index_select(0, {index})",
    "{a}.sum().expand(3, 2)[{index}]",
    "{a}.sum().expand(3, 2)[:, {index}]",
    "torch.zeros(3, 2).index_put(({index},), {a}.sum())",
    "torch.zeros(3).scatter(0, {index}, 1.0)",
    "torch.ones(3).index_fill(0, {index}, 2.0)",
    "torch.zeros(3).put({index}, {index}.float())",
    "torch.zeros(3).scatter_add(0, {index}, torch.ones(2))",
    "torch.ones(2, 3)[:, {index}]",
    "torch.arange(3)[{index}]",
    "torch.arange(6).view(3, 2)[{index}]",
    "torch.ones(3, 2)[{index}, {index}]",
    "torch.ones(3, 2).take({index})",
    "torch.ones(4, 2).index_select(1, {index})",
    "torch.take_along_dim(torch.ones(3), {index}, 0)",
    "torch.nn.functional.one_hot({index}.abs() % 5, 4)",
    "torch.nn.functional.one_hot({index}.abs() % 5, 3)",
)
INDICES = (
    "[0, 1]",
    "[0, 0]",
    "[2, 0]",
    "[1, -1]",
    "[0, 5]",
    "[-4, 0]",
    "[3, 1]",
    "[]",
    "[0]",
    "[2, 1]",
    "[0, 2]",
)
QUESTIONS = (
    "{a}.numel() > 3",
    "{a}.shape[0] == 3",
    "{a}.is_contiguous()",
    "{a}.stride(0) == 1",
    "{a}.dim() > 1",
    "{a}.storage_offset() == 0",
    "{a}.dtype == torch.float32",
    "{a}.shape == {b}.shape",
    "{a}.requires_grad",
    "{a} is {b}",
    "{a}.numel() == 0",
    "{a}._is_view()",
    "{a}.data_ptr() == {b}.data_ptr()",
)
MADE = (
    "torch.empty(0)",
    "torch.zeros(2)",
    "torch.zeros_like({a})",
    "torch.empty(0, dtype={dtype})",
    "torch.ones(3, 2)",
    "{a}.new_zeros({a}.shape)",
    "torch.zeros({a}.shape, dtype={dtype})",
    "torch.full_like({a}, 2)",
    "torch.tensor(1.5)",
    "torch.arange(6.0)",
    "torch.arange(6.0).view(2, 3).t()",
    "torch.ones(1).expand(3)",
)

PREAMBLE = """import torch
from torch import nan, inf

def of(numbers, size, dtype):
    return torch.tensor(numbers[: torch.Size(size).numel()], dtype=torch.float64).to(dtype).reshape(size)

def leaf(tensor):
    return tensor.detach().requires_grad_()

def gaps(tensor):
    base = tensor.new_zeros(*tensor.shape, 2)
    base[..., 1] = tensor
    return base[..., 1]

def swapped(tensor):
    if tensor.dim() == 0:
        return tensor
    return tensor.transpose(0, -1).clone(memory_format=torch.contiguous_format).transpose(0, -1)

def later(tensor):
    return torch.cat([tensor.new_zeros(3), tensor.reshape(-1)])[3:].view(tensor.shape)

def spread(tensor):
    return tensor[:1].expand(tensor.shape) if tensor.dim() and tensor.shape[0] else tensor

def windows(tensor):
    if tensor.dim() < 2 or not tensor.numel():
        return tensor
    return tensor.reshape(-1).as_strided(tensor.shape, (1,) * tensor.dim())
"""
LAYOUTS = ("{}", "{}", "{}", "gaps({})", "swapped({})", "later({})", "spread({})", "windows({})")
RELATIONS = (
    "{fresh}",
    "{fresh}",
    "{fresh}",
    "{fresh}",
    "{x}",
    "{x}.detach()",
    "{x}[:1]",
    "{x}.view_as({x})",
    "{x}.mT if {x}.dim() > 1 else {x}[1:]",
    "{x}.reshape(-1)[1:]",
    "{fresh}.reshape(-1)[:1]",
    "torch.empty(0)",
)
